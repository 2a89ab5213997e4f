/** A file of 100,000 bytes, a partner that restarts, and a network between them that fails. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import type { PartnerOptions } from './partner.js';
import type { Service } from './service.js';
import type { World } from './world.js';

export const AT_ONCE = { attempts: 3, initialDelay: 0, maxDelay: 0, multiplier: 1, jitter: 0 };
export const POINTS = { syncPoints: { intervalKb: 4, window: 2 }, restarts: true } as const;
export const BIG = Buffer.from(Array.from({ length: 100_000 }, (_, n) => (n * 7 + (n >> 8)) & 0xff));

export const useRestarts = (world: World) => ({
  /** A service with `big` in its send tree, and a partner behind a network that fails. */
  start: async (cuts: Parameters<World['proxy']>[1], partnerOptions: PartnerOptions = {}, settings: object = {}) => {
    const partner = await world.partner({ ...POINTS, files: { X: BIG }, ...partnerOptions });
    const proxy = await world.proxy(partner.port, cuts);
    const service = await world.service({ settings: { retry: AT_ONCE, ...settings } });
    await world.remote(service, proxy.port);
    const path = join(service.data, 'send/big');
    await writeFile(path, BIG);
    return { partner, proxy, service, path };
  },
  /** Sends `big` to its end. */
  sendBig: async (service: Service, fields: object = {}) => {
    const request = { server: 'bank', virtualFile: 'V', filename: 'big', ...fields };
    return (await service.api.post('/transfers/send?wait=90', request)).body;
  },
});

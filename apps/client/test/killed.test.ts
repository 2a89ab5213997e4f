import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { withDatabase } from '@pesit-node/service/testing';

import { HOOK_SETTINGS, HookReceiver } from '../../../packages/hooks/test/support/receiver.js';
import { KilledService, patiently } from '../../../packages/service/test/support/killed-service.js';
import type { Json } from '../../../packages/service/test/support/killed-service.js';
import { startPartner } from './support/partner.js';
import type { Partner } from './support/partner.js';

const MAIN = new URL('../dist/main.js', import.meta.url);
const SETTINGS = { ...HOOK_SETTINGS, 'transfer.retry.initial-delay': 0, 'transfer.retry.attempts': 50 };

interface Death {
  readonly direction: 'send' | 'receive';
  readonly step: string;
  readonly size: number;
  /** Somebody takes the received file away before the next process looks. */
  readonly fetched?: boolean;
}

const deathsOf = (direction: Death['direction'], size: number, steps: readonly string[]): Death[] =>
  steps.map((step) => ({ direction, size, step }));

/** Small files have no sync point, and cost no statement but take and end. */
const DEATHS: readonly Death[] = [
  ...deathsOf('send', 3000, ['before:end']),
  ...deathsOf('send', 90_000, ['before:pacings', 'after:pacings', 'before:end', 'after:end']),
  ...deathsOf('receive', 3000, ['after:note', 'after:link', 'after:mark', 'before:end']),
  ...[3000, 90_000].flatMap((size) =>
    deathsOf('receive', size, ['after:mark', 'after:unlink', 'before:end']).map((one) => ({ ...one, fetched: true })),
  ),
  ...deathsOf('receive', 90_000, [
    'before:note',
    'before:link',
    'after:link',
    'after:unlink',
    'before:end',
    'after:end',
    'before:settle',
    'after:settle',
  ]),
];

withDatabase((harness) => {
  let directory: string;
  let service: KilledService;
  let partner: Partner;
  let receiver: HookReceiver;
  const files: Record<string, Buffer> = {};

  beforeEach(async () => {
    const { url: databaseUrl } = await harness.open();
    directory = await mkdtemp(join(tmpdir(), 'pesit-client-killed-'));
    receiver = new HookReceiver();
    await receiver.start();
    service = new KilledService({ main: MAIN, directory, databaseUrl, settings: SETTINGS });
    partner = await startPartner({ files, restarts: true, syncPoints: { intervalKb: 8, window: 2 } });
  });

  afterEach(async () => {
    await service.kill();
    await partner.close();
    receiver.close();
    await rm(directory, { recursive: true, force: true });
  });

  const request = async ({ direction }: Death, name: string, content: Buffer): Promise<string> => {
    const names = { server: 'bank', virtualFile: name };
    if (direction === 'receive') {
      files[name] = content;
      return (await service.call('POST', '/api/v1/transfers/receive', names))['id'] as string;
    }
    await writeFile(join(directory, 'send', name), content);
    return (await service.call('POST', '/api/v1/transfers/send', { ...names, filename: name }))['id'] as string;
  };

  /** One process after the other dies at its step; the next one brings the transfer to its end, by itself. */
  const dies = async (deaths: readonly Death[]): Promise<void> => {
    await service.start(deaths[0]?.step, 'F0');
    const server = { name: 'bank', host: '127.0.0.1', port: partner.port, serverId: 'S', clientId: 'C' };
    await service.call('POST', '/api/v1/servers', server);
    await service.call('POST', '/api/v1/hooks', receiver.hook);
    for (const [index, death] of deaths.entries()) {
      const [name, content] = [`F${index}`, randomBytes(death.size)];
      const id = await request(death, name, content).catch(() => undefined);
      expect([death, await service.dead()]).toEqual([death, 'SIGKILL']);
      if (death.fetched === true) await rm(join(directory, 'received', name));
      const log = await service.start(deaths[index + 1]?.step, `F${index + 1}`);
      const record = async (): Promise<Json> =>
        id === undefined
          ? ((await service.call('GET', '/api/v1/transfers?size=1'))['content'] as Json[])[0]!
          : service.call('GET', `/api/v1/transfers/${id}`);
      await patiently(async () => !['PENDING', 'IN_PROGRESS'].includes((await record())['status'] as string));
      const ended = await record();
      expect([death, ended, log()]).toEqual([
        death,
        expect.objectContaining({ status: 'COMPLETED', size: death.size, virtualFile: name, restartable: false }),
        expect.any(String),
      ]);
      if (death.direction === 'receive') {
        const received = (await readdir(join(directory, 'received'))).filter((one) => one.startsWith(name));
        expect([death, received]).toEqual([death, death.fetched === true ? [] : [name]]);
        expect(ended['localPath']).toBe(join(await realpath(directory), 'received', name));
        expect(ended['filename']).toBe(name);
        if (death.fetched !== true) expect((await readFile(ended['localPath'] as string)).equals(content)).toBe(true);
      } else {
        const written = partner.written.filter(({ create }) => create.fileIdentifier?.fileName === name);
        expect([death, written.map((one) => one.content.equals(content))]).toEqual([death, [true]]);
      }
      const { totalElements } = await service.call('GET', '/api/v1/transfers');
      expect(totalElements).toBe(index + 1);
    }
    // Also of those whose process died after the outcome, and before anybody was told.
    // One that was under way is taken over after its lease.
    await patiently(() => Promise.resolve(receiver.told.size === deaths.length), 240_000);
    expect(receiver.unlike('transfer.completed')).toEqual([]);
    // The sweep at the start of a process removes what one leaves that is killed after the end.
    await patiently(async () => (await readdir(join(directory, 'received/.pesit'))).length === 0);
  };

  test('a process that is killed leaves one file and one record', () => dies(DEATHS), 600_000);
});

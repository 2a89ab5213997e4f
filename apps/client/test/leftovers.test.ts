import { mkdir, rm, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { afterAll, expect, test } from '@jest/globals';
import { withDatabase } from '@pesit-node/service/testing';

import { expectNoSecrets } from './support/service.js';
import type { Service } from './support/service.js';
import { CONTENT, useWorld } from './support/world.js';

afterAll(expectNoSecrets);

const DAY_MS = 86_400_000;
const NOBODY = '00000000-0000-4000-8000-000000000000';

withDatabase((harness) => {
  const world = useWorld(harness);

  /** A file that was last written so many days ago. */
  const leave = async (service: Service, path: string, days: number): Promise<void> => {
    const full = join(service.data, path);
    await mkdir(join(full, '..'), { recursive: true });
    await writeFile(full, 'left');
    const time = new Date(Date.now() - days * DAY_MS);
    await utimes(full, time, time);
  };

  test('what nobody came back for is removed after the retention, a log line each', async () => {
    const service = await world.service();
    expect(service.settings.stagingRetention).toBe(7 * DAY_MS);
    await world.remote(service, 1);
    await service.exchange.queue.stop(0);
    const { body: waiting } = await service.api.post('/transfers/receive', { server: 'bank', virtualFile: 'X' });
    const { body: failed } = await service.api.post('/transfers/receive', { server: 'bank', virtualFile: 'X' });
    const { body: sent } = await service.api.post('/transfers/send', {
      ...{ server: 'bank', virtualFile: 'X', fileContent: CONTENT },
    });
    const { knex } = world.database();
    const rows = knex('transfers').where({ id: failed.id });
    await rows.clone().update({ status: 'IN_PROGRESS', node: 'n', lease_until: new Date(), fence: 1 });
    const end = { status: 'FAILED', end_time: new Date(), error_code: 'TRANSFER_FAILED', restartable: true };
    await rows.clone().update(end);

    for (const id of [waiting.id, failed.id, NOBODY]) await leave(service, `received/.pesit/${id}.part`, 8);
    await leave(service, `received/.pesit/${NOBODY}.delivery`, 8);
    await leave(service, 'received/.pesit/young.part', 6);
    // Killed when its record was COMPLETED, before its note was removed.
    const { body: done } = await service.api.post('/transfers/receive', { server: 'bank', virtualFile: 'X' });
    const completed = knex('transfers').where({ id: done.id });
    await completed.clone().update({ status: 'IN_PROGRESS', node: 'n', lease_until: new Date(), fence: 1 });
    await completed.clone().update({ status: 'COMPLETED', end_time: new Date() });
    for (const id of [waiting.id, done.id]) await leave(service, `received/.pesit/${id}.delivery`, 0);
    await leave(service, 'send/.pesit/cut-off.part', 8);
    await leave(service, `send/spool/${sent.id}`, 8);
    await service.exchange.leftovers.sweep();

    expect(await world.filesIn(service, 'received')).toEqual(
      [`${waiting.id}.part`, `${waiting.id}.delivery`, 'young.part'].sort(),
    );
    expect(await world.filesIn(service, 'send')).toEqual([sent.id]);
    expect((await service.api.get(`/transfers/${failed.id}`)).body).toMatchObject({ restartable: false });
    const told = service.log.entries().filter(({ msg }) => String(msg).includes('removed'));
    expect(told.map(({ transferId, key }) => transferId ?? key).sort()).toEqual([NOBODY, failed.id, 'cut-off'].sort());
    await service.exchange.leftovers.sweep();
    expect(await world.filesIn(service, 'received')).toHaveLength(3);
  });

  test('a directory that cannot be read is told of, and keeps nothing else from being removed', async () => {
    const service = await world.service();
    await rm(join(service.data, 'received/.pesit'), { recursive: true, force: true });
    await writeFile(join(service.data, 'received/.pesit'), 'in the way');
    await leave(service, 'send/.pesit/cut-off.part', 8);
    await expect(service.exchange.leftovers.sweep()).rejects.toThrow('a part of the path is not a directory');
    expect(await world.filesIn(service, 'send')).toEqual([]);
  });

  test('more uploads are kept than a statement takes values', async () => {
    const service = await world.service();
    const ids = Array.from({ length: 70_000 }, (_, n) => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`);
    expect(await service.transfers.statusesOf(ids)).toEqual(new Map());
  });

  test('a database that comes back while the service stops begins no sweep any more', async () => {
    const service = await world.service();
    await service.exchange.stop(0);
    await leave(service, 'received/.pesit/left.part', 8);
    await service.exchange.start();
    await service.exchange.leftovers.stop();
    expect(await world.filesIn(service, 'received')).toEqual(['left.part']);
  });
});

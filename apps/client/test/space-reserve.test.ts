/** `storage.reserve`: space that received files and uploads leave free. */
import { randomBytes } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

import { afterAll, beforeEach, expect, test } from '@jest/globals';
import { withDatabase } from '@pesit-node/service/testing';

import { expectNoSecrets } from './support/service.js';
import { CONTENT, until, useWorld } from './support/world.js';

afterAll(expectNoSecrets);

const MB = 1024 * 1024;
const RESERVE = 500 * MB;
const AGAIN = { attempts: 3, initialDelay: 0, maxDelay: 0, multiplier: 1, jitter: 0 };

withDatabase((harness) => {
  const world = useWorld(harness);
  let free = 0;
  let looked: () => void = () => undefined;
  beforeEach(() => {
    free = 1000 * MB;
    looked = () => undefined;
  });
  const service = (options: Parameters<typeof world.service>[0] = {}) =>
    world.service({
      ...options,
      config: { 'storage.reserve': RESERVE },
      freeSpace: () => {
        looked();
        return Promise.resolve(free);
      },
    });

  test('a file is not asked for while no more than the reserve is free; that is no failed attempt', async () => {
    const partner = await world.partner({ files: { X: Buffer.from('x') } });
    const at = await service({ settings: { retry: AGAIN } });
    await world.remote(at, partner.port);
    let looks = 0;
    free = RESERVE;
    looked = () => {
      if (++looks === 6) free = 1000 * MB;
    };
    const record = await world.receive(at);
    expect(record).toMatchObject({ status: 'COMPLETED', attempts: 1 });
    expect(looks).toBeGreaterThanOrEqual(6);
    expect(partner.selects).toHaveLength(1);
  });

  test('a record that waits for space says so', async () => {
    const at = await service({ settings: { retry: { ...AGAIN, initialDelay: 60_000, maxDelay: 60_000 } } });
    await world.remote(at, 1);
    free = RESERVE - 1;
    const { body } = await at.api.post('/transfers/receive', { server: 'bank', virtualFile: 'X' });
    await until(async () => (await at.api.get(`/transfers/${body.id}`)).body.diagnostic === '2-201');
    expect((await at.api.get(`/transfers/${body.id}`)).body).toMatchObject({
      status: 'PENDING',
      errorMessage: expect.stringMatching(/^524287999 bytes are free .* 524288000 must stay \(storage\.reserve\)/),
    });
    await at.api.post(`/transfers/${body.id}/cancel`);
  });

  test('a file that runs is interrupted when the reserve is reached, and goes on from its point', async () => {
    const content = randomBytes(40 * MB);
    const partner = await world.partner({
      files: { X: content },
      restarts: true,
      syncPoints: { intervalKb: 512, window: 16 },
    });
    const at = await service({ settings: { retry: AGAIN } });
    await world.remote(at, partner.port);
    let looks = 0;
    looked = () => {
      looks += 1;
      // Before the session, and at 16 MB; then there is space.
      free = looks === 2 ? RESERVE : 1000 * MB;
    };
    const record = await world.receive(at);
    expect(record).toMatchObject({ status: 'COMPLETED', attempts: 2, size: content.length });
    expect(partner.selects.map(({ restarted }) => restarted)).toEqual([undefined, 1]);
    expect((await readFile(record.localPath as string)).equals(content)).toBe(true);
  });

  test('an upload that fills the disk is refused with 507 in its middle, and leaves nothing', async () => {
    const at = await service();
    await world.remote(at, 1);
    let looks = 0;
    looked = () => {
      looks += 1;
      // When it begins there is space, and after 16 MB none.
      if (looks === 2) free = RESERVE;
    };
    const answer = await at.api
      .raw('post', '/transfers/send?server=bank&virtualFile=F')
      .set('Content-Type', 'application/octet-stream')
      .send(Buffer.alloc(17 * MB));
    expect([answer.status, answer.body.error]).toEqual([507, 'INSUFFICIENT_STORAGE']);
    expect(answer.body.message).toMatch(/^The content cannot be stored: too little space is free/);
    expect(answer.headers['retry-after']).toBe('60');
    expect([await world.filesIn(at, 'send'), await world.filesIn(at, 'temp')]).toEqual([[], []]);
    expect((await at.api.get('/transfers')).body.totalElements).toBe(0);
  });

  test('an upload is refused with 507 and in words, and leaves nothing', async () => {
    const at = await service();
    await world.remote(at, 1);
    free = RESERVE;
    const answer = await at.api.post('/transfers/send', { server: 'bank', virtualFile: 'F', fileContent: CONTENT });
    expect([answer.status, answer.body.error]).toEqual([507, 'INSUFFICIENT_STORAGE']);
    expect(answer.body.message).toMatch(/^The content cannot be stored: too little space is free for now/);
    expect(answer.headers['retry-after']).toBe('60');
    expect(await world.filesIn(at, 'send')).toEqual([]);
    expect(await readdir(join(at.data, 'send'))).toEqual(['spool']);
    expect(await world.filesIn(at, 'temp')).toEqual([]);
  });
});

import { afterAll, expect, test } from '@jest/globals';
import { withDatabase } from '@pesit-node/service/testing';

import { expectNoSecrets } from './support/service.js';
import type { Service } from './support/service.js';
import { CONTENT, world } from './support/world.js';

afterAll(expectNoSecrets);

const SEND = { server: 'bank', virtualFile: 'V', fileContent: CONTENT };

withDatabase((harness) => {
  const the = world(harness);

  const start = async () => {
    const partner = await the.partner({ files: { X: Buffer.from('x') }, message: () => Promise.resolve(undefined) });
    const service = await the.service();
    await the.remote(service, partner.port);
    return { partner, service };
  };
  const post = (service: Service, path: string, body: object, key: string) =>
    service.api.raw('post', `/transfers/${path}`).set('Idempotency-Key', key).send(body);

  test.each([
    ['send', SEND],
    ['receive', { server: 'bank', virtualFile: 'X' }],
    ['message', { server: 'bank', virtualFile: 'V', message: 'hello' }],
  ])('%s again with the same key: the same transfer, however often and at the same time', async (path, body) => {
    const { service } = await start();
    const first = await post(service, `${path}?wait=20`, body, 'order-1');
    expect([first.status, first.body.status]).toEqual([200, 'COMPLETED']);
    const reordered = Object.fromEntries(Object.entries(body).reverse());
    for (const again of [
      await post(service, path, reordered, 'order-1'),
      await post(service, `${path}?wait=20`, body, 'order-1'),
    ]) {
      expect([again.status, again.body.id, again.headers['location']]).toEqual([
        ...[200, first.body.id, `/api/v1/transfers/${first.body.id}`],
      ]);
    }
    const many = await Promise.all(Array.from({ length: 4 }, () => post(service, `${path}?wait=20`, body, 'order-2')));
    expect(new Set(many.map((answer) => answer.body.id)).size).toBe(1);
    expect(many.map((answer) => answer.body.status)).toEqual(Array(4).fill('COMPLETED'));
    expect((await service.api.get('/transfers')).body.totalElements).toBe(2);
    // A content that came again is not kept.
    expect(await the.filesIn(service, 'send')).toHaveLength(path === 'send' ? 2 : 0);
  });

  test('an upload again: the same transfer', async () => {
    const { service, partner } = await start();
    const upload = (content: string) =>
      service.api
        .raw('post', '/transfers/send?server=bank&virtualFile=V&wait=20')
        .set('Content-Type', 'application/octet-stream')
        .set('Idempotency-Key', 'k')
        .send(Buffer.from(content));
    const first = await upload('abc');
    await service.api.put('/servers/1', { enabled: false });
    expect((await upload('abc')).body.id).toBe(first.body.id);
    expect((await upload('abcd')).status).toBe(409);
    expect(partner.written).toHaveLength(1);
    expect(await the.filesIn(service, 'send')).toEqual([first.body.id]);
  });

  test('the same key for another request is a 409, a key that is none a 400', async () => {
    const { service } = await start();
    await post(service, 'send?wait=20', SEND, 'k');
    for (const other of [
      { ...SEND, virtualFile: 'W' },
      { ...SEND, fileContent: 'AAAA' },
      { ...SEND, label: 'L' },
    ]) {
      const { status, body } = await post(service, 'send', other, 'k');
      expect([status, body.error]).toEqual([409, 'CONFLICT']);
    }
    for (const key of ['', 'a b', 'x'.repeat(201)]) {
      const { status, body } = await post(service, 'send', SEND, key);
      expect([key, status, body.error]).toEqual([key, 400, 'VALIDATION_ERROR']);
    }
    expect((await service.api.get('/transfers')).body.totalElements).toBe(1);
    expect(await the.filesIn(service, 'send')).toHaveLength(1);
  });

  test('a request that was refused leaves its key free', async () => {
    const { service } = await start();
    await service.api.put('/servers/1', { enabled: false });
    expect((await post(service, 'send', SEND, 'k')).status).toBe(409);
    await service.api.put('/servers/1', { enabled: true });
    expect((await post(service, 'send?wait=20', SEND, 'k')).body.status).toBe('COMPLETED');
  });
});

import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import type { IncomingMessage } from 'node:http';

import { afterAll, expect, test } from '@jest/globals';
import { withDatabase } from '@pesit-node/service/testing';

import { AUTHORIZATION, expectNoSecrets } from './support/service.js';
import type { Service } from './support/service.js';
import { CONTENT, until, useWorld } from './support/world.js';

afterAll(expectNoSecrets);

const SEND = { server: 'bank', virtualFile: 'V', fileContent: CONTENT };

withDatabase((harness) => {
  const world = useWorld(harness);

  const start = async () => {
    const partner = await world.partner({ files: { X: Buffer.from('x') }, message: () => Promise.resolve(undefined) });
    const service = await world.service();
    await world.remote(service, partner.port);
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
    const first = await post(service, `${path}?wait=90`, body, 'order-1');
    expect([first.status, first.body.status]).toEqual([200, 'COMPLETED']);
    const reordered = Object.fromEntries(Object.entries(body).reverse());
    for (const again of [
      await post(service, path, reordered, 'order-1'),
      await post(service, `${path}?wait=90`, body, 'order-1'),
    ]) {
      expect([again.status, again.body.id, again.headers['location']]).toEqual([
        ...[200, first.body.id, `/api/v1/transfers/${first.body.id}`],
      ]);
    }
    const many = await Promise.all(Array.from({ length: 4 }, () => post(service, `${path}?wait=90`, body, 'order-2')));
    // A content takes a moment to be stored: who comes in that moment is told so.
    const taken = many.filter(({ status }) => path !== 'send' || status !== 409);
    expect(taken.length).toBeGreaterThan(0);
    expect(new Set(taken.map((answer) => answer.body.id)).size).toBe(1);
    expect(new Set(taken.map((answer) => answer.body.status))).toEqual(new Set(['COMPLETED']));
    expect((await service.api.get('/transfers')).body.totalElements).toBe(2);
    // A content that came again is not kept, nor one whose transfer is over.
    expect(await world.filesIn(service, 'send')).toEqual([]);
    expect(await world.database().knex('requests_under_way')).toEqual([]);
  });

  const upload = (service: Service, content: string) =>
    service.api
      .raw('post', '/transfers/send?server=bank&virtualFile=V&wait=90')
      .set('Content-Type', 'application/octet-stream')
      .set('Idempotency-Key', 'k')
      .send(Buffer.from(content));

  test('an upload again: the same transfer; with another content of equal size: 422', async () => {
    const { service, partner } = await start();
    const first = await upload(service, 'abc');
    await service.api.put('/servers/1', { enabled: false });
    expect((await upload(service, 'abc')).body.id).toBe(first.body.id);
    for (const other of ['abd', 'abcd', '']) {
      const { status, body } = await upload(service, other);
      expect([other, status, body.error]).toEqual([other, 422, 'UNPROCESSABLE']);
      expect(body.message).toMatch(new RegExp(`Idempotency-Key was used for another request.*${first.body.id}`));
    }
    expect(partner.written.map(({ content }) => content.toString())).toEqual(['abc']);
    expect(await world.filesIn(service, 'send')).toEqual([]);
  });

  /** An upload whose first piece has come in. */
  const beginUpload = async (service: Service, key: string) => {
    const request = httpRequest({
      ...{ port: service.http.port, host: '127.0.0.1', method: 'POST', agent: false },
      path: '/api/v1/transfers/send?server=bank&virtualFile=V&wait=90',
      headers: {
        Authorization: AUTHORIZATION,
        'Content-Type': 'application/octet-stream',
        'Idempotency-Key': key,
      },
    });
    request.on('error', () => undefined);
    request.write('abc');
    await until(async () => (await world.filesIn(service, 'temp')).some((name) => name.endsWith('.part')));
    const end = async (): Promise<{ status: number; id: string }> => {
      request.end();
      const [response] = (await once(request, 'response')) as [IncomingMessage];
      let text = '';
      for await (const piece of response) text += String(piece);
      return { status: response.statusCode ?? 0, id: (JSON.parse(text) as { id: string }).id };
    };
    return { request, end };
  };

  test('the same key while the first is still being taken in: 409, on every pod; then the first record', async () => {
    const { service, partner } = await start();
    const other = await world.service({ node: 'other-node' });
    const first = await beginUpload(service, 'k');
    for (const pod of [service, other]) {
      const { status, body } = await upload(pod, 'abc');
      expect([status, body.error]).toEqual([409, 'CONFLICT']);
      expect(body.message).toContain('still being taken in');
    }
    const { status, id } = await first.end();
    expect(status).toBe(200);
    expect((await upload(other, 'abc')).body.id).toBe(id);
    expect(partner.written).toHaveLength(1);
    expect(await world.database().knex('requests_under_way')).toEqual([]);
  });

  test('an upload that was cut off leaves its key free', async () => {
    const { service } = await start();
    const first = await beginUpload(service, 'k');
    first.request.destroy();
    await until(async () => (await world.database().knex('requests_under_way')).length === 0);
    expect((await upload(service, 'abd')).body.status).toBe('COMPLETED');
  });

  test('a process that died while it took a request in holds the key for a minute', async () => {
    const { service } = await start();
    const { knex } = world.database();
    const claims = knex('requests_under_way');
    const request = '00000000-0000-4000-8000-000000000000';
    await claims.clone().insert({ idempotency_key: 'k', request, until: knex.raw("now() + interval '60 seconds'") });
    expect((await upload(service, 'abc')).status).toBe(409);
    await claims.clone().update({ until: knex.raw("now() - interval '1 second'") });
    expect((await upload(service, 'abc')).body.status).toBe('COMPLETED');
    const old = { idempotency_key: 'old', request, until: knex.raw("now() - interval '2 days'") };
    await claims.clone().insert(old);
    await service.exchange.leftovers.sweep();
    expect(await claims.clone()).toEqual([]);
  });

  test('a claim that ran out while its content came in costs nothing: the first that is queued counts', async () => {
    const { service, partner } = await start();
    const slow = await beginUpload(service, 'k');
    const { knex } = world.database();
    await knex('requests_under_way').update({ until: knex.raw("now() - interval '1 second'") });
    const quick = await upload(service, 'abc');
    expect(quick.body.status).toBe('COMPLETED');
    expect(await slow.end()).toEqual({ status: 200, id: quick.body.id });
    expect(partner.written).toHaveLength(1);
    expect(await world.filesIn(service, 'send')).toEqual([]);
  });

  test('the same key for another request is a 422, a key that is none a 400', async () => {
    const { service } = await start();
    await post(service, 'send?wait=90', SEND, 'k');
    for (const other of [
      { ...SEND, virtualFile: 'W' },
      { ...SEND, fileContent: 'AAAA' },
      { ...SEND, fileContent: Buffer.from('HELLO WORLD').toString('base64') },
      { ...SEND, label: 'L' },
    ]) {
      const { status, body } = await post(service, 'send', other, 'k');
      expect([status, body.error]).toEqual([422, 'UNPROCESSABLE']);
    }
    for (const key of ['', 'a b', 'x'.repeat(201)]) {
      const { status, body } = await post(service, 'send', SEND, key);
      expect([key, status, body.error]).toEqual([key, 400, 'VALIDATION_ERROR']);
    }
    expect((await service.api.get('/transfers')).body.totalElements).toBe(1);
    expect(await world.filesIn(service, 'send')).toEqual([]);
  });

  test('a request that was refused leaves its key free', async () => {
    const { service } = await start();
    await service.api.put('/servers/1', { enabled: false });
    expect((await post(service, 'send', SEND, 'k')).status).toBe(409);
    await service.api.put('/servers/1', { enabled: true });
    expect((await post(service, 'send?wait=90', SEND, 'k')).body.status).toBe('COMPLETED');
  });
});

/** The REST interface of hooks and their deliveries. */
import { describe, expect, test } from '@jest/globals';
import { selfSigned, withDatabase } from '@pesit-node/service/testing';

import { faultyFields, secret, useRest } from './support/rest.js';

const HOOKS = '/api/v1/hooks';
const DELIVERIES = '/api/v1/hook-deliveries';
const SECRET = secret('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw');
const POSTED = { hookId: 'tell', target: 'https://batch.example/pesit', secret: SECRET };
const RUN = { hookId: 'run', target: 'exec:start-batch' };

withDatabase((harness) => {
  const rest = useRest(harness, { 'hooks.webhooks': true, 'hooks.directory': '/opt/hooks' });
  const ordered = async (hook: string): Promise<string> =>
    ((await rest.post(`${HOOKS}/${hook}/test`)).body as { id: string }).id;

  test('a hook is created, changed and deleted; its secret is never answered', async () => {
    const created = await rest.post(HOOKS, POSTED);
    expect([created.status, created.headers['location']]).toEqual([201, `${HOOKS}/tell`]);
    expect(created.body).toMatchObject({
      hookId: 'tell',
      enabled: true,
      events: null,
      peers: null,
      disabledReason: null,
    });
    expect(created.body).not.toHaveProperty('secret');
    const changed = await rest.put(`${HOOKS}/tell`, {
      events: ['transfer.failed'],
      peers: ['ACME'],
      direction: 'SEND',
    });
    expect(changed.body).toMatchObject({ events: ['transfer.failed'], peers: ['ACME'], direction: 'SEND' });
    expect((await rest.post(HOOKS, POSTED)).status).toBe(409);
    expect((await rest.get(HOOKS)).body).toEqual([changed.body]);
    expect((await rest.delete(`${HOOKS}/tell`)).status).toBe(204);
    const entries = (await rest.get('/api/v1/audit?objectType=hook')).body as {
      content: { action: string; details: string }[];
    };
    expect(entries.content.map(({ action }) => action)).toEqual(['deleted', 'changed', 'created']);
    expect(entries.content[2]?.details).toContain('"secret":{"after":"set"}');
  });

  describe.each<[string, Readonly<Record<string, unknown>>, string]>([
    ['an http URL', { target: 'http://batch.example/' }, 'target'],
    ['a URL with a user', { target: 'https://u:p@batch.example/' }, 'target'],
    ['another scheme', { target: 'file:///etc/passwd' }, 'target'],
    ['a path to an executable', { target: 'exec:../x' }, 'target'],
    ['an executable with arguments', { target: 'exec:x -y' }, 'target'],
    ['a URL without a secret', { secret: null }, 'secret'],
    ['a secret that is too short', { secret: 'whsec_AAAA' }, 'secret'],
    ['no event', { events: [] }, 'events'],
    ['an unknown event', { events: ['transfer.began'] }, 'events[0]'],
  ])('%s', (_, fields, field) => {
    test('is refused', async () => {
      const refused = await rest.post(HOOKS, { ...POSTED, ...fields });
      expect([refused.status, faultyFields(refused)]).toEqual([400, [field]]);
      await rest.post(HOOKS, POSTED);
      const changed = await rest.put(`${HOOKS}/tell`, fields);
      expect([changed.status, faultyFields(changed)]).toEqual([400, [field]]);
    });
  });

  test('a truststore that there is not is refused, and one that a hook names is in use', async () => {
    const named = { ...POSTED, truststoreName: 'corporate' };
    expect((await rest.post(HOOKS, named)).status).toBe(409);
    await rest.post('/api/v1/certificates/truststores', {
      name: 'corporate',
      certificates: selfSigned('ca').certificate,
    });
    expect((await rest.post(HOOKS, named)).status).toBe(201);
    const deleted = await rest.delete('/api/v1/certificates/truststores/corporate');
    expect([deleted.status, (deleted.body as { message: string }).message]).toEqual([
      409,
      expect.stringContaining('hook'),
    ]);
  });

  test('a hundred hooks are enough', async () => {
    const many = Array.from({ length: 100 }, (_, n) => ({ hook_id: `h${n}`, enabled: false, target: 'exec:x' }));
    await rest.database.knex('hooks').insert(many);
    expect((await rest.post(HOOKS, RUN)).status).toBe(409);
  });

  test('a test orders a delivery; deliveries are listed, shown, and ordered again', async () => {
    await rest.post(HOOKS, RUN);
    await rest.post(HOOKS, POSTED);
    const ids = [await ordered('run'), await ordered('tell')];
    expect((await rest.post(`${HOOKS}/nobody/test`)).status).toBe(404);
    const found = async (query: string) =>
      ((await rest.get(`${DELIVERIES}${query}`)).body as { content: { id: string }[] }).content.map(({ id }) => id);
    expect(await found('')).toEqual([...ids].reverse());
    expect(await found('?sort=createdTime,asc&size=1')).toEqual([ids[0]]);
    expect(await found('?hookId=run')).toEqual([ids[0]]);
    expect(await found('?state=DELIVERED')).toEqual([]);
    expect(await found('?transfer=17')).toEqual([]);
    const path = `${DELIVERIES}/${ids[0]!}`;
    expect((await rest.get(path)).body).toMatchObject({
      event: 'hook.test',
      state: 'WAITING',
      attempts: 0,
      output: null,
    });

    const { knex } = rest.database;
    await knex('hook_deliveries').update({
      state: 'RUNNING',
      attempts: 1,
      due_at: knex.raw("now() + interval '1 hour'"),
    });
    expect((await rest.post(`${path}/redeliver`)).status).toBe(409);
    const over = { state: 'GIVEN_UP', due_at: null, ended_at: knex.fn.now(), error: 'nobody there', output: 'said' };
    await knex('hook_deliveries').update(over);
    expect((await rest.get(path)).body).toMatchObject({ state: 'GIVEN_UP', error: 'nobody there', output: 'said' });
    const again = await rest.post(`${path}/redeliver`);
    expect([again.status, again.body]).toEqual([
      202,
      expect.objectContaining({ id: ids[0], state: 'WAITING', attempts: 1 }),
    ]);
    expect((await rest.post(`${DELIVERIES}/00000000-0000-4000-8000-000000000000/redeliver`)).status).toBe(404);
  });

  test('a hook that has something to deliver is deleted by force alone', async () => {
    await rest.post(HOOKS, RUN);
    await ordered('run');
    const refused = await rest.delete(`${HOOKS}/run`);
    expect([refused.status, (refused.body as { message: string }).message]).toEqual([
      409,
      'Hook "run" is in use: 1 delivery waits. Let that end first, or ask with force=true: its deliveries are given up.',
    ]);
    expect((await rest.delete(`${HOOKS}/run?force=true`)).status).toBe(204);
  });
});

withDatabase((harness) => {
  const rest = useRest(harness);

  test('hooks are off unless they are switched on: one can be prepared, and not enabled', async () => {
    for (const [hook, key] of [
      [POSTED, 'hooks.webhooks'],
      [RUN, 'hooks.directory'],
    ] as const) {
      const refused = await rest.post(HOOKS, hook);
      expect([refused.status, (refused.body as { message: string }).message]).toEqual([
        409,
        expect.stringContaining(key),
      ]);
      expect((await rest.post(HOOKS, { ...hook, enabled: false })).status).toBe(201);
      expect((await rest.put(`${HOOKS}/${hook.hookId}`, { enabled: true })).status).toBe(409);
    }
  });
});

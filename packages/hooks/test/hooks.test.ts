/** Hooks on PostgreSQL: what is ordered with an outcome, who takes it, when it is tried again, and when no more. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { SecretBox } from '@pesit-node/service';
import { emptyTables, readOpenMetrics, withDatabase } from '@pesit-node/service/testing';
import type { TestDatabase } from '@pesit-node/service/testing';

import { sealHooksAnew } from '../src/index.js';
import { MIGRATIONS, startHooks } from './support/pod.js';
import type { Pod, PodOptions } from './support/pod.js';

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const HOUR = 3_600_000;

interface Request {
  readonly body: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly response: ServerResponse;
}

withDatabase((harness) => {
  let database: TestDatabase;
  let directory: string;
  const closers: (() => unknown)[] = [];
  const secrets = new SecretBox([randomBytes(32)]);

  beforeAll(async () => {
    database = await harness.open({ migrations: [MIGRATIONS] });
    directory = await mkdtemp(join(tmpdir(), 'pesit-hooks-'));
  });
  beforeEach(() => emptyTables(database, 'pesit_server'));
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  });
  afterAll(() => rm(directory, { recursive: true, force: true }));

  const startPod = async (node = 'pod-1', more: PodOptions = {}): Promise<Pod> => {
    const { knex } = await harness.another(database);
    const pod = startHooks({ knex, directory, secrets, node, ...more });
    closers.push(() => pod.stop());
    return pod;
  };

  /** Answers each request with what comes next; the last answers all others. */
  const receiver = async (...answers: readonly ((request: Request) => void)[]) => {
    const requests: Request[] = [];
    const server = createServer((request, response) => {
      const pieces: Buffer[] = [];
      request.on('data', (piece: Buffer) => pieces.push(piece));
      request.on('end', () => {
        const body = JSON.parse(Buffer.concat(pieces).toString()) as Request['body'];
        const one = { body, headers: request.headers, response };
        requests.push(one);
        answers[Math.min(requests.length, answers.length) - 1]?.(one);
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    closers.push(() => {
      server.closeAllConnections();
      server.close();
    });
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, requests, server };
  };
  const says =
    (status: number, headers: Readonly<Record<string, string>> = {}) =>
    ({ response }: Request): void => {
      response.writeHead(status, headers).end();
    };

  const define = async (
    { store }: Pick<Pod, 'store'>,
    { url, ...values }: { readonly url?: string; readonly [field: string]: unknown },
    id = 'tell',
  ) => {
    const hook = url === undefined ? values : { secret: SECRET, ...values, target: url };
    expect(await store.create(id, hook)).toMatchObject({ hook_id: id });
  };
  const end = async (values: object = {}): Promise<number> => {
    const [row] = (await database.knex('transfers').insert({ status: 'IN_PROGRESS', ...values }, 'id')) as [
      { id: number },
    ];
    const ended = { status: 'COMPLETED', size: 7, end_time: '2026-11-23T01:02:03.456Z' };
    await database.knex('transfers').where(row).update(ended);
    return row.id;
  };
  const deliveries = () => database.knex('hook_deliveries').orderBy('position').select('*');

  test('an outcome orders a delivery for each hook that is for it, in its own transaction', async () => {
    const { knex } = database;
    const hook = (hook_id: string, more: object = {}) => ({ hook_id, enabled: true, target: 'exec:x', ...more });
    await knex('hooks').insert([
      hook('all'),
      hook('disabled', { enabled: false }),
      hook('each', { events: ['transfer.interrupted', 'transfer.failed'] }),
      hook('partner', { peers: ['ACME', 'OTHER'], direction: 'RECEIVE' }),
      hook('sent', { direction: 'SEND' }),
      hook('file', { virtual_files: ['F1'] }),
    ]);
    const ordered = async (): Promise<string[]> => {
      const rows = await knex('hook_deliveries').delete<{ hook_id: string; event: string }[]>(['hook_id', 'event']);
      return rows.map(({ hook_id: id, event }) => `${id} ${event}`).sort();
    };
    const id = await end();
    expect(await ordered()).toEqual(['all transfer.completed', 'partner transfer.completed']);
    // Nothing that ends: figures of a record that has ended already.
    await knex('transfers').where({ id }).update({ size: 8 });
    await knex('transfers').where({ id }).update({ status: 'COMPLETED', restartable: false });
    expect(await ordered()).toEqual([]);
    await end({ direction: 'SEND', partner_id: 'NOBODY', virtual_file_id: 'F1' });
    expect(await ordered()).toEqual(['all', 'file', 'sent'].map((one) => `${one} transfer.completed`));
    // A record that begins with its end: a message, a refusal.
    await knex('transfers').insert({ status: 'FAILED', partner_id: 'X' });
    expect(await ordered()).toEqual(['all transfer.failed', 'each transfer.failed']);
    const interrupted = { status: 'FAILED', restartable: true };
    await knex('transfers').where({ id }).update(interrupted);
    expect(await ordered()).toEqual(['each transfer.interrupted']);
    await knex('transfers').where({ id }).update({ restartable: false });
    expect(await ordered()).toEqual(['all transfer.failed', 'each transfer.failed', 'partner transfer.failed']);
    await knex('transfers').insert({ status: 'CANCELLED', partner_id: 'X' });
    expect(await ordered()).toEqual(['all transfer.cancelled']);
    const undone = knex.transaction(async (transaction) => {
      await transaction('transfers').insert({ status: 'COMPLETED' });
      throw new Error('undone');
    });
    await expect(undone).rejects.toThrow('undone');
    expect(await ordered()).toEqual([]);
  });

  test('an outcome is looked at only while a hook is enabled, whoever else changes the last ones meanwhile', async () => {
    const { knex } = database;
    const firing = async (): Promise<boolean[]> => {
      const { rows } = await knex.raw<{ rows: { fires: boolean }[] }>(
        `select tgenabled <> 'D' as fires from pg_trigger where tgrelid = 'transfers'::regclass and not tgisinternal`,
      );
      return rows.map(({ fires }) => fires);
    };
    const hook = (hook_id: string, enabled: boolean) => ({ hook_id, enabled, target: 'exec:x' });
    await knex.raw('drop trigger if exists transfers_hooks_insert on transfers');
    await knex.raw('drop trigger if exists transfers_hooks_update on transfers');
    await knex('hooks').insert(hook('off', false));
    expect(await firing()).toEqual([]);
    await knex('hooks').insert(hook('last', true));
    expect(await firing()).toEqual([true, true]);
    await knex('hooks').update({ enabled: false });
    expect(await firing()).toEqual([false, false]);
    await knex('hooks').where({ hook_id: 'last' }).update({ enabled: true });
    expect(await firing()).toEqual([true, true]);
    // The last one goes while the next one comes: whoever commits first.
    const { knex: other } = await harness.another(database);
    let creating: Promise<unknown> | undefined;
    await knex.transaction(async (transaction) => {
      await transaction('hooks').where({ hook_id: 'last' }).delete();
      creating = other('hooks')
        .insert(hook('next', true))
        .then(() => undefined);
    });
    await creating;
    expect(await firing()).toEqual([true, true]);
    await knex('hooks').delete();
    expect(await firing()).toEqual([false, false]);
    await end();
    expect(await deliveries()).toEqual([]);
    // One that is being written is waited for; the next one has its hook.
    await knex.transaction(async (transaction) => {
      await transaction('transfers').insert({ status: 'COMPLETED' });
      creating = other('hooks')
        .insert(hook('new', true))
        .then(() => undefined);
    });
    await creating;
    const id = await end();
    expect(await deliveries()).toMatchObject([{ hook_id: 'new', transfer: String(id) }]);
  });

  test('the receiver gets the record as it was at its outcome, once', async () => {
    const pod = await startPod();
    const { url, requests } = await receiver(says(200));
    await define(pod, { url });
    const id = await end({ message: Buffer.from('left out') });
    expect(await pod.ended(1)).toEqual(['delivered 1']);
    const [{ body, headers }] = requests as [Request];
    const [row] = (await deliveries()) as [
      { id: string; created_at: Date; state: string; attempts: number; status_code: number },
    ];
    expect(row).toMatchObject({
      state: 'DELIVERED',
      attempts: 1,
      status_code: 200,
      transfer: String(id),
      due_at: null,
    });
    expect(headers).toMatchObject({ 'webhook-id': row.id, 'webhook-attempt': '1' });
    expect(body).toEqual({
      ...{
        id: row.id,
        type: 'transfer.completed',
        timestamp: row.created_at.toISOString(),
        app: 'server',
        hook: 'tell',
      },
      data: { id, status: 'COMPLETED', size: 7, end: '2026-11-23T01:02:03.456Z', message: null },
    });
    expect(pod.audited).toMatchObject([{ action: 'delivered', objectType: 'hook delivery', object: row.id }]);
    const samples = readOpenMetrics(await pod.metrics.scrape());
    expect(samples.get('pesit_hook_attempts_total{by="webhook",outcome="delivered"}')).toBe(1);
    expect(samples.get('pesit_hook_deliveries_waiting')).toBe(0);
    expect(JSON.stringify([await pod.store.list(), pod.audited, pod.log.lines])).not.toContain(SECRET);
  });

  test('what fails is tried again under the same id, with the same body, until it is delivered', async () => {
    const pod = await startPod();
    const { url, requests } = await receiver(says(500), ({ response }) => response.destroy(), says(204));
    await define(pod, { url });
    await end();
    const ends = await pod.ended(3);
    expect(ends.map((one) => one.split(' ').slice(0, 2).join(' '))).toEqual(['failed 1', 'failed 2', 'delivered 3']);
    expect(new Set(requests.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
    expect(requests.map(({ headers }) => headers['webhook-attempt'])).toEqual(['1', '2', '3']);
    expect(new Set(requests.map(({ body }) => JSON.stringify(body))).size).toBe(1);
  });

  test('the delay before the next attempt is in the database, and Retry-After lengthens it', async () => {
    const pod = await startPod('pod-1', { delay: 60_000 });
    const { url } = await receiver(says(500), says(503, { 'Retry-After': '1800' }));
    await define(pod, { url });
    const seconds = async (): Promise<number[]> => {
      const { rows } = await database.knex.raw<{ rows: { left: number }[] }>(
        'select extract(epoch from due_at - now())::float8 as left from hook_deliveries order by position',
      );
      return rows.map(({ left }) => left);
    };
    await end();
    await pod.ended(1);
    await end();
    await pod.ended(2);
    const [first = 0, second = 0] = await seconds();
    expect(first).toBeGreaterThan(-600);
    expect(first).toBeLessThanOrEqual(60);
    expect(second).toBeGreaterThan(600);
    expect(second).toBeLessThanOrEqual(1800);
    expect(await deliveries()).toMatchObject([
      { state: 'WAITING', attempts: 1, error: 'the receiver answered 500: expected 200 to 299', status_code: 500 },
      { state: 'WAITING', attempts: 1, status_code: 503 },
    ]);
  });

  /** How many a pod counts: that failed, that nobody tried, that were too many. */
  const givenUp = async ({ metrics }: Pick<Pod, 'metrics'>): Promise<readonly (number | undefined)[]> => {
    const samples = readOpenMetrics(await metrics.scrape());
    return ['failed', 'not_tried', 'too_many'].map((cause) =>
      samples.get(`pesit_hook_given_up_total{cause="${cause}"}`),
    );
  };

  test('a delivery is given up when the next attempt would come too late: told, audited and counted', async () => {
    const pod = await startPod('pod-1', { delay: 2 * HOUR, settings: { 'hooks.give-up-after': 1 } });
    const { url } = await receiver(says(500));
    await define(pod, { url });
    const id = await end();
    const reason = 'the receiver answered 500: expected 200 to 299';
    expect(await pod.ended(1)).toEqual([`given up 1 ${reason}`]);
    expect(await deliveries()).toMatchObject([{ state: 'GIVEN_UP', error: reason, due_at: null }]);
    expect(pod.audited).toMatchObject([
      { action: 'given up', details: { hook: 'tell', transfer: String(id), reason } },
    ]);
    expect(pod.log.lines.join()).toContain('hook given up: nobody was told of the transfer');
    const samples = readOpenMetrics(await pod.metrics.scrape());
    expect(samples.get('pesit_hook_attempts_total{by="webhook",outcome="given_up"}')).toBe(1);
    expect(await givenUp(pod)).toEqual([1, 0, 0]);
  });

  test('410 disables the hook, and says so', async () => {
    const pod = await startPod();
    const { url } = await receiver(says(410), says(200));
    await define(pod, { url });
    await end();
    await pod.ended(1);
    const disabled = { enabled: false, disabled_reason: 'the receiver wants no more deliveries (410)' };
    expect(await pod.store.get('tell')).toMatchObject(disabled);
    expect(pod.audited.map(({ action, object }) => [action, object])).toContainEqual(['disabled', 'tell']);
    await end();
    expect(await deliveries()).toMatchObject([{ state: 'GIVEN_UP' }]);
    expect(await pod.store.update('tell', { enabled: true })).toMatchObject({ enabled: true, disabled_reason: null });
    await end();
    expect((await pod.ended(2)).at(-1)).toBe('delivered 1');
  });

  test('two pods: each delivery is in flight once at a time, and all are delivered once', async () => {
    const pods = [await startPod('pod-1'), await startPod('pod-2')] as const;
    let flying = 0;
    const most = new Map<unknown, number>();
    const { url, requests } = await receiver(({ body, response }) => {
      most.set(body['id'], (most.get(body['id']) ?? 0) + 1);
      flying += 1;
      setImmediate(() => {
        flying -= 1;
        response.end();
      });
    });
    await define(pods[0], { url });
    for (let n = 0; n < 40; n++) await end();
    while (pods[0].ends.length + pods[1].ends.length < 40) {
      await Promise.race(pods.map((pod) => pod.ended(pod.ends.length + 1)));
    }
    expect(flying).toBe(0);
    expect(requests).toHaveLength(40);
    expect([...most.values()]).toEqual(Array(40).fill(1));
    expect(new Set([...pods[0].ends, ...pods[1].ends])).toEqual(new Set(['delivered 1']));
  });

  test('a pod that dies in between is followed by another, with the next number; its own late word counts no more', async () => {
    const first = await startPod('pod-1');
    let answer: (() => void) | undefined;
    const { url, requests } = await receiver(({ response }) => (answer = () => response.end()), says(200));
    await define(first, { url });
    await end();
    while (answer === undefined) await new Promise(setImmediate);
    // Its time is over, as the database sees it.
    const second = await startPod('pod-2');
    await database.knex('hook_deliveries').update({ due_at: database.knex.raw("now() - interval '1 second'") });
    // Whichever of both takes it: nobody who has lost it decides.
    while (first.ends.length + second.ends.length === 0) await new Promise(setImmediate);
    answer();
    while (first.ends.length + second.ends.length < 2) await new Promise(setImmediate);
    expect(requests.map(({ headers }) => headers['webhook-attempt'])).toEqual(['1', '2']);
    expect([...first.ends, ...second.ends].sort()).toEqual(['delivered 2', 'interrupted 1 another pod has it']);
    expect(await deliveries()).toMatchObject([{ state: 'DELIVERED', attempts: 2 }]);
  });

  test('one whose receiver hangs does not keep the others waiting', async () => {
    const pod = await startPod();
    const hanging = await receiver(() => undefined);
    const quick = await receiver(says(200));
    await define(pod, { url: hanging.url, peers: ['HANGS'] }, 'hanging');
    await define(pod, { url: quick.url, peers: ['QUICK'] }, 'quick');
    for (let n = 0; n < 20; n++) await end({ partner_id: 'HANGS' });
    for (let n = 0; n < 5; n++) await end({ partner_id: 'QUICK' });
    expect(await pod.ended(5)).toEqual(Array(5).fill('delivered 1'));
    expect(hanging.requests.length).toBeLessThanOrEqual(2);
  });

  test('a pod that stops gives back what it has under way, and another one delivers it', async () => {
    const first = await startPod('pod-1');
    const { url, requests } = await receiver(() => undefined, says(200));
    await define(first, { url });
    await end();
    while (requests.length === 0) await new Promise(setImmediate);
    await first.stop();
    expect(first.ends).toEqual(['interrupted 1 the service stopped while the request was under way']);
    const second = await startPod('pod-2');
    expect(await second.ended(1)).toEqual(['delivered 2']);
  });

  test('an executable runs once an outcome, and what it says is kept', async () => {
    const pod = await startPod();
    await writeFile(join(directory, 'start-batch'), '#!/bin/sh\ncat >> got; echo started\n', { mode: 0o755 });
    await define(pod, { target: 'exec:start-batch' });
    await end();
    expect(await pod.ended(1)).toEqual(['delivered 1']);
    expect(await deliveries()).toMatchObject([{ state: 'DELIVERED', exit_code: 0, output: 'started\n' }]);
    const got = JSON.parse(await readFile(join(directory, 'got'), 'utf8')) as object;
    expect(got).toMatchObject({ type: 'transfer.completed', hook: 'tell', data: { status: 'COMPLETED', size: 7 } });
    await define(pod, { target: 'exec:nowhere', peers: ['X'] }, 'broken');
    await pod.store.update('tell', { enabled: false });
    await end({ partner_id: 'X' });
    expect((await pod.ended(2))[1]).toBe('failed 1 executable nowhere of hooks.directory cannot be run: there is none');
  });

  test('deliveries that nobody tries are given up: of a hook that is deleted at once, of a disabled one in time', async () => {
    const pod = await startPod();
    const { store, deliverer, ends } = pod;
    await deliverer.stop(0);
    await define({ store }, { target: 'exec:x' }, 'deleted');
    await define({ store }, { target: 'exec:x' }, 'disabled');
    await end();
    await store.delete('deleted');
    await store.update('disabled', { enabled: false });
    await deliverer.clean();
    expect(ends).toEqual(['given up 0 the hook was deleted']);
    const states = async () =>
      (await deliveries()).map(({ hook_id: id, state, error }: Record<string, unknown>) => [id, state, error]);
    const deleted = ['deleted', 'GIVEN_UP', 'the hook was deleted'];
    expect(await states()).toEqual(expect.arrayContaining([deleted, ['disabled', 'WAITING', null]]));
    await database.knex('hook_deliveries').update({ tried_since: database.knex.raw("now() - interval '25 hours'") });
    await deliverer.clean();
    const disabled = ['disabled', 'GIVEN_UP', 'the hook is disabled, and hooks.give-up-after is over'];
    expect(await states()).toEqual(expect.arrayContaining([deleted, disabled]));
    expect(await givenUp(pod)).toEqual([0, 2, 0]);
    await database.knex('hook_deliveries').update({ ended_at: database.knex.raw("now() - interval '8 days'") });
    await deliverer.clean();
    expect(await deliveries()).toEqual([]);
  });

  test('by number too: the oldest that wait are given up, and the oldest that are over are removed', async () => {
    const pod = await startPod('pod-1', { settings: { 'hooks.max-deliveries': 3 } });
    const { store, deliverer } = pod;
    await deliverer.stop(0);
    await define({ store }, { target: 'exec:x' });
    const left = async () =>
      (await deliveries()).map(
        ({ transfer, state }: Record<string, unknown>) => `${String(transfer)} ${String(state)}`,
      );
    const ids: number[] = [];
    for (let n = 0; n < 5; n++) ids.push(await end());
    const [first, second, ...others] = ids;
    const waiting = others.map((id) => `${id} WAITING`);
    await deliverer.clean();
    expect(await left()).toEqual([`${first} GIVEN_UP`, `${second} GIVEN_UP`, ...waiting]);
    expect((await deliveries())[0]).toMatchObject({ error: 'more than hooks.max-deliveries wait' });
    expect(await givenUp(pod)).toEqual([0, 0, 2]);
    const [third, fourth, fifth] = others;
    const newer = [await end(), await end()];
    await deliverer.clean();
    expect(await left()).toEqual([
      ...[second, third, fourth].map((id) => `${id} GIVEN_UP`),
      ...[fifth, ...newer].map((id) => `${id} WAITING`),
    ]);
  });

  test('a hook whose kind is switched off waits', async () => {
    const pod = await startPod();
    const { url, requests } = await receiver(says(200));
    await pod.stop();
    await define(pod, { url });
    await end();
    const off = await startPod('pod-2', { settings: { 'hooks.webhooks': false } });
    await writeFile(join(directory, 'ok'), '#!/bin/sh\n', { mode: 0o755 });
    await define(off, { target: 'exec:ok' }, 'runs');
    await end();
    expect(await off.ended(1)).toEqual(['delivered 1']);
    expect(requests).toEqual([]);
    const on = await startPod('pod-3');
    expect(await on.ended(2)).toEqual(['delivered 1', 'delivered 1']);
  });

  test('a secret is sealed for its hook alone, and sealed anew with another key', async () => {
    const pod = await startPod();
    await define(pod, { url: 'https://a.example/' });
    const sealed = (await pod.store.get('tell'))?.secret ?? '';
    expect(sealed).toMatch(/^v1[.]/);
    expect(sealed).not.toContain(SECRET.slice(6));
    expect(() => secrets.open(sealed, JSON.stringify(['hook', 'other', 'secret']))).toThrow();
    expect(await sealHooksAnew(database.knex, new SecretBox([randomBytes(32)]))).toEqual({
      sealed: 0,
      unreadable: ['hook tell'],
    });
  });
});

/** Requests that come, transfers that are taken and attempts that end at the same time, in one statement each: on the real database. */
import { randomUUID } from 'node:crypto';

import { afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { emptyTables, findDatabase, holdStatement, loseDatabase, withDatabase } from '@pesit-node/service/testing';
import type { TestDatabase } from '@pesit-node/service/testing';
import fc from 'fast-check';

import { CLIENT_MIGRATIONS } from '../src/migrations/index.js';
import type { Job, NewTransfer } from '../src/transfers/row.js';
import { transferStore } from '../src/transfers/store.js';
import type { TransferStore } from '../src/transfers/store.js';
import { answerLost } from './support/faults.js';

const INSERT = /^\s*with eligible as/;
const END = /update transfers t set\s+status = .*end_time/s;

withDatabase((harness) => {
  let database: TestDatabase;
  let store: TransferStore;

  beforeAll(async () => {
    database = await harness.open({ migrations: [CLIENT_MIGRATIONS] });
  });
  beforeEach(async () => {
    await emptyTables(database, 'pesit_client');
    store = transferStore(database.knex);
    await remote('bank');
  });
  afterEach(() => findDatabase(database));

  const remote = (name: string, more: object = {}) =>
    database
      .knex('remote_servers')
      .insert({ name, host: 'h', port: 1, server_id: 'S', client_id: 'C', enabled: true, dialect: 'raw', ...more });
  const request = (more: Partial<NewTransfer> = {}): NewTransfer => ({
    ...{ id: randomUUID(), type: 'FILE', direction: 'SEND', server: 'bank', filename: 'f', settings: {} },
    ...{ partnerId: undefined, remoteFilename: undefined, virtualFile: 'V', sourcePath: undefined, size: undefined },
    ...{ sourceVersion: undefined, hasContent: false },
    ...more,
  });
  const statements = (matching: RegExp): readonly string[] => {
    const all: string[] = [];
    database.knex.on('query', ({ sql }: { sql: string }) => matching.test(sql) && all.push(sql));
    return all;
  };
  const rows = () => database.knex('transfers').orderBy('position').select();
  /** The first one has a statement for itself, the others go together. */
  const inserted = (transfers: readonly NewTransfer[], room = 100) =>
    Promise.allSettled(transfers.map((one) => store.insert(one, room)));
  const limits = { node: 'a', leaseSeconds: 30, maxPerServer: 5, slots: 64, freely: 64, minQueued: 1, countTo: 100 };
  const taken = async (count: number): Promise<readonly Job[]> => {
    for (let i = 0; i < count; i++) await store.insert(request(), 100);
    return (await store.take({ ...limits, maxPerServer: 64 })).jobs;
  };

  test('requests, takes and ends read no history, by plans that are made while the table is new', async () => {
    await database.knex.transaction(async (trx) => {
      const within = transferStore(trx);
      // Counts in what earlier transactions of its connection have not yet reported.
      const scans = async () => {
        const sql = "select seq_scan::int, idx_scan::int from pg_stat_xact_user_tables where relname = 'transfers'";
        const { rows } = await trx.raw<{ rows: [{ seq_scan: number; idx_scan: number }] }>(sql);
        return rows[0];
      };
      const before = await scans();
      await within.insert(request(), 100);
      await within.insert(request({ settings: { ordered: true } }), 100);
      const { jobs } = await within.take(limits);
      for (const job of jobs) await within.end(job, { status: 'COMPLETED' });
      const { seq_scan, idx_scan } = await scans();
      expect(jobs).toHaveLength(2);
      expect(seq_scan).toBe(before.seq_scan);
      expect(idx_scan).toBeGreaterThan(before.idx_scan);
    });
  });

  describe('requests that come at the same time', () => {
    test('go into the queue in their order, by two statements', async () => {
      const sourceVersion = { size: 3, mtimeNs: '1700000000123456789' };
      const transfers = [
        request({ partnerId: 'P', settings: { label: 'é', pesitTransferId: 7 } }),
        request({ server: 1, size: 5_000_000_000, hasContent: true }),
        request({ sourcePath: '/x', sourceVersion, direction: 'RECEIVE', remoteFilename: 'r' }),
      ];
      const heard = statements(INSERT);
      const answers = await inserted(transfers);
      expect(heard).toHaveLength(2);
      const found = [
        { partner_id: 'P', server_name: 'bank', settings: { label: 'é', pesitTransferId: 7 }, pesit_transfer_id: 7 },
        { partner_id: 'C', server_id: 1, size: 5_000_000_000, content: 'KEPT', remote_filename: null },
        { source_path: '/x', source_version: sourceVersion, direction: 'RECEIVE', remote_filename: 'r' },
      ].map((one, i) => ({ id: transfers[i]?.id, status: 'PENDING', ...one }));
      expect(await rows()).toMatchObject(found);
      expect(answers).toMatchObject(found.map((value) => ({ value })));
    });

    test('no more than there is room for, those of unknown and disabled servers aside', async () => {
      await remote('closed', { enabled: false });
      await inserted([request(), request()]);
      const transfers = [request(), request({ server: 'closed' }), request({ server: 99 }), request(), request()];
      const answers = await inserted(transfers, 4);
      const values = answers.map((answer) => answer.status === 'fulfilled' && answer.value?.id);
      expect(values).toEqual([transfers[0]?.id, undefined, undefined, transfers[3]?.id, undefined]);
      expect(await rows()).toHaveLength(4);
    });

    test('one whose key came before is told so, alone, and takes no room', async () => {
      const keyed = (key: string) => request({ idempotency: { key, hash: 'h' } });
      await inserted([keyed('k')]);
      const transfers = [request(), keyed('k'), keyed('l'), keyed('l'), request()];
      const answers = await inserted(transfers, 4);
      const conflict = { status: 'rejected', reason: { code: '23505', constraint: 'transfers_idempotency_key' } };
      const done = { status: 'fulfilled', value: { status: 'PENDING' } };
      expect(answers).toMatchObject([done, conflict, done, conflict, done]);
      expect(await rows()).toHaveLength(4);
    });

    test('one that cannot be stored fails alone', async () => {
      const answers = await inserted([request(), request(), request({ filename: 'a\0b' }), request()]);
      expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled']);
      expect(await rows()).toHaveLength(3);
    });

    test('the answer is lost: all of that statement hear it, and their transfers are there', async () => {
      void answerLost(database, INSERT);
      const answers = await inserted([request(), request(), request()]);
      expect(answers.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled']);
      void answerLost(database, /coalesce\(e\.partner_id/);
      await Promise.allSettled([store.insert(request(), 100)]);
      expect(await rows()).toHaveLength(4);
    });
  });

  describe('attempts that end at the same time', () => {
    test('each by its own fence, and as a wish to cancel decides', async () => {
      const [done, failed, later, lost, cancelled] = (await taken(5)) as [Job, Job, Job, Job, Job];
      await database.knex('transfers').where({ id: lost.id }).update({ fence: 2 });
      await store.cancel(cancelled.id, 'no');
      const heard = statements(END);
      const reply = Buffer.from([0, 0xff]);
      const answers = await Promise.all([
        store.end(done, { status: 'COMPLETED', size: 5, checksum: 'c', reply, roundTrip: 1.5, nameConfirmed: true }),
        store.end(failed, {
          status: 'FAILED',
          errorCode: 'E',
          errorMessage: 'm',
          diagnostic: '2-205',
          restartable: true,
        }),
        store.end(later, { status: 'PENDING', counts: 'later', delay: 60_000, restartable: false }),
        store.end(lost, { status: 'COMPLETED' }),
        store.end(cancelled, { status: 'FAILED', errorCode: 'E' }),
      ]);
      // The first, the others, and the one that was left out.
      expect(heard).toHaveLength(3);
      const found = [
        { status: 'COMPLETED', size: 5, checksum: 'c', reply, round_trip: 1.5, name_confirmed: true, failures: 0 },
        { status: 'FAILED', error_code: 'E', error_message: 'm', diagnostic: '2-205', restartable: true, attempts: 1 },
        { status: 'PENDING', attempts: 0, postponements: 1, end_time: null, next_attempt_at: expect.any(Date) },
        { status: 'IN_PROGRESS', fence: 2, end_time: null },
        { status: 'CANCELLED', end_time: expect.any(Date) },
      ];
      expect(await rows()).toMatchObject(found);
      expect(answers).toMatchObject(found.map((one, i) => (i === 3 ? undefined : one)));
    });

    test('one whose record is locked keeps no other waiting', async () => {
      const [one, ...others] = await taken(4);
      const holder = await database.knex.transaction();
      await holder('transfers').where({ id: one?.id }).forUpdate();
      const waits = store.end(one as Job, { status: 'COMPLETED' });
      const ended = await Promise.all(others.map((job) => store.end(job, { status: 'COMPLETED' })));
      expect(ended).toMatchObject(others.map(() => ({ status: 'COMPLETED' })));
      await holder.commit();
      expect(await waits).toMatchObject({ status: 'COMPLETED' });
    });

    test('the content of a request goes with the statuses that say so', async () => {
      await inserted([request({ hasContent: true }), request({ hasContent: true })]);
      const { jobs } = await store.take(limits);
      const ends = ['COMPLETED', 'FAILED'] as const;
      await Promise.all(ends.map((status, i) => store.end(jobs[i] as Job, { status, errorCode: 'E' }, ['COMPLETED'])));
      expect((await rows()).map(({ content }) => content as string)).toEqual(['REMOVED', 'KEPT']);
    });

    test.each([
      ['before the statement', () => loseDatabase(database), 'IN_PROGRESS'],
      ['after it, with its answer', () => void answerLost(database, END), 'COMPLETED'],
    ])('the database is lost %s: all of it hear so', async (_when, lose, status) => {
      const jobs = await taken(3);
      const { held, release } = holdStatement(database, END);
      const first = store.end(jobs[0] as Job, { status: 'COMPLETED' });
      const others = jobs.slice(1).map((job) => store.end(job, { status: 'COMPLETED' }));
      await held;
      lose();
      release();
      await first;
      const answers = await Promise.allSettled(others);
      expect(answers.map((answer) => answer.status)).toEqual(['rejected', 'rejected']);
      findDatabase(database);
      expect((await rows()).map((row) => row.status as string)).toEqual(['COMPLETED', status, status]);
    });
  });

  /**
   * As the queue has it, one after the other: the server with the fewest under way, then the most urgent of its rows, then the oldest.
   * Of an order only the first row is there; the one behind it waits for its end.
   */
  const oneByOne = (servers: readonly Remote[], asked: Asked): readonly string[] => {
    const state = servers.map((one) => ({ ...one }));
    const left = servers.map(({ queue }) => {
      const heads = new Set<string>();
      const firsts = queue.filter(({ order }) => order !== undefined && !heads.has(order) && heads.add(order));
      const free = queue.filter(({ order }) => order === undefined);
      const inTime = [...free, ...firsts].filter(({ isExpired }) => !isExpired);
      const isDue = ({ due }: Queued): boolean => due !== undefined && due <= 0;
      return [0, 1, 2].map((priority) => {
        const ofThis = inTime.filter((one) => one.priority === priority).sort((a, b) => a.position - b.position);
        return {
          // One of an order comes in its own turn, whether it waited or not.
          fresh: ofThis.filter((one) => one.due === undefined || (one.order !== undefined && isDue(one))),
          delayed: ofThis
            .filter((one) => one.order === undefined && isDue(one))
            .sort((a, b) => (a.due ?? 0) - (b.due ?? 0)),
        };
      });
    });
    let queued = servers.flatMap(({ isEnabled, queue }) => (isEnabled ? queue : [])).length;
    const all: string[] = [];
    while (all.length < asked.slots) {
      const heads = state.flatMap(({ isEnabled, running, most }, i) => {
        const ofServer = left[i]?.find(({ fresh, delayed }) => fresh.length + delayed.length > 0);
        const [a, b] = [ofServer?.fresh[0], ofServer?.delayed[0]];
        const head = a === undefined || (b !== undefined && b.position < a.position) ? b : a;
        const mayRun = running === 0 || all.length < asked.freely || queued >= asked.minQueued;
        return isEnabled && head !== undefined && running < Math.min(most ?? 2, 2) && mayRun
          ? [{ i, running, head }]
          : [];
      });
      const [next] = heads.sort(
        (a, b) => a.running - b.running || a.head.priority - b.head.priority || a.head.position - b.head.position,
      );
      if (next === undefined) break;
      const { fresh, delayed } = left[next.i]?.[next.head.priority] as { fresh: Queued[]; delayed: Queued[] };
      (fresh[0] === next.head ? fresh : delayed).shift();
      (state[next.i] as { running: number }).running++;
      queued--;
      all.push(next.head.id);
    }
    return all;
  };

  test('several are taken at once that one after the other would be', async () => {
    const server = fc.record({
      most: fc.constantFrom(null, 1, 2, 5),
      running: fc.integer({ min: 0, max: 2 }),
      isEnabled: fc.constantFrom(true, true, true, false),
    });
    // Undefined: not tried yet. Seconds: the next attempt is due since then, or in so long.
    const row = fc.record({
      server: fc.nat(),
      due: fc.constantFrom(undefined, undefined, -30, -20, -10, 3600),
      priority: fc.constantFrom(1, 1, 0, 2),
      order: fc.constantFrom(undefined, undefined, 'A', 'B'),
      isExpired: fc.constantFrom(false, false, false, true),
    });
    const asked = fc.record({ slots: fc.integer({ min: 1, max: 8 }), freely: fc.nat(8), minQueued: fc.nat(12) });
    await fc.assert(
      fc.asyncProperty(
        fc.array(server, { minLength: 1, maxLength: 4 }),
        fc.array(row, { maxLength: 14 }),
        asked,
        async (given, queue, { slots, freely, minQueued }) => {
          await emptyTables(database, 'pesit_client');
          const servers = given.map((one) => ({ ...one, queue: [] as Queued[] }));
          for (const [i, { most, isEnabled }] of given.entries()) {
            await remote(`s${i}`, { max_connections: most, enabled: isEnabled });
          }
          const insert = (index: number, more: object) =>
            database.knex('transfers').insert({
              ...{ id: randomUUID(), status: 'PENDING', type: 'FILE', direction: 'SEND', server_id: index + 1 },
              ...{ server_name: 's', partner_id: 'p', filename: 'f', settings: '{}', ...more },
            });
          for (const [i, { running }] of given.entries()) for (let n = 0; n < running; n++) await insert(i, {});
          const until = { lease_until: database.knex.fn.now(), node: 'b' };
          await database.knex('transfers').update({ status: 'IN_PROGRESS', fence: 1, ...until });
          for (const [position, { server: at, due, priority, order, isExpired }] of queue.entries()) {
            const id = randomUUID();
            const seconds = due === undefined ? undefined : due + position / 1000;
            const when = database.knex.raw('now() + make_interval(secs => ?)', [seconds ?? 0]);
            const expires = isExpired ? { expires_at: database.knex.fn.now() } : {};
            const policy = { priority, order_key: order ?? null, ...expires };
            await insert(at % given.length, { id, ...policy, next_attempt_at: seconds === undefined ? null : when });
            servers[at % given.length]?.queue.push({ id, position, due: seconds, priority, order, isExpired });
          }
          const want = { slots, freely, minQueued };
          const { jobs, queued } = await store.take({ ...limits, maxPerServer: 2, ...want });
          const expected = oneByOne(servers, want);
          expect(jobs.map(({ id }) => id).sort()).toEqual([...expected].sort());
          expect(jobs.every(({ status, fence, node }) => status === 'IN_PROGRESS' && fence === 1 && node === 'a')).toBe(
            true,
          );
          expect(queued).toBe(servers.flatMap((one) => (one.isEnabled ? one.queue : [])).length);
        },
      ),
      { numRuns: 50 },
    );
  });
});

interface Queued {
  readonly id: string;
  readonly position: number;
  readonly due: number | undefined;
  readonly priority: number;
  readonly order: string | undefined;
  readonly isExpired: boolean;
}

interface Remote {
  readonly most: number | null;
  readonly running: number;
  readonly isEnabled: boolean;
  readonly queue: readonly Queued[];
}

interface Asked {
  readonly slots: number;
  readonly freely: number;
  readonly minQueued: number;
}

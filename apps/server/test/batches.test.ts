/** Transfers that begin and end at the same time, and look-ups of their partners and files, in one statement: on the real database, each by its own fence, and killed in the middle. */
import { randomUUID } from 'node:crypto';

import { afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import {
  emptyTables,
  findDatabase,
  holdAnswer,
  holdStatement,
  loseAnswer,
  loseDatabase,
  withDatabase,
} from '@pesit-node/service/testing';
import type { TestDatabase } from '@pesit-node/service/testing';

import { MIGRATIONS } from '../src/migrations/index.js';
import { PartnerStore } from '../src/partners/store.js';
import { TransferJournal } from '../src/transfers/journal.js';
import type { RecordHandle, TransferCompletion, TransferStart } from '../src/transfers/record.js';
import { VirtualFileStore } from '../src/virtual-files/store.js';

const BEGIN = /insert into transfers \(status, transfer_id/;
const COMPLETION = /update transfers t set status = 'COMPLETED'/;

withDatabase((harness) => {
  let database: TestDatabase;
  let journal: TransferJournal;

  beforeAll(async () => {
    database = await harness.open({ migrations: [MIGRATIONS] });
  });
  beforeEach(async () => {
    await emptyTables(database, 'pesit_server');
    const limits = { enabled: true, access_type: 'BOTH', password_hash: 'x' };
    const ids = ['ACME', 'OTHER'];
    await database.knex('partners').insert(ids.map((partner_id) => ({ partner_id, ...limits, quota_files: 1000 })));
    await database.knex('listeners').insert({
      ...{ server_id: 'NODE1', port: 6502, auto_start: false, max_connections: 10, read_timeout: 30 },
      ...{ strict_server_id: false, tcpip_header: 'auto' },
    });
    journal = journalWith(30_000);
  });
  afterEach(() => findDatabase(database));

  const journalWith = (patienceMs: number) =>
    new TransferJournal({
      ...{ knex: database.knex, node: 'node-a', instance: randomUUID(), patienceMs },
      ...{ events: { publish: () => undefined }, database: { ready: true, whenReady: () => Promise.resolve() } },
    });
  const start = (more: Partial<TransferStart> = {}): TransferStart => ({
    ...{ partnerId: 'ACME', direction: 'RECEIVE', virtualFileId: 'IN', transferId: 0, listener: 'NODE1' },
    ...{ sessionId: 'S', remoteAddress: '127.0.0.1', freeMessage: Buffer.from([0xc1, 0]) },
    staging: { key: randomUUID(), directory: '/in', overwrite: false, announced: 7 },
    ...more,
  });
  const source = { path: '/out/x', version: { size: 5, mtimeNs: 1_700_000_000_123_456_789n }, pacings: [] };
  const end = (path: string, more: Partial<TransferCompletion> = {}): TransferCompletion => ({
    ...{ path, filename: path.slice(4), size: 5, checksum: undefined, compression: 'none' },
    ...{ dataBytes: 5, articles: 1, syncPoint: 0, ...more },
  });

  /** The statements that match, of those that are made from now on. */
  const heard = (statement: RegExp): readonly string[] => {
    const all: string[] = [];
    database.knex.on('query', ({ sql }: { sql: string }) => statement.test(sql) && all.push(sql));
    return all;
  };
  /** What `work` begins at once goes into two statements: the first, and one for all others. */
  const together = async <T>(
    statement: RegExp,
    work: () => readonly Promise<T>[],
    meanwhile: () => void = () => undefined,
  ) => {
    const { held, release } = holdStatement(database, statement);
    const all = work();
    await held;
    meanwhile();
    release();
    return Promise.allSettled(all);
  };
  const begun = (...starts: readonly TransferStart[]) => Promise.all(starts.map((one) => journal.begin(one)));
  const four = () => begun(start(), start(), start({ partnerId: 'OTHER' }), start());
  const complete = (record: RecordHandle, path: string, more?: Partial<TransferCompletion>) =>
    journal.completions.complete(record, end(path, more), journal.completions.deadline());
  const records = () => database.knex('transfers').orderBy('id').select();
  const counts = async () => ({
    partners: (await database.knex('partners').orderBy('partner_id').pluck('transfer_count')) as number[],
    listener: ((await database.knex('listeners').pluck('total_transfers')) as number[])[0],
  });

  describe('transfers that begin', () => {
    test('each has its own record, and what it is known by', async () => {
      const statements = heard(BEGIN);
      const starts = [
        start({ sessionId: 'A', transferId: 41 }),
        start({ sessionId: 'B', label: 'é' }),
        start({ sessionId: 'C', direction: 'SEND', staging: undefined, source }),
      ];
      const answers = await together(BEGIN, () => starts.map((one) => journal.begin(one)));
      expect(statements).toHaveLength(2);
      const rows = await records();
      expect(rows).toMatchObject([
        { session_id: 'A', transfer_id: 41, context: starts[0]?.staging?.key, announced: 7, overwrite: false },
        { session_id: 'B', label: 'é', directory: '/in', free_message: Buffer.from([0xc1, 0]), status: 'IN_PROGRESS' },
        { session_id: 'C', path: '/out/x', source_size: 5, pacings: [], overwrite: true, directory: null },
      ]);
      const exact = await database.knex.raw('select source_mtime_ns::text as ns from transfers where source_size = 5');
      expect(exact).toMatchObject({ rows: [{ ns: '1700000000123456789' }] });
      expect(answers).toMatchObject(
        rows.map(({ id, transfer_id }) => ({ value: { id, fence: 1, transferId: transfer_id } })),
      );
    });

    test('one whose values cannot be stored fails alone', async () => {
      const bad = start({ label: 'a\0b' });
      const answers = await together(BEGIN, () => [start(), start(), bad, start()].map((one) => journal.begin(one)));
      expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled']);
      expect(await records()).toHaveLength(3);
    });

    test('the database is lost before the statement: all are told to come again, and nothing is written', async () => {
      const work = () => [start(), start(), start()].map((one) => journal.begin(one));
      const answers = await together(BEGIN, work, () => loseDatabase(database));
      const again = { status: 'rejected', reason: { diagnostic: '2-201' } };
      expect(answers).toMatchObject([{ status: 'fulfilled' }, again, again]);
      findDatabase(database);
      expect(await records()).toHaveLength(1);
    });
  });

  describe('transfers that are complete', () => {
    test('one statement for all, one sum for each partner and for the listener', async () => {
      const all = await four();
      const statements = heard(COMPLETION);
      await together(COMPLETION, () => all.map((record, i) => complete(record, `/in/${i}`)));
      expect(statements).toHaveLength(2);
      expect(await records()).toMatchObject(all.map((_, i) => ({ status: 'COMPLETED', path: `/in/${i}`, size: 5 })));
      expect(await counts()).toEqual({ partners: [3, 1], listener: 4 });
    });

    test('one that another process has taken over fails alone, one that is complete already is told so', async () => {
      const all = await four();
      const [, lost, done] = all.map(({ id }) => id);
      await complete(all[2] as RecordHandle, '/in/2');
      await database.knex('transfers').where({ id: lost }).update({ fence: 2, attempts: 2 });
      const answers = await together(COMPLETION, () => all.map((record, i) => complete(record, `/in/${i}`)));
      expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled']);
      expect(answers[1]).toMatchObject({ reason: { diagnostic: '2-207' } });
      const rows = await records();
      expect(rows.find(({ id }) => id === lost)).toMatchObject({ status: 'IN_PROGRESS', path: null });
      expect(rows.find(({ id }) => id === done)).toMatchObject({ status: 'COMPLETED' });
      expect(await counts()).toEqual({ partners: [2, 1], listener: 3 });
    });

    test('one whose record is locked keeps no other waiting', async () => {
      const [one, ...others] = await four();
      const { id } = one as RecordHandle;
      const transaction = await database.knex.transaction();
      await transaction('transfers').where({ id }).forUpdate();
      const waits = complete(one as RecordHandle, '/in/0');
      await Promise.all(others.map((record, i) => complete(record, `/in/${i + 1}`)));
      expect(await counts()).toEqual({ partners: [2, 1], listener: 3 });
      await transaction.commit();
      await waits;
      expect(await counts()).toEqual({ partners: [3, 1], listener: 4 });
    });

    test('two of the same path: what waits to be fetched is there once, what was read is the last', async () => {
      const received = await begun(start(), start(), start());
      await together(COMPLETION, () => received.map((record) => complete(record, '/in/same')));
      expect(await database.knex('waiting_files').select('transfer', 'path')).toEqual([
        { transfer: received[2]?.id, path: '/in/same' },
      ]);
      const read = start({ direction: 'SEND', staging: undefined, source });
      const sent = await begun(read, read, read);
      const sentMtimeNs = source.version.mtimeNs;
      const answers = await together(COMPLETION, () =>
        sent.map((record) => complete(record, '/out/x', { sentMtimeNs })),
      );
      expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'fulfilled']);
      const ns = database.knex.raw('mtime_ns::text as ns');
      expect(await database.knex('sent_files').select('transfer', 'path', ns)).toEqual([
        { transfer: sent[2]?.id, path: '/out/x', ns: String(sentMtimeNs) },
      ]);
    });

    test.each([
      ['before the statement, and comes back', () => loseDatabase(database), () => findDatabase(database)],
      ['after it, and its answer with it', () => loseAnswer(database, COMPLETION), () => undefined],
    ])('the database is lost %s: each COMPLETED once', async (_when, lose, find) => {
      const all = await four();
      const meanwhile = () => {
        lose();
        setTimeout(find, 100);
      };
      const answers = await together(COMPLETION, () => all.map((record, i) => complete(record, `/in/${i}`)), meanwhile);
      expect(answers.map(({ status }) => status)).toEqual(all.map(() => 'fulfilled'));
      expect((await records()).map(({ status }) => status as string)).toEqual(all.map(() => 'COMPLETED'));
      expect(await counts()).toEqual({ partners: [3, 1], listener: 4 });
    });

    test('the answer is lost, and the database stays away: all are told no, each is withdrawn', async () => {
      journal = journalWith(1500);
      const all = await four();
      const meanwhile = () => loseAnswer(database, COMPLETION, () => loseDatabase(database));
      const answers = await together(COMPLETION, () => all.map((record, i) => complete(record, `/in/${i}`)), meanwhile);
      const no = { status: 'rejected', reason: { diagnostic: '2-201' } };
      // The first one was in the statement before.
      expect(answers).toMatchObject([{ status: 'fulfilled' }, no, no, no]);
      findDatabase(database);
      await journal.settled(30_000);
      const failed = { status: 'FAILED', withdrawn: true, restartable: true, path: null };
      expect(await records()).toMatchObject([{ status: 'COMPLETED' }, failed, failed, failed]);
      expect(await counts()).toEqual({ partners: [1, 0], listener: 1 });
    });
  });

  describe('partners and virtual files that are looked up', () => {
    const PARTNER = /from partners\s+where partner_id = any/;
    const ACCESS = /left join virtual_files/;
    /** Values of the statements that match, of those that are made from now on. */
    const asked = (statement: RegExp): readonly unknown[] => {
      const all: unknown[] = [];
      database.knex.on('query', ({ sql, bindings }: { sql: string; bindings: unknown }) => {
        if (statement.test(sql)) all.push(bindings);
      });
      return all;
    };
    const stores = () => ({ partners: new PartnerStore(database.knex), files: new VirtualFileStore(database.knex) });
    const names = (answers: readonly PromiseSettledResult<{ readonly partner_id: string } | undefined>[]) =>
      answers.map((one) => (one.status === 'rejected' ? 'failed' : one.value?.partner_id));
    beforeEach(async () => {
      const files = new VirtualFileStore(database.knex);
      for (const id of ['IN', 'OUT']) await files.create(id, { direction: 'BOTH', enabled: true });
    });

    test('equal partners are one of the statement; each caller gets its own, or that there is none', async () => {
      const { partners } = stores();
      const statements = asked(PARTNER);
      const ids = ['ACME', 'OTHER', 'NOBODY', 'OTHER', 'ACME', 'a"\\,{}é'];
      const answers = await together(PARTNER, () => ids.map((id) => partners.get(id)));
      expect(names(answers)).toEqual(['ACME', 'OTHER', undefined, 'OTHER', 'ACME', undefined]);
      expect(statements).toEqual([[['ACME']], [['OTHER', 'NOBODY', 'ACME', 'a"\\,{}é']]]);
    });

    test('equal requests of a file are one of the statement; a file or a partner that does not exist is said', async () => {
      const { files } = stores();
      const statements = asked(ACCESS);
      await database.knex('partners').where('partner_id', 'OTHER').update({ quota_files: 7, enabled: false });
      const requests = [
        ['IN', 'ACME'],
        ['OUT', 'OTHER'],
        ['IN', 'ACME'],
        ['OUT', 'ACME'],
        ['OUT', 'OTHER'],
        ['', 'ACME'],
        ['IN', 'NOBODY'],
      ] as const;
      const answers = await together(ACCESS, () => requests.map(([file, partner]) => files.access(file, partner)));
      const [partner, other] = [
        { partner_id: 'ACME', enabled: true },
        { partner_id: 'OTHER', enabled: false },
      ];
      const [acme, others] = [{ quota_files: 1000 }, { quota_files: 7 }];
      expect(answers.map((one) => (one.status === 'fulfilled' ? one.value : one.reason))).toMatchObject([
        { file: { file_id: 'IN' }, partner, quota: acme },
        { file: { file_id: 'OUT' }, partner: other, quota: others },
        { file: { file_id: 'IN' }, partner, quota: acme },
        { file: { file_id: 'OUT' }, partner, quota: acme },
        { file: { file_id: 'OUT' }, partner: other, quota: others },
        { file: undefined, partner, quota: acme },
        { file: { file_id: 'IN' }, partner: undefined, quota: { quota_files: null } },
      ]);
      expect(statements).toEqual([
        [['IN'], ['ACME']],
        [
          ['OUT', 'IN', 'OUT', '', 'IN'],
          ['OTHER', 'ACME', 'ACME', 'ACME', 'NOBODY'],
        ],
      ]);
    });

    test('one that PostgreSQL cannot read fails alone', async () => {
      const { partners, files } = stores();
      const found = await together(PARTNER, () => ['ACME', 'OTHER', 'A\0', 'ACME'].map((id) => partners.get(id)));
      expect(names(found)).toEqual(['ACME', 'OTHER', 'failed', 'ACME']);
      const answers = await together(ACCESS, () => ['IN', 'OUT', 'I\0', 'IN'].map((id) => files.access(id, 'ACME')));
      expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled']);
    });

    test('the database is lost: all are told so', async () => {
      const { partners } = stores();
      const work = () => ['ACME', 'OTHER', 'ACME'].map((id) => partners.get(id));
      const answers = await together(PARTNER, work, () => loseDatabase(database));
      expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected']);
    });

    test('who asks after a change is never told what was before, though the statement of another has its answer yet', async () => {
      const { partners, files } = stores();
      const [partner, access] = [holdAnswer(database, PARTNER), () => holdAnswer(database, ACCESS)];
      const before = partners.get('ACME');
      await partner.held;
      const { held, release } = access();
      const granted = files.access('IN', 'ACME');
      await held;
      await database.knex('partners').where('partner_id', 'ACME').update({ access_type: 'READ', enabled: false });
      await database.knex('virtual_files').where('file_id', 'IN').update({ enabled: false });
      const after = partners.get('ACME');
      const refused = files.access('IN', 'ACME');
      partner.release();
      release();
      expect(await before).toMatchObject({ access_type: 'BOTH', enabled: true });
      expect(await granted).toMatchObject({ file: { enabled: true }, partner: { access_type: 'BOTH', enabled: true } });
      const now = { access_type: 'READ', enabled: false };
      expect(await after).toMatchObject(now);
      expect(await refused).toMatchObject({ file: { enabled: false }, partner: now });
    });

    test('PostgreSQL plans them once a connection, however many are asked for, and finds each by its key', async () => {
      const limits = { enabled: true, access_type: 'BOTH', password_hash: 'x' };
      const ids = Array.from({ length: 3000 }, (_, i) => `P${i}`);
      await database.knex('partners').insert(ids.map((partner_id) => ({ partner_id, ...limits })));
      await database.knex.raw('analyze partners');
      // One connection for all, and a new one: PostgreSQL weighs the first five plans, those of empty tables too.
      await database.knex.destroy();
      database.knex.initialize();
      await database.knex.transaction(async (trx) => {
        const [partners, files] = [new PartnerStore(trx), new VirtualFileStore(trx)];
        for (const count of [1, 2, 20, 3, 1, 9, 20, 1, 2, 5]) {
          await Promise.all(ids.slice(0, count).map((id) => partners.get(id)));
          await Promise.all(ids.slice(0, count).map((id) => files.access('IN', id)));
        }
        const plans = (await trx('pg_prepared_statements').whereIn('name', ['server_partner', 'server_access'])) as {
          readonly custom_plans: number;
          readonly generic_plans: number;
        }[];
        expect(plans).toMatchObject(['any', 'unnest'].map(() => ({ custom_plans: 5 })));
        const arrays = { server_partner: `('{P1}')`, server_access: `('{IN}', '{P1}')` };
        for (const [name, values] of Object.entries(arrays)) {
          const { rows } = await trx.raw<{ rows: object[] }>(`explain (costs off) execute ${name} ${values}`);
          expect(JSON.stringify(rows)).not.toContain('Seq Scan on partners');
        }
      });
    });
  });
});

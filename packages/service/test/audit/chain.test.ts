import { createHash } from 'node:crypto';

import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { Audit, createAuditTables, PeriodicWork, verifyAudit } from '@pesit-node/service';
import type { AuditVerdict, NewAuditEntry } from '@pesit-node/service';
import { captureLog, emptyTables, withDatabase } from '@pesit-node/service/testing';
import type { TestDatabase } from '@pesit-node/service/testing';

const ADDRESS = '192.0.2.7';
const AT = new Date('2026-11-22T20:00:00.123Z');
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/** An entry as docs/security.md says how it is hashed. */
const hashed = (previous: string, ...columns: readonly (string | number | null)[]): string =>
  sha256(`${previous}\n${JSON.stringify(columns)}`);

withDatabase((harness) => {
  let database: TestDatabase;
  const log = captureLog();

  beforeAll(async () => {
    database = await harness.open();
    await createAuditTables(database.knex);
  });
  beforeEach(() => emptyTables(database, 'public'));

  const open = (at: TestDatabase = database, { node = 'pod-0', keep = 50_000, capacity = 10_000 } = {}): Audit =>
    new Audit({
      ...{ knex: at.knex, asLeader: (work) => at.knex.transaction(work), node, capacity },
      config: { 'audit.max-entries': keep },
      ...{ periodic: new PeriodicWork({ logger: log.logger }), logger: log.logger },
    });
  const entry = (index: number): NewAuditEntry => ({
    ...{ at: new Date(AT.getTime() + index), by: { actor: 'lea', address: ADDRESS } },
    ...{ action: 'started', objectType: 'listener', object: `L${index}`, details: { index } },
  });
  const fill = async (count: number, at?: TestDatabase, node?: string): Promise<void> => {
    const audit = open(at, node === undefined ? {} : { node });
    for (let index = 1; index <= count; index++) audit.note(entry(index));
    await audit.flush();
  };
  const problems = async (): Promise<readonly string[]> => (await verifyAudit(database.knex)).problems;
  const rows = () => database.knex('audit_entries').orderBy('id').select('id', 'node', 'previous_hash', 'hash');

  test('entries are chained: the hash of each is over the one before and its own columns', async () => {
    const audit = open();
    audit.note(entry(1));
    audit.note({ at: AT, action: 'removed', objectType: 'certificate' });
    await audit.flush();
    const genesis = '0'.repeat(64);
    const first = hashed(
      genesis,
      ...[1, '2026-11-22T20:00:00.124Z', 'lea', ADDRESS, 'started', 'listener', 'L1', 'pod-0', '{"index":1}'],
    );
    const second = hashed(
      first,
      ...[2, '2026-11-22T20:00:00.123Z', 'system', null, 'removed', 'certificate', null, 'pod-0', null],
    );
    expect(await rows()).toEqual([
      { id: 1, node: 'pod-0', previous_hash: genesis, hash: first },
      { id: 2, node: 'pod-0', previous_hash: first, hash: second },
    ]);
    expect(await verifyAudit(database.knex)).toEqual({
      ...{ entries: 2, first: 1, last: { last_id: 2, last_hash: second }, problems: [], more: 0 },
    });
  });

  test('what is written, lost and pruned is counted', async () => {
    const counts = { written: 0, lost: 0, pruned: 0 };
    const audit = new Audit({
      ...{ knex: database.knex, asLeader: (work) => database.knex.transaction(work), node: 'pod-0', capacity: 3 },
      ...{ config: { 'audit.max-entries': 2 }, periodic: new PeriodicWork({ logger: log.logger }), logger: log.logger },
      count: (outcome, entries) => (counts[outcome] += entries),
    });
    for (let index = 0; index < 5; index++) audit.note(entry(index));
    expect(counts).toEqual({ written: 0, lost: 2, pruned: 0 });
    await audit.flush();
    await database.knex.transaction(audit.entry(entry(5)));
    // And one that says how many were lost.
    expect(counts).toEqual({ written: 5, lost: 2, pruned: 0 });
    await audit.prune();
    expect(counts).toEqual({ written: 5, lost: 2, pruned: 3 });
    expect(await problems()).toEqual([]);
  });

  test('pods that write at the same time make one chain', async () => {
    const other = await harness.another(database);
    const pods = [database, other, database, other].map((at, index) => open(at, { node: `pod-${index}` }));
    for (let round = 0; round < 10; round++) {
      for (const pod of pods) pod.note(entry(round));
      await Promise.all(pods.map((pod) => pod.flush()));
    }
    const all = await rows();
    expect(all.map(({ id }: { id: number }) => id)).toEqual(Array.from({ length: 40 }, (_, index) => index + 1));
    expect(new Set(all.map(({ node }: { node: string }) => node)).size).toBe(4);
    expect(await problems()).toEqual([]);
  });

  describe('whoever touches it is found', () => {
    beforeEach(() => fill(5));
    const TOUCHED: readonly (readonly [what: string, statement: string, found: readonly string[]])[] = [
      ['a changed actor', `update audit_entries set actor = 'eve' where id = 3`, ['entry 3 was changed']],
      [
        'a changed time',
        `update audit_entries set time = time + interval '1 ms' where id = 3`,
        ['entry 3 was changed'],
      ],
      ['changed details', `update audit_entries set details = '{}' where id = 5`, ['entry 5 was changed']],
      ['an absent address', `update audit_entries set address = null where id = 1`, ['entry 1 was changed']],
      ['one that was removed', `delete from audit_entries where id = 3`, ['entry 3 is missing']],
      ['several', `delete from audit_entries where id in (2, 3)`, ['entries 2 to 3 are missing']],
      ['the first', `delete from audit_entries where id = 1`, ['entry 1 is missing']],
      ['the last', `delete from audit_entries where id = 5`, ['entry 5 is missing']],
      ['all of them', `delete from audit_entries`, ['entries 1 to 5 are missing']],
      [
        'one that was added',
        `insert into audit_entries select 6, time, actor, address, action, object_type, object, node, details, hash, hash from audit_entries where id = 5`,
        ['entry 6 was changed', 'entries after 5 were not appended by a service'],
      ],
      [
        'a chain that is made to begin later',
        `update audit_chain set pruned_id = 3, pruned_hash = (select hash from audit_entries where id = 3)`,
        ['3 entries up to 3 are there, which were pruned'],
      ],
    ];
    test.each(TOUCHED)('%s', async (_what, statement, found) => {
      await database.knex.raw(statement);
      expect(await problems()).toEqual(found);
    });

    test('one whose hash was made anew', async () => {
      const text = JSON.stringify([3, '2026-11-22T20:00:00.126Z', 'eve', null, 'a', 'b', null, 'n', null]);
      const [second] = await database.knex('audit_entries').where({ id: 2 });
      const forged = {
        actor: 'eve',
        address: null,
        action: 'a',
        object_type: 'b',
        object: null,
        node: 'n',
        details: null,
      };
      await database
        .knex('audit_entries')
        .where({ id: 3 })
        .update({ ...forged, hash: sha256(`${(second as { hash: string }).hash}\n${text}`) });
      expect(await problems()).toEqual(['entry 4 does not follow entry 3 as it is now']);
    });
  });

  test('pruning keeps the newest, and where the chain begins', async () => {
    await fill(7);
    const audit = open(database, { keep: 3 });
    await audit.prune();
    expect((await rows()).map(({ id }: { id: number }) => id)).toEqual([5, 6, 7]);
    expect(await verifyAudit(database.knex)).toMatchObject({ entries: 3, first: 5, problems: [] });
    await fill(1);
    await audit.prune();
    expect(await verifyAudit(database.knex)).toMatchObject({ entries: 3, first: 6, problems: [] });
    await open(database, { keep: 0 }).prune();
    expect(await rows()).toHaveLength(3);
  });

  test('more than one batch, of writes and of removals', async () => {
    await fill(1203);
    await open(database, { keep: 2 }).prune();
    expect(await verifyAudit(database.knex)).toMatchObject({ entries: 2, first: 1202, problems: [] });
  });

  test('a role that may not delete: entries are appended, none is pruned, and the log says so once', async () => {
    const role = 'audit_writer';
    await fill(3);
    await database.knex.raw(`drop role if exists ${role}; create role ${role}`);
    try {
      await database.knex.raw(`
        grant select, insert on audit_entries to ${role};
        grant select, insert, update on audit_chain to ${role}`);
      const asWriter = <T>(work: (knex: TestDatabase['knex']) => Promise<T>): Promise<T> =>
        database.knex.transaction(async (trx) => {
          await trx.raw(`set local role ${role}`);
          return work(trx);
        });
      const logged = captureLog();
      const knex = { transaction: asWriter } as unknown as TestDatabase['knex'];
      const audit = new Audit({
        ...{ knex, asLeader: asWriter, node: 'pod-0', config: { 'audit.max-entries': 1 } },
        ...{ periodic: new PeriodicWork({ logger: logged.logger }), logger: logged.logger },
      });
      audit.note(entry(4));
      await audit.flush();
      await audit.prune();
      await audit.prune();
      expect(await rows()).toHaveLength(4);
      expect(logged.entries().map(({ msg }) => msg)).toEqual([expect.stringContaining('the audit log is not pruned')]);
      await expect(asWriter((trx) => trx('audit_entries').update({ actor: 'eve' }))).rejects.toThrow(
        'permission denied',
      );
      expect(await problems()).toEqual([]);
    } finally {
      await database.knex.raw(`drop owned by ${role}; drop role ${role}`);
    }
  });

  test('entries beyond what may wait are lost, and an entry says how many', async () => {
    const audit = open(database, { capacity: 2 });
    for (let index = 1; index <= 5; index++) audit.note(entry(index));
    await audit.flush();
    const written = await database.knex('audit_entries').orderBy('id').select('object', 'action', 'details');
    expect(written).toEqual([
      { object: 'L1', action: 'started', details: '{"index":1}' },
      { object: 'L2', action: 'started', details: '{"index":2}' },
      { object: null, action: 'entries lost', details: '{"entries":3}' },
    ]);
  });

  test('what cannot be written waits for the next time, in order', async () => {
    const audit = open();
    audit.note(entry(1));
    await database.knex.raw('alter table audit_entries rename to audit_away');
    await expect(audit.flush()).rejects.toThrow('audit_entries');
    audit.note(entry(2));
    await database.knex.raw('alter table audit_away rename to audit_entries');
    await audit.flush();
    expect(await database.knex('audit_entries').orderBy('id').pluck('object')).toEqual(['L1', 'L2']);
    expect(await problems()).toEqual([]);
  });

  test('texts of strangers are bounded, and are what is hashed', async () => {
    const audit = open();
    audit.note({
      ...{ by: { actor: `nul\0line\n${'x'.repeat(100)}`, address: 'a'.repeat(100) }, action: 'login failed' },
      ...{ objectType: 'login', object: `\ud800${'o'.repeat(300)}`, details: { text: 'd'.repeat(70_000), nul: '\0' } },
    });
    await audit.flush();
    const [row] = await database.knex<Record<string, string>>('audit_entries');
    expect(row).toMatchObject({ actor: `nul\ufffdline\ufffd${'x'.repeat(55)}`, address: 'a'.repeat(64) });
    expect(row?.['object']).toBe(`\ufffd${'o'.repeat(255)}`);
    expect(row?.['details']).toMatch(/^\{"leftOut":"\d+ characters, which is too long"\}$/);
    expect(await problems()).toEqual([]);
  });

  test('an entry that somebody remembers tells whether the whole log was written anew', async () => {
    await fill(4);
    const { last } = await verifyAudit(database.knex);
    const known = [{ id: last.last_id, hash: last.last_hash }];
    const told = async () => (await verifyAudit(database.knex, known)).problems;
    await fill(1);
    expect(await told()).toEqual([]);
    await open(database, { keep: 1 }).prune();
    expect(await told()).toEqual([]);
    await emptyTables(database, 'public');
    await fill(6, database, 'another');
    expect([await problems(), await told()]).toEqual([[], ['entry 4 is not the one that was known']]);
  });

  test('of many problems the first hundred are told, the others counted', async () => {
    await fill(150);
    await database.knex('audit_entries').update({ actor: 'eve' });
    const { problems: told, more } = (await verifyAudit(database.knex)) satisfies AuditVerdict;
    expect([told.length, more]).toEqual([100, 50]);
  });
});

import { randomUUID } from 'node:crypto';

import { afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import express from 'express';
import request from 'supertest';
import { z } from 'zod';

import {
  createTraceTables,
  notFound,
  PeriodicWork,
  Routes,
  TRACE_LIMITS,
  traceRoutes,
  Traces,
} from '@pesit-node/service';
import type { AsLeader, MigrationSet, SessionRecording } from '@pesit-node/service';
import { captureLog, loggedIn, withDatabase, emptyTables } from '@pesit-node/service/testing';
import type { TestDatabase } from '@pesit-node/service/testing';
import { errorHandler } from '../../src/http/error-handler.js';

const MIGRATION: MigrationSet = {
  schema: 'pesit_server',
  migrations: [
    {
      name: '0001-owners',
      up: async (knex) => {
        await knex.raw('create table owners (owner_id text collate "C" primary key)');
        await createTraceTables(knex, { table: 'owners', key: 'owner_id', type: 'text collate "C"' });
      },
    },
  ],
};

const OWNERS = { table: 'owners', key: 'owner_id' };
const FOR_EVER = 3_600_000;

withDatabase((harness) => {
  let database: TestDatabase;
  let traces: Traces;
  let periodic: PeriodicWork;
  const log = captureLog();

  const open = (on: TestDatabase = database, asLeader: AsLeader = (work) => work(on.knex)): Traces =>
    new Traces({
      ...{ knex: on.knex, asLeader },
      owners: OWNERS,
      node: 'pod-1',
      retentionDays: 7,
      periodic,
      logger: log.logger,
      gatherMs: FOR_EVER,
    });
  const api = () => {
    const app = express().use(express.json());
    const routes = new Routes();
    traceRoutes(routes, {
      ...{ traces, logger: log.logger, noun: 'owner' },
      path: '/owners/:owner',
      params: z.strictObject({ owner: z.string() }),
      ownerOf: ({ owner }) => owner,
      missing: (owner) => notFound('Owner', owner, '/owners'),
    });
    return request(app.use(loggedIn).use(routes.router).use(errorHandler(log.logger)));
  };
  const begin = async (owner = 'ACME', id: string = randomUUID()): Promise<SessionRecording> => {
    const until = (await traces.store.until(owner)) ?? null;
    const recording = traces.begin({ id, owner, until, about: { listener: 'NODE1' } });
    if (recording === undefined) throw new Error('not traced');
    return recording;
  };
  const text = async (session: SessionRecording): Promise<string> =>
    (await api().get(`/owners/ACME/trace/${session.start.id}`).expect(200)).text;
  const lines = async (session: SessionRecording): Promise<string[]> =>
    (await text(session))
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map((line) => line.replace(/^\S+ \S+ /, ''));

  beforeAll(async () => {
    database = await harness.open({ migrations: [MIGRATION] });
  });
  beforeEach(async () => {
    await emptyTables(database, 'pesit_server');
    await database.knex('owners').insert([{ owner_id: 'ACME' }, { owner_id: 'OTHER' }]);
    periodic = new PeriodicWork({ logger: log.logger });
    periodic.start();
    traces = open();
  });
  afterEach(async () => {
    await traces.stop();
    await periodic.stop();
  });

  describe('the switch', () => {
    test('off until it is on, and then for the minutes that were asked for', async () => {
      expect((await api().get('/owners/ACME/trace').expect(200)).body).toMatchObject({
        active: false,
        until: null,
        content: [],
        totalElements: 0,
      });
      const before = Date.now();
      const { body } = await api().put('/owners/ACME/trace').send({ minutes: 30 }).expect(200);
      expect(body).toEqual({ active: true, until: expect.any(String) });
      const minutes = (Date.parse(body.until) - before) / 60_000;
      expect(minutes).toBeGreaterThan(29.9);
      expect(minutes).toBeLessThan(30.1);
      expect((await api().get('/owners/ACME/trace')).body).toMatchObject(body);
      expect((await api().get('/owners/OTHER/trace')).body).toMatchObject({ active: false });
    });

    test.each([['put', { minutes: 0 }, 200] as const, ['delete', undefined, 204] as const])(
      '%s %j switches it off',
      async (method, body, status) => {
        await traces.store.switch('ACME', 30);
        await api()[method]('/owners/ACME/trace').send(body).expect(status);
        expect((await api().get('/owners/ACME/trace')).body).toMatchObject({ active: false, until: null });
      },
    );

    test.each([{ minutes: -1 }, { minutes: 1441 }, { minutes: 1.5 }, { minutes: '5' }, {}, { minutes: 5, more: 1 }])(
      '%j is refused',
      async (body) => {
        await api().put('/owners/ACME/trace').send(body).expect(400);
        expect(await traces.store.until('ACME')).toBeNull();
      },
    );

    test('of nobody is a 404', async () => {
      await api().put('/owners/NOBODY/trace').send({ minutes: 1 }).expect(404);
      await api().delete('/owners/NOBODY/trace').expect(404);
      await api().get('/owners/NOBODY/trace').expect(404);
      await api().get('/owners/NOBODY/trace/content').expect(404);
      await api().get(`/owners/ACME/trace/${randomUUID()}`).expect(404);
      await api().get('/owners/ACME/trace/x').expect(400);
    });

    test('a time that is over records nothing', async () => {
      await database
        .knex('owners')
        .where('owner_id', 'ACME')
        .update({ trace_until: new Date(Date.now() - 1) });
      expect(
        traces.begin({ id: randomUUID(), owner: 'ACME', until: new Date(Date.now() - 1), about: {} }),
      ).toBeUndefined();
      expect((await api().get('/owners/ACME/trace')).body).toMatchObject({ active: false, until: expect.any(String) });
    });
  });

  describe('a session', () => {
    beforeEach(() => traces.store.switch('ACME', 30));

    test('is text, one line each, readable while it runs', async () => {
      const session = await begin();
      const { id } = session.start;
      session.add(Date.UTC(2026, 10, 21, 9, 30), '<--', 'CONNECT to 0 from 7: PI 3 (requester identification) "ACME"');
      session.add(Date.UTC(2026, 10, 21, 9, 30, 0, 5), '-->', 'ACONNECT to 7 from 9');
      expect((await text(session)).split('\n')).toEqual([
        `# session ${id} of owner ACME`,
        '# listener NODE1, node pod-1',
        expect.stringMatching(/^# 2\S+Z to now, or to the last line; 2 lines$/),
        '# time (UTC), session, transfer, <-- received here or --> sent from here or --- what happened; secrets are masked',
        `2026-11-21T09:30:00.000Z ${id} - <-- CONNECT to 0 from 7: PI 3 (requester identification) "ACME"`,
        `2026-11-21T09:30:00.005Z ${id} - --> ACONNECT to 7 from 9`,
        '',
      ]);
      session.end('released');
      expect(await text(session)).toMatch(/Z: released; 3 lines\n/);
      expect((await api().get('/owners/ACME/trace')).body.content).toEqual([
        {
          ...{ session: id, listener: 'NODE1', node: 'pod-1', outcome: 'released', transfers: [] },
          ...{ startTime: expect.any(String), endTime: expect.any(String), lastLineTime: expect.any(String) },
          ...{ lines: 3, size: expect.any(Number) },
        },
      ]);
    });

    test('has its transfer on the lines from the request on', async () => {
      const session = await begin();
      session.add(Date.now(), '<--', 'CONNECT');
      session.add(Date.now(), '<--', 'CREATE to 9');
      session.transfer('12', ['CREATE', 'SELECT']);
      session.add(Date.now(), '-->', 'ACK(CREATE) to 7');
      session.transfer(undefined);
      session.add(Date.now(), '<--', 'RELEASE');
      expect(await lines(session)).toEqual([
        '- <-- CONNECT',
        '12 <-- CREATE to 9',
        '12 --> ACK(CREATE) to 7',
        '- <-- RELEASE',
      ]);
      expect((await api().get('/owners/ACME/trace')).body.content[0]).toMatchObject({ transfers: ['12'] });
    });

    test('one line stays one line', async () => {
      const session = await begin();
      session.add(Date.now(), '<--', 'a\r\nb\u0000c\u001b[31m\u2028d');
      session.add(Date.now(), '<--', 'x'.repeat(TRACE_LIMITS.line + 1));
      const [first, second] = await lines(session);
      expect(first).toBe('- <-- a..b.c.[31m.d');
      expect(second).toBe(`- <-- ${'x'.repeat(TRACE_LIMITS.line)}… of ${TRACE_LIMITS.line + 1} characters`);
    });

    test('keeps its first lines and its newest, and says how many are between', async () => {
      const session = await begin();
      const filler = 'y'.repeat(1000);
      for (let line = 0; line < 3000; line++) {
        session.add(Date.now(), '<--', `${line} ${filler}`);
        if (line % 100 === 0) await traces.settled();
      }
      session.end('released');
      const said = await text(session);
      expect(said.length).toBeLessThan(TRACE_LIMITS.head + TRACE_LIMITS.tail + 3 * TRACE_LIMITS.part);
      const numbers = [...said.matchAll(/ <-- (\d+) /g)].map(([, number]) => Number(number));
      const gap = numbers.findIndex((number, index) => number !== index);
      expect(gap).toBeGreaterThan(200);
      expect(said).toContain(
        `# ${numbers[gap]! - gap} lines left out: of a session its first and its newest are kept\n`,
      );
      expect(numbers.slice(gap)).toEqual(
        Array.from({ length: 3000 - numbers[gap]! }, (_, index) => numbers[gap]! + index),
      );
      const [row] = (await api().get('/owners/ACME/trace')).body.content;
      expect(row).toMatchObject({ lines: 3001 });
      expect(
        await database
          .knex('session_trace_parts')
          .sum({ sum: database.knex.raw('length(content)') })
          .first(),
      ).toEqual({
        sum: row.size,
      });
    });

    test('ends when the switch is turned off, on whichever pod', async () => {
      const session = await begin();
      let stopped = 0;
      session.onStopped(() => stopped++);
      session.add(Date.now(), '<--', 'CONNECT');
      await traces.settled();
      await open(await harness.another(database)).store.switch('ACME', 0);
      expect(stopped).toBe(0);
      session.add(Date.now(), '<--', 'CREATE');
      await traces.settled();
      expect(stopped).toBe(1);
      session.add(Date.now(), '<--', 'SELECT');
      expect(await lines(session)).toEqual(['- <-- CONNECT', '- <-- CREATE']);
    });

    test('ends by itself when the time is over, and goes on when it is given more', async () => {
      const soon = Date.now() + 5000;
      const session = traces.begin({ id: randomUUID(), owner: 'ACME', until: new Date(soon), about: {} })!;
      session.add(soon - 1, '<--', 'CONNECT');
      await traces.settled();
      // The database says 30 minutes.
      session.add(soon + 1, '<--', 'CREATE');
      expect(session.isOver).toBe(false);
      session.add(Date.now() + 31 * 60_000, '<--', 'SELECT');
      expect(session.isOver).toBe(true);
      expect(await lines(session)).toEqual([
        '- <-- CONNECT',
        '- <-- CREATE',
        '- --- the trace ends here: the time of the trace is over',
      ]);
    });

    test('that is removed while it runs stays removed', async () => {
      const session = await begin();
      session.add(Date.now(), '<--', 'CONNECT');
      await api().delete(`/owners/ACME/trace/${session.start.id}`).expect(204);
      session.add(Date.now(), '<--', 'CREATE');
      await api().get(`/owners/ACME/trace/${session.start.id}`).expect(404);
      expect(session.isOver).toBe(true);
      expect(await database.knex('session_trace_parts')).toEqual([]);
    });

    test('goes with its owner', async () => {
      const session = await begin();
      session.add(Date.now(), '<--', 'CONNECT');
      await traces.settled();
      await database.knex('owners').where('owner_id', 'ACME').delete();
      session.add(Date.now(), '<--', 'CREATE');
      await traces.settled();
      expect(session.isOver).toBe(true);
      expect([...(await database.knex('session_traces')), ...(await database.knex('session_trace_parts'))]).toEqual([]);
    });

    test('is there after a restart, and all of an owner come as one text, oldest first', async () => {
      const [first, second] = [await begin(), await begin()];
      first.add(Date.now(), '<--', 'CONNECT one');
      first.end('released');
      await traces.settled();
      await database.knex('session_traces').update({ started_at: new Date(Date.now() - 1000) });
      second.add(Date.now(), '<--', 'CONNECT two');
      await traces.stop();
      traces = open();
      const { headers, text: all } = await api().get('/owners/ACME/trace/content').expect(200);
      expect(headers).toMatchObject({
        'content-type': 'text/plain; charset=utf-8',
        'content-disposition': 'attachment; filename=trace-owner-ACME.txt',
      });
      expect(all.indexOf('CONNECT one')).toBeLessThan(all.indexOf('CONNECT two'));
      expect(all.match(/^# session/gm)).toHaveLength(2);
      expect((await api().get('/owners/OTHER/trace/content')).text).toBe('# no session of owner OTHER was recorded\n');
      await api().get(`/owners/OTHER/trace/${first.start.id}`).expect(404);
    });
  });

  describe('bounds', () => {
    beforeEach(() => traces.store.switch('ACME', 30));

    test('of an owner the newest sessions are kept, in pages', async () => {
      for (let round = 0; round < 3; round++) {
        for (let index = 0; index < 50; index++) {
          const session = await begin();
          session.add(Date.now(), '<--', `session ${round * 50 + index}`);
          session.end('released');
        }
        await traces.settled();
      }
      const { body } = await api().get('/owners/ACME/trace?size=10&page=9');
      expect(body).toMatchObject({ totalElements: TRACE_LIMITS.sessionsOfOwner, totalPages: 10, number: 9, size: 10 });
      expect(body.content).toHaveLength(10);
      const kept = (await api().get('/owners/ACME/trace/content')).text.match(/ session \d+$/gm) ?? [];
      expect(kept).toHaveLength(100);
      expect(kept).toContain(' session 149');
      expect(kept).not.toContain(' session 0');
    });

    test('a process records so many sessions at a time', async () => {
      for (let index = 0; index < TRACE_LIMITS.sessionsAtATime; index++) await begin();
      await expect(begin()).rejects.toThrow('not traced');
    });

    test('of an owner, and of all, so many bytes', async () => {
      const rows = (owner: string, count: number, bytes: number, day: number) =>
        Array.from({ length: count }, () => ({
          ...{ id: randomUUID(), owner, node: 'pod-1', about: '{}', lines: 1, bytes },
          ...{ started_at: new Date(Date.UTC(2026, 10, day)), last_at: new Date() },
        }));
      const quarter = TRACE_LIMITS.bytesOfOwner / 4;
      await database.knex('session_traces').insert(rows('ACME', 8, quarter, 1));
      const session = await begin();
      session.add(Date.now(), '<--', 'CONNECT');
      await traces.settled();
      expect(await database.knex('session_traces').count('* as count').first()).toEqual({ count: 4 });
      const more = TRACE_LIMITS.bytes / TRACE_LIMITS.bytesOfOwner + 2;
      for (let index = 0; index < more; index++) {
        await database.knex('owners').insert({ owner_id: `O${index}` });
        await database.knex('session_traces').insert(rows(`O${index}`, 4, quarter, 2));
      }
      session.add(Date.now(), '<--', 'CREATE');
      await traces.settled();
      const { sum } = (await database.knex('session_traces').sum('bytes as sum').first()) as { sum: number };
      expect(sum).toBeLessThanOrEqual(TRACE_LIMITS.bytes);
      expect(sum).toBeGreaterThan(TRACE_LIMITS.bytes - 2 * quarter);
      expect(await lines(session)).toEqual(['- <-- CONNECT', '- <-- CREATE']);
    });

    test('old ones are removed at the start', async () => {
      const [old, young] = [await begin(), await begin()];
      for (const session of [old, young]) session.end('released');
      await traces.settled();
      await database
        .knex('session_traces')
        .where('id', old.start.id)
        .update({ started_at: database.knex.raw("now() - interval '7 days 1 second'") });
      traces.start();
      // Waits for the removal that has begun.
      await periodic.stop();
      const { content } = (await api().get('/owners/ACME/trace')).body;
      expect(content.map(({ session }: { session: string }) => session)).toEqual([young.start.id]);
    });
  });

  test('a leader that is late removes none', async () => {
    await traces.store.switch('ACME', 30);
    const old = await begin();
    old.end('released');
    await traces.settled();
    const rows = database.knex('session_traces').where('id', old.start.id);
    await rows.clone().update({ started_at: database.knex.raw("now() - interval '8 days'") });
    const late = open(database, () => Promise.reject(new Error('another leads')));
    late.start();
    await periodic.stop();
    await late.stop();
    expect(await rows.clone()).toHaveLength(1);
  });

  test('what cannot be written now is written later, in bounds', async () => {
    await traces.store.switch('ACME', 30);
    const session = await begin();
    await database.knex.raw('alter table session_traces rename to away');
    session.add(Date.now(), '<--', 'CONNECT');
    await traces.settled();
    await traces.settled();
    for (let line = 0; line < 3000; line++) session.add(Date.now(), '<--', `${line} ${'z'.repeat(1000)}`);
    await traces.settled();
    const { parts, bytes } = session.change();
    expect(bytes).toBeLessThan(TRACE_LIMITS.head + TRACE_LIMITS.tail + 3 * TRACE_LIMITS.part);
    expect(parts.reduce((sum, part) => sum + part.text.length, 0)).toBe(bytes);
    await database.knex.raw('alter table away rename to session_traces');
    const said = await text(session);
    expect(said).toContain(' <-- CONNECT\n');
    expect(said).toContain(' <-- 2999 ');
    expect(
      log.lines.filter((line) => line.includes('could not write traces yet: trying again')).length,
    ).toBeGreaterThan(0);
  });
});

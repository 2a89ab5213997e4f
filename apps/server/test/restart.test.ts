import { createHash } from 'node:crypto';
import { readdir, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

import { describe, expect, test } from '@jest/globals';
import { diagnosticOf, pointOf, summaryOf } from '@pesit-node/protocol/testing';
import { withDatabase } from '@pesit-node/service/testing';
import { FORMER_ATTEMPTS } from '@pesit-node/transfers';

import { PASSWORD, until, useNode } from './support/node.js';
import { RawPeer } from './support/raw-peer.js';
import {
  CONNECT,
  connectAs,
  create,
  DATA,
  DTF,
  DTF_END,
  endOf,
  IDT_CANCELLED,
  ORF,
  select,
  syn,
  transEnd,
  WRITE,
} from './support/steps.js';
import type { Step } from './support/steps.js';

const sha256 = (content: Buffer): string => `sha256:${createHash('sha256').update(content).digest('hex')}`;
const RESTART = create({ restarted: true });

withDatabase((harness) => {
  const node = useNode(harness, { restartWaitMs: 200 });

  /** A partner writes up to point 2, is told so, and is gone with one article more under way. */
  const interrupted = async (): Promise<void> => {
    const peer = await RawPeer.open(node().port, CONNECT, create(), ORF, WRITE, DTF, syn(1), DTF, DTF, syn(2), DTF);
    peer.socket.resetAndDestroy();
    await node().ended();
  };

  const open = (...steps: readonly Step[]): Promise<RawPeer> => RawPeer.open(node().port, CONNECT, ...steps);

  /** By nobody else at the same time: what a timer had begun would not be waited for. */
  const keepHouse = async (work: 'expire' | 'sweep'): Promise<void> => {
    const { housekeeping } = node().node;
    await housekeeping.stop();
    await housekeeping[work]();
  };

  /** From the first byte to the end, with success. */
  const writesAll = async (peer: RawPeer): Promise<void> => {
    expect(pointOf(await peer.sendAll(ORF, WRITE))).toBe(0);
    expect(diagnosticOf(await peer.sendAll(DTF, ...endOf(1)))).toBe('0-000');
    peer.socket.destroy();
  };

  describe('a partner that writes and is cut off', () => {
    test('leaves a record that says so, and what it sent', async () => {
      await interrupted();
      expect(await node().history()).toEqual([
        expect.objectContaining({
          status: 'FAILED',
          diagnostic: '3-310',
          restartable: true,
          attempts: 1,
          syncPoint: 2,
          size: null,
          checksum: null,
        }),
      ]);
      expect(await node().history('&restartable=true')).toHaveLength(1);
      expect(await node().history('&restartable=false')).toHaveLength(0);
      expect((await node().staged('IN')).map((name) => name.replace(/^.*\./, '')).sort()).toEqual(['part', 'points']);
      expect(await node().received('IN')).toEqual([]);
    });

    test('goes on from the last point: one file, one record, totals over both attempts', async () => {
      await interrupted();
      const peer = await open();
      expect(diagnosticOf(await peer.send(RESTART))).toBe('0-000');
      await peer.send(ORF);
      expect(pointOf(await peer.send(WRITE))).toBe(2);
      expect(await node().history()).toEqual([
        expect.objectContaining({ status: 'IN_PROGRESS', restartable: false, attempts: 2 }),
      ]);
      await peer.send(DTF);
      expect(pointOf(await peer.send(syn(3)))).toBe(3);
      await peer.send(DTF_END);
      const end = await peer.send(transEnd(4 * DATA.length, 4));
      expect(summaryOf(end)).toBe('ACK(TRANS.END) 0-000');
      peer.socket.destroy();
      const content = Buffer.from(DATA.repeat(4));
      expect(await node().received('IN')).toEqual([content]);
      expect(await node().history()).toEqual([
        expect.objectContaining({
          status: 'COMPLETED',
          attempts: 2,
          restartable: false,
          size: content.length,
          bytesTransferred: content.length,
          articles: 4,
          syncPoint: 3,
          checksum: sha256(content),
        }),
      ]);
      expect(await node().staged('IN')).toEqual([]);
    });

    test('may count the last attempt alone (§3.7 u, v)', async () => {
      await interrupted();
      const peer = await open(RESTART, ORF, WRITE, DTF, DTF_END);
      expect(diagnosticOf(await peer.send(transEnd(DATA.length, 1)))).toBe('0-000');
      peer.socket.destroy();
      expect((await node().history())[0]).toMatchObject({ bytesTransferred: 4 * DATA.length, articles: 4 });
    });

    test('goes on after a restart of the service', async () => {
      await interrupted();
      await node().restartListening();
      const peer = await open(RESTART, ORF);
      expect(pointOf(await peer.send(WRITE))).toBe(2);
      peer.socket.destroy();
    });

    test('is interrupted again and again, and the record counts', async () => {
      await interrupted();
      for (let attempt = 2; attempt <= 4; attempt += 1) {
        const peer = await open(RESTART, ORF);
        expect(pointOf(await peer.send(WRITE))).toBe(attempt);
        await peer.send(DTF);
        await peer.send(syn(attempt + 1));
        peer.socket.resetAndDestroy();
        await node().record(({ status, attempts }) => status === 'FAILED' && attempts === attempt);
      }
      const peer = await open(RESTART, ORF, WRITE, DTF_END);
      expect(diagnosticOf(await peer.send(transEnd(6 * DATA.length, 6)))).toBe('0-000');
      peer.socket.destroy();
      expect((await node().received('IN')).map(String)).toEqual([DATA.repeat(6)]);
      expect(await node().history()).toEqual([expect.objectContaining({ attempts: 5, status: 'COMPLETED' })]);
    });

    test('shows its attempts one by one: where, over which terms, how far, and how each ended', async () => {
      await interrupted();
      const peer = await open(RESTART, ORF, WRITE, DTF_END);
      expect(diagnosticOf(await peer.send(transEnd(3 * DATA.length, 3)))).toBe('0-000');
      peer.socket.destroy();
      const { id } = (await node().history())[0]!;
      const asked = { maxEntitySize: 4096, compression: 'none', resync: null };
      const agreed = { dialect: 'length-prefixed', version: 2, crc: false, maxEntitySize: 4096, compression: 'none' };
      const sync = { syncInterval: 64, syncWindow: 4 };
      const where = { node: 'node-a', listener: 'NODE1', remoteAddress: expect.stringContaining('127.0.0.1') };
      const detail = await node().call('get', `/api/v1/transfers/${id}`);
      expect(detail).toMatchObject({
        ...{ attempts: 2, diagnostic: '0-000', diagnosticText: 'success', whatToDo: null },
        points: { last: 2, dataBytes: 3 * DATA.length, articles: 3, placed: null },
        terms: { fromPoint: 2, asked: { ...asked, ...sync }, agreed: { ...agreed, ...sync, resync: false } },
        attemptList: [
          {
            ...{ number: 1, status: 'FAILED', ...where, diagnostic: '3-310', diagnosticText: 'network incident' },
            whatToDo: 'check the line; the transfer can be restarted',
            ...{ syncPoint: 2, terms: { fromPoint: 0, agreed } },
          },
          {
            number: 2,
            status: 'COMPLETED',
            ...where,
            diagnostic: '0-000',
            errorMessage: null,
            terms: { fromPoint: 2 },
          },
        ],
      });
      const [first, second] = detail['attemptList'] as readonly Record<string, string>[];
      expect(first!['sessionId']).not.toBe(second!['sessionId']);
      expect(Date.parse(second!['startTime']!)).toBeGreaterThanOrEqual(Date.parse(first!['endTime']!));
    });

    test('keeps the newest attempts, however many there are', async () => {
      await interrupted();
      const again = await open(RESTART, ORF, WRITE, DTF, syn(3));
      again.socket.resetAndDestroy();
      const { id } = await node().record(({ status, attempts: made }) => status === 'FAILED' && made === 2);
      await node().database.knex.raw(
        `update transfers set attempts = 60, former_attempts =
           (select jsonb_agg(one) from (select former_attempts -> 0 as one from generate_series(1, ${FORMER_ATTEMPTS})) made) where id = ?`,
        [id],
      );
      const peer = await open(RESTART, ORF, WRITE, DTF_END);
      expect(diagnosticOf(await peer.send(transEnd(4 * DATA.length, 4)))).toBe('0-000');
      peer.socket.destroy();
      const { attempts, attemptList } = await node().call('get', `/api/v1/transfers/${id}`);
      const list = attemptList as readonly { readonly number: number; readonly diagnostic: string | null }[];
      expect([attempts, list.length, list[0]!.number]).toEqual([61, FORMER_ATTEMPTS + 1, 61 - FORMER_ATTEMPTS]);
      expect(list.slice(-2).map(({ diagnostic }) => diagnostic)).toEqual(['3-310', '0-000']);
    });

    test('begins anew (PI 15 = 0): from the first byte, in a record of its own; the old one is not restartable', async () => {
      await interrupted();
      await writesAll(await open(create()));
      expect((await node().received('IN')).map(String)).toEqual([DATA]);
      await keepHouse('expire');
      expect(await node().history()).toEqual([
        expect.objectContaining({ status: 'COMPLETED', attempts: 1 }),
        expect.objectContaining({
          status: 'FAILED',
          restartable: false,
          errorMessage: expect.stringMatching(/; the partner began it anew$/),
        }),
      ]);
      expect(await node().staged('IN')).toEqual([]);
    });

    test('that it began anew and that failed for good is not known any more: nothing of two files is mixed', async () => {
      await interrupted();
      const anew = await open(create(), ORF, WRITE, DTF, IDT_CANCELLED);
      anew.socket.destroy();
      await node().record(({ status }) => status === 'CANCELLED');
      const peer = await open(RESTART, ORF);
      expect(pointOf(await peer.send(WRITE))).toBe(0);
      peer.socket.destroy();
    });

    test('restarts what is not known here: from the first byte', async () => {
      await writesAll(await open(RESTART));
      expect(await node().history()).toEqual([expect.objectContaining({ status: 'COMPLETED', attempts: 1 })]);
    });

    test.each([
      ['transfer identifier', create({ restarted: true, transferId: 10 })],
      ['virtual file', create({ restarted: true, fileName: 'BOTH' })],
      ['first sender (PI 61)', create({ restarted: true, originalSender: 'FIRST' })],
      ['last receiver (PI 62)', create({ restarted: true, finalReceiver: 'LAST' })],
    ])('with another %s it is another transfer', async (_, step) => {
      await interrupted();
      const peer = await open(step, ORF);
      expect(pointOf(await peer.send(WRITE))).toBe(0);
      peer.socket.destroy();
    });

    test('of another partner it is another transfer, whatever its identifier', async () => {
      await interrupted();
      await node().call('post', '/api/v1/config/partners', { partnerId: 'BETA', password: PASSWORD });
      const peer = await RawPeer.open(node().port, connectAs({ requester: 'BETA' }), RESTART, ORF);
      expect(pointOf(await peer.send(WRITE))).toBe(0);
      peer.socket.destroy();
    });

    test('without sync points in the new session: from the first byte, in the same record', async () => {
      await interrupted();
      const session = await node().connect({ syncPoints: undefined });
      await node().send(session, 'IN', Buffer.from('whole'), { transferId: 9, restarted: true });
      expect((await node().received('IN')).map(String)).toEqual(['whole']);
      expect(await node().history()).toEqual([expect.objectContaining({ status: 'COMPLETED', attempts: 2 })]);
    });

    test('without a point nothing is kept, and the restart is the same record from the first byte', async () => {
      const cut = await open(create(), ORF, WRITE, DTF);
      cut.socket.resetAndDestroy();
      await node().ended();
      expect(await node().staged('IN')).toEqual([]);
      const peer = await open(RESTART, ORF);
      expect(pointOf(await peer.send(WRITE))).toBe(0);
      await peer.send(DTF_END);
      expect(diagnosticOf(await peer.send(transEnd(0, 0)))).toBe('0-000');
      peer.socket.destroy();
      expect(await node().history()).toEqual([expect.objectContaining({ status: 'COMPLETED', attempts: 2, size: 0 })]);
    });

    test('counts that do not agree: nothing of it is trusted, the next attempt begins at the start', async () => {
      const wrong = await open(create(), ORF, WRITE, DTF, syn(1), DTF_END);
      expect(diagnosticOf(await wrong.send(transEnd(1, 1)))).toBe('3-319');
      wrong.socket.destroy();
      expect(await node().ended()).toMatchObject({ diagnostic: '3-319', restartable: true });
      const peer = await open(RESTART, ORF);
      expect(pointOf(await peer.send(WRITE))).toBe(0);
      peer.socket.destroy();
    });
  });

  describe('a request whose answer is lost', () => {
    const lost = async (...steps: readonly Step[]): Promise<void> => {
      const peer = await open(...steps);
      peer.socket.resetAndDestroy();
      await node().ended();
    };

    test.each([
      ['CREATE', [create()]],
      ['WRITE', [create(), ORF, WRITE]],
    ])('%s, and asked anew (PI 15 = 0): the same record, from the first byte', async (_, steps) => {
      await lost(...steps);
      await writesAll(await open(create()));
      expect((await node().received('IN')).map(String)).toEqual([DATA]);
      expect(await node().history()).toEqual([expect.objectContaining({ status: 'COMPLETED', attempts: 2 })]);
      expect(await node().staged('IN')).toEqual([]);
    });

    test('again and again: one record still', async () => {
      for (let attempt = 1; attempt <= 3; attempt += 1) {
        const peer = await open(create());
        peer.socket.resetAndDestroy();
        await node().record(({ status, attempts }) => status === 'FAILED' && attempts === attempt);
      }
      expect(await node().history()).toHaveLength(1);
    });

    test('another file of the same identifier gets a record of its own', async () => {
      await lost(create({ label: 'a', creationDate: '261121120000' }));
      for (const other of [{ label: 'b', creationDate: '261121120000' }, { label: 'a' }]) {
        const peer = await open(create(other));
        peer.socket.destroy();
      }
      await until(async () => ((await node().history()).length === 3 ? true : undefined));
    });

    test('SELECT, and asked anew: the same record under its PI 13', async () => {
      await writeFile(join(node().data, 'OUT/out/data.bin'), 'content');
      await lost(select('OUT'));
      const session = await node().connect();
      expect(String(await node().receive(session, 'OUT'))).toBe('content');
      expect(await node().history()).toEqual([
        expect.objectContaining({ status: 'COMPLETED', attempts: 2, bytesTransferred: 7 }),
      ]);
    });

    test('SELECT, and the file is another one since: a record of its own', async () => {
      const path = join(node().data, 'OUT/out/data.bin');
      await writeFile(path, 'content');
      await lost(select('OUT'));
      await writeFile(path, 'other content');
      const session = await node().connect();
      expect(String(await node().receive(session, 'OUT'))).toBe('other content');
      expect((await node().history()).map(({ status }) => status)).toEqual(['COMPLETED', 'FAILED']);
    });
  });

  describe('while an attempt still runs', () => {
    test('a second one is told to come again: 2-207, and the first one ends well', async () => {
      const first = await open(create(), ORF, WRITE, DTF, syn(1));
      const second = await open();
      let answer: Buffer | undefined;
      const asked = second.send(RESTART).then((told) => (answer = told));
      let articles = 1;
      while (answer === undefined) {
        await first.send(DTF);
        articles += 1;
        await delay(20);
      }
      await asked;
      expect(summaryOf(answer)).toBe('ACK(CREATE) 2-207');
      second.socket.destroy();
      expect(diagnosticOf(await first.sendAll(...endOf(articles)))).toBe('0-000');
      first.socket.destroy();
      expect((await node().received('IN')).map(String)).toEqual([DATA.repeat(articles)]);
    });

    test('one in which nothing moves any more gives way: its connection was lost without our knowing', async () => {
      const first = await open(create(), ORF, WRITE, DTF, syn(1));
      const second = await open();
      expect(diagnosticOf(await second.send(RESTART))).toBe('0-000');
      const told = await first.next();
      expect(summaryOf(told)).toBe('ABORT 3-314');
      first.socket.destroy();
      await second.send(ORF);
      expect(pointOf(await second.send(WRITE))).toBe(1);
      expect(diagnosticOf(await second.sendAll(...endOf(1)))).toBe('0-000');
      second.socket.destroy();
      expect(await node().history()).toEqual([expect.objectContaining({ status: 'COMPLETED', attempts: 2 })]);
    });

    test('a restart waits for one that is just ending', async () => {
      const first = await open(create(), ORF, WRITE, DTF, syn(1));
      const second = await open();
      const answer = second.send(RESTART);
      first.socket.resetAndDestroy();
      expect(diagnosticOf(await answer)).toBe('0-000');
      await second.send(ORF);
      expect(pointOf(await second.send(WRITE))).toBe(1);
      second.socket.destroy();
    });

    test('two partners that send anew with one identifier do not disturb each other', async () => {
      const first = await open(create(), ORF, WRITE, DTF);
      const second = await open(create(), ORF, WRITE, DTF);
      for (const peer of [second, first]) {
        expect(diagnosticOf(await peer.sendAll(...endOf(1)))).toBe('0-000');
        peer.socket.destroy();
      }
      expect(await node().received('IN')).toHaveLength(2);
    });

    test('one that another has taken meanwhile delivers nothing', async () => {
      const first = await open(create(), ORF, WRITE, DTF, syn(1), DTF_END);
      await node().database.knex('transfers').update({ fence: 7 });
      expect(diagnosticOf(await first.send(transEnd(DATA.length, 1)))).toBe('2-207');
      first.socket.destroy();
      expect(await node().received('IN')).toEqual([]);
      expect((await node().history())[0]).toMatchObject({ status: 'IN_PROGRESS' });
      expect(await node().staged('IN')).toHaveLength(2);
    });

    test('one that another has taken meanwhile removes nothing of it', async () => {
      const first = await open(create(), ORF, WRITE, DTF);
      await node().database.knex('transfers').update({ fence: 7 });
      first.socket.resetAndDestroy();
      await until(async () => {
        const { activeConnections } = await node().call('get', '/api/v1/servers/NODE1/status');
        return activeConnections === 0 || undefined;
      });
      expect(await node().staged('IN')).toEqual([expect.stringMatching(/\.part$/)]);
      expect((await node().history())[0]).toMatchObject({ status: 'IN_PROGRESS' });
    });

    test('a small one that another has taken meanwhile takes back what it delivered', async () => {
      const first = await open(create(), ORF, WRITE, DTF, DTF_END);
      await node().database.knex('transfers').update({ fence: 7, attempts: 2 });
      expect(diagnosticOf(await first.send(transEnd(DATA.length, 1)))).toBe('2-207');
      first.socket.destroy();
      expect(await node().received('IN')).toEqual([]);
      expect((await node().history())[0]).toMatchObject({ status: 'IN_PROGRESS' });
    });

    test('a small one that another pod has claimed waits for its word, and keeps what that one found delivered', async () => {
      const first = await open(create(), ORF, WRITE, DTF, DTF_END);
      const { knex } = node().database;
      await knex('transfers').update({ fence: 7 });
      const ended = first.send(transEnd(DATA.length, 1));
      await until(async () => (await node().received('IN')).length === 1 || undefined);
      await knex('transfers').update({ status: 'COMPLETED', end_time: knex.fn.now() });
      expect(diagnosticOf(await ended)).toBe('0-000');
      first.socket.destroy();
      expect((await node().received('IN')).map(String)).toEqual([DATA]);
    });
  });

  describe('while another pod that has claimed the transfer says nothing', () => {
    const impatient = useNode(harness, { patienceMs: 1500 });

    test('the partner is told 2-207, and the file is left to that one', async () => {
      const peer = await RawPeer.open(impatient().port, CONNECT, create(), ORF, WRITE, DTF, DTF_END);
      await impatient().database.knex('transfers').update({ fence: 7 });
      expect(diagnosticOf(await peer.send(transEnd(DATA.length, 1)))).toBe('2-207');
      peer.socket.destroy();
      expect((await impatient().received('IN')).map(String)).toEqual([DATA]);
    });
  });

  describe('what nobody restarts', () => {
    test('is removed after transfer.staging-retention, a log line each', async () => {
      await interrupted();
      const { knex } = node().database;
      await knex.raw(
        "update transfers set end_time = now() - interval '8 days', start_time = now() - interval '9 days'",
      );
      await keepHouse('sweep');
      expect(await node().staged('IN')).toEqual([]);
      expect(await node().history('&restartable=true')).toEqual([]);
      expect((await node().history())[0]).toMatchObject({
        status: 'FAILED',
        errorMessage: expect.stringMatching(/; not restarted in time$/),
      });
      const said = node()
        .log.entries()
        .map(({ msg }) => msg);
      expect(said).toContain(
        'interrupted transfer can no longer be restarted: its time is over, or the partner began it anew',
      );
      expect(said).toContain('removed the staged file of an old transfer');
      const peer = await open(RESTART, ORF);
      expect(pointOf(await peer.send(WRITE))).toBe(0);
      peer.socket.destroy();
    });

    test('a leftover that no record knows is removed when it is old, and kept while it is young', async () => {
      await interrupted();
      await node().database.knex('transfers').delete();
      await keepHouse('sweep');
      expect(await node().staged('IN')).toHaveLength(2);
      const directory = join(node().data, 'IN/in/.pesit');
      for (const name of await readdir(directory)) await utimes(join(directory, name), 1_000_000_000, 1_000_000_000);
      await keepHouse('sweep');
      expect(await node().staged('IN')).toEqual([]);
    });

    test('an old one that a record still wants stays', async () => {
      await interrupted();
      const directory = join(node().data, 'IN/in/.pesit');
      for (const name of await readdir(directory)) await utimes(join(directory, name), 1_000_000_000, 1_000_000_000);
      await keepHouse('sweep');
      expect(await node().staged('IN')).toHaveLength(2);
    });
  });
});

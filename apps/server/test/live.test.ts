/** Live events of transfers over REST: what readers hear, wherever they read and the transfer runs. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

import { afterAll, afterEach, describe, expect, test } from '@jest/globals';
import { hashPassword } from '@pesit-node/service';
import { captureLog, TestEventReader, withDatabase } from '@pesit-node/service/testing';
import type { ReadEvent } from '@pesit-node/service/testing';

import { MIGRATIONS } from '../src/migrations/index.js';
import { TestNode, useNode } from './support/node.js';
import { RawPeer } from './support/raw-peer.js';
import { CONNECT, create, CRF, DATA, DESELECT, DTF, endOf, ORF, READ, select, syn, WRITE } from './support/steps.js';
import type { Step } from './support/steps.js';

const isOver = ({ status }: ReadEvent['data']): boolean => status !== 'IN_PROGRESS';
const ALL = '/api/v1/transfers/events';

withDatabase((harness) => {
  const readers: TestEventReader[] = [];
  const peers: RawPeer[] = [];
  // Before the node stops: it would wait for them.
  afterEach(() => {
    for (const reader of readers.splice(0)) reader.close();
    for (const peer of peers.splice(0)) peer.socket.destroy();
  });
  const node = useNode(harness, { liveTickMs: 20, heartbeatMs: 50, progressMs: 20 });

  const read = async (path = ALL, lastId?: string, from = node()): Promise<TestEventReader> => {
    const reader = await TestEventReader.open(from.restPort, path, { authorization: from.authorization }, lastId);
    readers.push(reader);
    return reader;
  };
  const partner = async (...steps: readonly Step[]): Promise<RawPeer> => {
    const peer = await RawPeer.open(node().port, CONNECT, ...steps);
    peers.push(peer);
    return peer;
  };
  const WRITES = [create({ reservationKb: 2 }), ORF, WRITE, DTF, syn(1)] as const;

  describe('all transfers', () => {
    test('a new reader is told to list; then records and figures come, and their end', async () => {
      const reader = await read();
      expect(await reader.next()).toMatchObject({ event: 'reset', data: { reason: 'new' } });
      const peer = await partner(...WRITES);
      const begun = await reader.next('transfer');
      expect(begun.data).toMatchObject({ partnerId: 'ACME', direction: 'RECEIVE', status: 'IN_PROGRESS', attempts: 1 });
      const moved = await reader.next('progress', (all: ReadEvent['data']) => all[0].syncPoint === 1);
      const figures = { bytesTransferred: DATA.length, expectedBytes: 1024, syncPoint: 1, node: 'node-a' };
      expect(moved.data).toEqual([expect.objectContaining({ id: begun.data.id, ...figures })]);
      expect(Object.keys(moved.data[0] as object)).toContain('estimatedEnd');
      await peer.sendAll(...endOf(1));
      const over = await reader.next('transfer', isOver);
      const { id } = begun.data as { id: number };
      // The record alone has more than a page.
      expect(await node().call('get', `/api/v1/transfers/${id}`)).toMatchObject(over.data as object);
      expect(over.id).not.toBe(begun.id);
    });

    test('who comes again with its last id gets what it missed; with another id it is told to list', async () => {
      const before = await read();
      await before.next('reset');
      const other = await read();
      await other.next('reset');
      const peer = await partner(...WRITES);
      const { id } = await before.next('transfer');
      before.close();
      await peer.sendAll(...endOf(1));
      await other.next('transfer', isOver);
      const again = await read(ALL, id);
      const missed = await again.next();
      expect(missed.event).toBe('transfer');
      expect(missed.id).not.toBe(id);
      const lost = await read(ALL, 'abcdef012345-7');
      expect(await lost.next()).toMatchObject({ event: 'reset', data: { reason: 'unknown id' } });
      expect(lost.events[0]?.id).not.toBe('');
    });

    test('a reader that was cut off when nobody else read misses nothing', async () => {
      const before = await read();
      const { id } = await before.next('reset');
      before.close();
      const peer = await partner(...WRITES);
      await peer.sendAll(...endOf(1));
      const again = await read(ALL, id);
      expect(await again.next('transfer', isOver)).toMatchObject({ data: { status: 'COMPLETED' } });
    });

    test('an older record that another pod takes up and ends between two looks: its outcome is told', async () => {
      const { knex } = node().database;
      const { rows } = await knex.raw<{ rows: [{ readonly id: number }] }>(`
        insert into transfers (partner_id, direction, virtual_file_id, listener, node, instance, session_id, remote_address, status, diagnostic, start_time, end_time)
        values ('ACME', 'RECEIVE', 'IN', 'NODE1', 'node-b', gen_random_uuid(), 's', 'a', 'FAILED', '2-223', now() - interval '1 hour', now() - interval '1 hour')
        returning id`);
      const reader = await read();
      await reader.next('reset');
      await knex.transaction(async (transaction) => {
        const [taken, ended] = [
          { status: 'IN_PROGRESS', end_time: null },
          { status: 'COMPLETED', end_time: knex.fn.now() },
        ];
        await transaction('transfers')
          .where(rows[0])
          .update({ ...taken, diagnostic: null });
        await transaction('transfers')
          .where(rows[0])
          .update({ ...ended, diagnostic: '0-000' });
      });
      expect((await reader.next('transfer')).data).toMatchObject({ ...rows[0], status: 'COMPLETED' });
    });

    test('many at once: the reader is told to list', async () => {
      const reader = await read();
      await reader.next('reset');
      await node().database.knex.raw(`
        insert into transfers (partner_id, direction, virtual_file_id, listener, node, instance, session_id, remote_address, status, diagnostic, end_time)
        select 'ACME', 'RECEIVE', 'IN', 'NODE1', 'node-b', gen_random_uuid(), 's', 'a', 'FAILED', '2-226', now() from generate_series(1, 600)`);
      expect(await reader.next('reset')).toMatchObject({ data: { reason: 'too much' } });
      expect(reader.events.filter(({ event }) => event === 'transfer')).toEqual([]);
    });
  });

  describe('one transfer', () => {
    test('its record first, then figures; the answer ends with it, and 204 for who knows', async () => {
      const peer = await partner(...WRITES);
      const [{ id } = { id: 0 }] = await node().history();
      const reader = await read(`/api/v1/transfers/${id}/events`);
      expect(await reader.next()).toMatchObject({ event: 'transfer', data: { id, status: 'IN_PROGRESS' } });
      expect((await reader.next('progress')).data).toEqual([expect.objectContaining({ id })]);
      await peer.sendAll(...endOf(1));
      const over = await reader.next('transfer', isOver);
      expect(over).toMatchObject({ id: 'over', data: { id, status: 'COMPLETED' } });
      await reader.over();
      const again = await read(`/api/v1/transfers/${id}/events`, 'over');
      await again.over();
      expect([again.status, again.text]).toEqual([204, '']);
      const late = await read(`/api/v1/transfers/${id}/events`, 'abc-1');
      expect(await late.next()).toMatchObject({ id: 'over', data: { status: 'COMPLETED' } });
      await late.over();
    });

    test('one that is not there: 404', async () => {
      expect((await read('/api/v1/transfers/424242/events')).status).toBe(404);
    });

    test('a file that a partner reads: bytes that it will have, and its point', async () => {
      await mkdir(join(node().data, 'OUT/out'), { recursive: true });
      await writeFile(join(node().data, 'OUT/out/report'), Buffer.alloc(300_000, 'x'));
      const all = await read();
      await all.next('reset');
      // It takes no more than the window: the file stands at a point that was sent and not acknowledged.
      const peer = await partner(select('OUT'), ORF, READ);
      expect(peer).toBeDefined();
      const { data } = await all.next('progress', ([one]: ReadEvent['data']) => one.syncPoint === 4);
      expect(data[0]).toMatchObject({ expectedBytes: 300_000, syncPoint: 4, node: 'node-a' });
      const [record] = await node().history();
      expect(record).toMatchObject({ direction: 'SEND', status: 'IN_PROGRESS' });
    });
  });

  test('curl reads the same', async () => {
    const url = `http://127.0.0.1:${node().restPort}${ALL}`;
    const curl = spawn('curl', ['-sN', '-H', `Authorization: ${node().authorization}`, url]);
    let text = '';
    curl.stdout.on('data', (piece: Buffer) => (text += String(piece)));
    while (!text.includes('event: reset')) await once(curl.stdout, 'data');
    const peer = await partner(...WRITES);
    await peer.sendAll(...endOf(1), CRF, DESELECT);
    while (!/event: transfer\ndata: \{.*"status":"COMPLETED".*\}\n\n/.test(text)) await once(curl.stdout, 'data');
    curl.kill();
    await once(curl, 'exit');
    expect(text).toMatch(/^retry: 2000\n\nid: [0-9a-f]{12}-0\nevent: reset\ndata: \{"reason":"new"\}\n\n/);
    const head = await promisify(execFile)('curl', ['-sSI', '-H', `Authorization: ${node().authorization}`, url]);
    expect(head.stdout).toMatch(/^HTTP\/1.1 200 OK\r\n[^]*content-type: text\/event-stream/i);
  });

  test('another pod: its reader hears of a transfer that runs here, with its figures; a pod that stops ends its readers', async () => {
    const own = await harness.another({ ...node().database, searchPath: [MIGRATIONS.schema] });
    const pod = new TestNode(own, node().data, captureLog(), { node: 'pod-b', liveTickMs: 20, answerMs: 0 });
    await pod.start();
    const reader = await read(ALL, undefined, pod);
    await reader.next('reset');
    const peer = await partner(...WRITES);
    expect((await reader.next('transfer')).data).toMatchObject({ status: 'IN_PROGRESS', node: 'node-a' });
    const { data } = await reader.next('progress', ([one]: ReadEvent['data']) => one.syncPoint === 1);
    expect(data[0]).toMatchObject({ bytesTransferred: DATA.length, node: 'node-a' });
    const { id } = reader.events.at(-1) as ReadEvent;
    await pod.stop();
    await reader.over();
    // Elsewhere its id is not known: it lists, and misses nothing that comes then.
    const elsewhere = await read(ALL, id);
    expect(await elsewhere.next('reset')).toMatchObject({ data: { reason: 'unknown id' } });
    await peer.sendAll(...endOf(1));
    expect(await elsewhere.next('transfer', isOver)).toMatchObject({ data: { status: 'COMPLETED' } });
  });
});

withDatabase((harness) => {
  const users = join(mkdtempSync(join(tmpdir(), 'pesit-live-')), 'users');
  const node = useNode(harness, {
    liveTickMs: 20,
    heartbeatMs: 20,
    settings: { 'admin.users': users, 'http.max-connections': 12 },
  });
  afterAll(() => rm(dirname(users), { recursive: true }));

  test('a viewer reads, until its line is removed; no more readers than a quarter of the connections', async () => {
    const hash = await hashPassword('looks on', { logN: 10, r: 8, p: 1 });
    await writeFile(users, `lea viewer ${hash}\nmax viewer ${hash}\n`);
    const as = (user: string, password = 'looks on') => ({
      authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
    });
    const reader = await TestEventReader.open(node().restPort, ALL, as('lea'));
    expect(await reader.next('reset')).toBeDefined();
    await reader.comment();
    const second = await TestEventReader.open(node().restPort, ALL, as('max'));
    const third = await TestEventReader.open(node().restPort, ALL, as('max'));
    const fourth = await TestEventReader.open(node().restPort, ALL, as('max'));
    expect([reader, second, third, fourth].map(({ status }) => status)).toEqual([200, 200, 200, 503]);
    third.close();
    await writeFile(users, `max viewer ${hash}\n`);
    await reader.over();
    await second.comment();
    second.close();
    const [entry] = node()
      .log.entries()
      .filter(({ msg }) => msg === 'login failed');
    expect(entry).toBeUndefined();
  });
});

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { describe, expect, test } from '@jest/globals';
import { diagnosticOf, nameOf, summaryOf } from '@pesit-node/protocol/testing';
import { findDatabase, freePort, loseAnswer, loseDatabase, withDatabase } from '@pesit-node/service/testing';

import { bytes, until, useNode } from './support/node.js';
import { RawPeer } from './support/raw-peer.js';
import {
  ACK_IDT,
  CONNECT,
  create,
  CRF,
  DATA,
  DESELECT,
  DTF,
  DTF_END,
  endOf,
  ORF,
  READ,
  RELEASE,
  select,
  syn,
  transEnd,
  WRITE,
} from './support/steps.js';

const INSTANCE = '00000000-0000-4000-8000-000000000001';

withDatabase((harness) => {
  describe('a node', () => {
    const node = useNode(harness, { checkEveryMs: 20, progressMs: 10 });

    test('ends at its start what a dead process left behind', async () => {
      const left = ['PENDING', 'IN_PROGRESS'].map((status) => ({
        partner_id: 'ACME',
        direction: 'RECEIVE',
        status,
        listener: 'NODE1',
        node: 'node-b',
        instance: INSTANCE,
        session_id: 's',
        remote_address: '::1',
      }));
      await node().database.knex('transfers').insert(left);
      await node().restart();
      for (const record of await node().history()) {
        expect(record).toMatchObject({
          status: 'FAILED',
          diagnostic: '2-223',
          errorMessage: 'the service stopped during the transfer',
          endTime: expect.any(String),
        });
      }
    });

    test('starts its autoStart listeners when the database comes', async () => {
      await node().call('put', '/api/v1/servers/NODE1', { autoStart: true });
      await node().stop();
      loseDatabase(node().database);
      const restarted = node().restart();
      const health = () => node().node.supervisor.health();
      await until(() => JSON.stringify(health()).includes('ECONNREFUSED') || undefined);
      findDatabase(node().database);
      await restarted;
      await until(async () => (await node().call('get', '/api/v1/servers/NODE1'))['status'] === 'RUNNING' || undefined);
      await node().send(await node().connect(), 'IN', bytes(10));
    });

    test('begins again when the database fails while it begins', async () => {
      await node().call('put', '/api/v1/servers/NODE1', { autoStart: true });
      await node().stop();
      loseAnswer(node().database, /from "listeners" order by/);
      await node().restart();
      await until(async () => (await node().call('get', '/api/v1/servers/NODE1'))['status'] === 'RUNNING' || undefined);
      expect(node().log.lines.join('\n')).toContain('could not start the listeners yet: trying again');
    });

    test('lets a running transfer end when it stops, and takes nothing new', async () => {
      const peer = await RawPeer.open(node().port, CONNECT, create(), ORF, WRITE, DTF, syn(1));
      const idle = await RawPeer.open(node().port, CONNECT);
      const stopping = node().stop();
      const told = await idle.next();
      expect(summaryOf(told)).toBe('ABORT 3-322');
      idle.socket.destroy();
      const late = await RawPeer.open(node().port);
      expect(summaryOf(await late.send(CONNECT))).toBe('RCONNECT 3-322');
      late.socket.destroy();
      const answers = [];
      for (const step of [DTF_END, transEnd(DATA.length, 1), CRF, DESELECT, RELEASE])
        answers.push(nameOf(await peer.send(step)));
      expect(answers).toEqual([undefined, 'ACK(TRANS.END)', 'ACK(CRF)', 'ACK(DESELECT)', 'RELCONF']);
      peer.socket.destroy();
      await stopping;
      await expect(RawPeer.open(node().port)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
      expect(await node().database.knex('transfers').pluck('status')).toEqual(['COMPLETED']);
      expect(await node().received('IN')).toHaveLength(1);
    });

    test('a port change does not abort sessions that are open: one writes on, one that did nothing begins a file', async () => {
      const peer = await RawPeer.open(node().port, CONNECT, create(), ORF, WRITE, DTF);
      const idle = await RawPeer.open(node().port, CONNECT);
      const [from, to] = [node().port, await freePort()];
      const moved = await node().call('put', '/api/v1/servers/NODE1', { port: to });
      expect(moved).toMatchObject({ status: 'RUNNING', port: to, activeConnections: 2 });
      await expect(RawPeer.open(from)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
      expect(diagnosticOf(await peer.sendAll(...endOf(1)))).toBe('0-000');
      expect(diagnosticOf(await idle.sendAll(create({ transferId: 10 }), ORF, WRITE, DTF, ...endOf(1)))).toBe('0-000');
      for (const each of [peer, idle]) {
        expect(nameOf(await each.sendAll(CRF, DESELECT, RELEASE))).toBe('RELCONF');
        each.socket.destroy();
      }
      await node().send(await node().connect({ port: to }), 'IN', bytes(5));
      expect(await node().received('IN')).toHaveLength(3);
    });

    test('sessions on a port that was given up count for the limit of their listener, and end when it stops', async () => {
      const idle = await RawPeer.open(node().port, CONNECT);
      const to = await freePort();
      await node().call('put', '/api/v1/servers/NODE1', { port: to, maxConnections: 1 });
      const more = await RawPeer.open(to);
      expect(summaryOf(await more.send(CONNECT))).toBe('RCONNECT 3-309');
      more.socket.destroy();
      const stopped = node().call('post', '/api/v1/servers/NODE1/stop');
      expect(summaryOf(await idle.next())).toBe('ABORT 3-322');
      idle.socket.destroy();
      expect(await stopped).toMatchObject({ status: 'STOPPED', activeConnections: 0 });
    });

    test('writes the figures of a running transfer', async () => {
      const peer = await RawPeer.open(node().port, CONNECT, create(), ORF, WRITE, DTF, DTF, syn(1));
      expect(await node().record(({ syncPoint }) => syncPoint === 1)).toMatchObject({
        status: 'IN_PROGRESS',
        bytesTransferred: 2 * DATA.length,
        articles: 2,
        size: null,
      });
      peer.socket.destroy();
      expect(await node().ended()).toMatchObject({ status: 'FAILED', bytesTransferred: 2 * DATA.length });
    });

    test('completes a transfer that another process took for dead', async () => {
      const peer = await RawPeer.open(node().port, CONNECT, create(), ORF, WRITE, DTF, DTF_END);
      await node().database.knex('transfers').update({ status: 'FAILED', diagnostic: '2-223', end_time: new Date() });
      expect(diagnosticOf(await peer.send(transEnd(DATA.length, 1)))).toBe('0-000');
      expect(await node().history()).toEqual([expect.objectContaining({ status: 'COMPLETED', diagnostic: '0-000' })]);
      peer.socket.destroy();
    });

    test('a stopped listener says STOPPING while a transfer runs, and may start again meanwhile', async () => {
      const peer = await RawPeer.open(node().port, CONNECT, create(), ORF, WRITE, DTF);
      const stopped = await node().call('post', '/api/v1/servers/NODE1/stop');
      expect(stopped).toMatchObject({ status: 'STOPPING', activeConnections: 1 });
      expect(await node().call('post', '/api/v1/servers/NODE1/start')).toMatchObject({ status: 'RUNNING' });
      await node().send(await node().connect(), 'IN', bytes(5));
      expect(diagnosticOf(await peer.sendAll(...endOf(1)))).toBe('0-000');
      peer.socket.destroy();
      expect(await node().call('get', '/api/v1/servers/NODE1')).toMatchObject({ status: 'RUNNING' });
    });
  });

  describe('a node that stops', () => {
    const node = useNode(harness, { leaseMs: 3000 });

    test('has shown what it does by itself, and ends what is not for its last transfers', async () => {
      const tasks = async (): Promise<readonly string[]> => {
        const { periodicWork } = await node().call('get', '/actuator/info');
        return (periodicWork as readonly { readonly name: string }[]).map(({ name }) => name).sort();
      };
      const forTransfers = ['figures of running transfers', 'renewal of the lease of this process'];
      const serving = [
        ...['count of refused transfers', 'look at files that wait to be fetched', 'look at the listeners'],
        ...['look at the partners of open sessions', 'places of sessions', 'start of failed listeners'],
        'renewal of the membership in the cluster',
      ];
      const housekeeping = [
        ...[
          'recovery of transfers whose process is gone',
          'removal of leftovers of transfers',
          'removal of old traces',
        ],
      ];
      expect(await tasks()).toEqual(expect.arrayContaining([...forTransfers, ...serving, ...housekeeping]));
      const peer = await RawPeer.open(node().port, CONNECT, create(), ORF, WRITE, DTF);
      const stopping = node().node.exchangeStep.stop?.();
      // Its place in the cluster is given back at once as well.
      await until(async () => !(await tasks()).some((name) => serving.includes(name)) || undefined);
      expect(await tasks()).toEqual(expect.arrayContaining(forTransfers));
      expect(diagnosticOf(await peer.sendAll(...endOf(1)))).toBe('0-000');
      peer.socket.destroy();
      await stopping;
      const over = ['renewal of the lease of this process', ...serving, ...housekeeping];
      expect((await tasks()).filter((name) => over.includes(name))).toEqual([]);
    });

    test('renews its lease until its last transfer has ended, so that nobody takes it for gone', async () => {
      const peer = await RawPeer.open(node().port, CONNECT, create(), ORF, WRITE, DTF);
      const stopping = node().stop();
      const lease = async (): Promise<number> => {
        const { rows } = await node().database.knex.raw<{ rows: { ms: number }[] }>(
          'select extract(epoch from max(seen_at))::float8 * 1000 as ms from instances',
        );
        return rows[0]!.ms;
      };
      const begin = await lease();
      await until(async () => (await lease()) - begin > 1500 || undefined);
      expect(diagnosticOf(await peer.sendAll(...endOf(1)))).toBe('0-000');
      peer.socket.destroy();
      await stopping;
      expect(await node().database.knex('instances').select()).toEqual([]);
      expect(await node().database.knex('transfers').select('status')).toEqual([{ status: 'COMPLETED' }]);
    });
  });

  describe('a node without patience', () => {
    const node = useNode(harness, { drainMs: 50 });

    test('interrupts what does not end: nothing staged, FAILED, no record left in progress', async () => {
      const peer = await RawPeer.open(node().port, CONNECT, create(), ORF, WRITE, DTF);
      const stopping = node().stop();
      const answer = await peer.next();
      expect(summaryOf(answer)).toBe('IDT 3-322');
      await peer.sendAll(ACK_IDT, CRF, DESELECT);
      peer.socket.destroy();
      await stopping;
      const [record] = await node().database.knex('transfers').select('status', 'diagnostic');
      expect(record).toEqual({ status: 'FAILED', diagnostic: '3-322' });
      expect(await node().files('IN/in')).toEqual([]);
    });
  });

  describe('partners beside each other', () => {
    const node = useNode(harness);

    test('one that reads nothing does not hold up another', async () => {
      await writeFile(join(node().data, 'OUT/out/big'), bytes(30_000_000));
      const stuck = await RawPeer.open(node().port, CONNECT, select('OUT'), ORF, READ);
      stuck.socket.pause();
      const session = await node().connect();
      const content = bytes(3_000_000);
      await node().send(session, 'IN', content);
      expect((await node().received('IN'))[0]!.equals(content)).toBe(true);
      stuck.socket.destroy();
    });

    test('four that write at once all arrive whole', async () => {
      const contents = Array.from({ length: 4 }, () => bytes(2_000_000));
      const sessions = await Promise.all(contents.map(() => node().connect()));
      await Promise.all(sessions.map((session, i) => node().send(session, 'IN', contents[i]!)));
      const received = await node().received('IN');
      for (const content of contents) expect(received.some((file) => file.equals(content))).toBe(true);
      expect(received).toHaveLength(4);
    });
  });
});

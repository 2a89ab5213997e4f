/** Two pods on one machine, so that each sees the other's process. One stands still for longer than its lease, and continues; or is killed. */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { diagnosticOf, fpdu, pointOf } from '@pesit-node/protocol/testing';
import { freePort, TestEventReader, withDatabase } from '@pesit-node/service/testing';
import type { TestDatabase } from '@pesit-node/service/testing';

import { EventFollower, statusesAt } from '../../../packages/service/test/support/event-follower.js';
import { KilledService, patiently } from '../../../packages/service/test/support/killed-service.js';
import type { Json } from '../../../packages/service/test/support/killed-service.js';
import { PASSWORD } from './support/node.js';
import { RawPeer } from './support/raw-peer.js';
import { CONNECT, connectAs, create, DATA, DTF, DTF_END, ORF, step, syn, transEnd, WRITE } from './support/steps.js';

const MAIN = new URL('../dist/main.js', import.meta.url);
/** What the lost session says: as long as DATA, so that each byte of it shows. */
const LATE = 'X'.repeat(DATA.length);
const LATE_DTF = step('DTF', (y) => fpdu('DTF', y, 0, Buffer.from(LATE)), false);

const PODS = ['pod-a', 'pod-b'] as const;
const HOSTS = { 'pod-a': '127.0.0.2', 'pod-b': '127.0.0.1' } as const;

withDatabase((harness) => {
  let directory: string;
  let database: TestDatabase;
  let pods: readonly KilledService[] = [];
  const ports: number[] = [];
  const peers: RawPeer[] = [];

  beforeEach(async () => {
    database = await harness.open();
    directory = await mkdtemp(join(tmpdir(), 'pesit-frozen-'));
    pods = PODS.map(
      (pod) =>
        new KilledService({
          ...{ main: MAIN, directory, databaseUrl: database.url, pod, signal: 'SIGSTOP' },
          // Each has both listeners, on an address of its own: who connects chooses the pod.
          settings: { 'cluster.enabled': true, 'listener.host': HOSTS[pod] },
        }),
    );
  });

  afterEach(async () => {
    for (const { socket } of peers.splice(0)) socket.destroy();
    for (const pod of pods) await pod.kill();
    await rm(directory, { recursive: true, force: true });
  });

  /** A listener for each pod: NODE1 and NODE2. @param step at which the first pod stands still */
  const start = async (at?: string): Promise<void> => {
    for (const [index, pod] of pods.entries()) {
      await pod.start(index === 0 ? at : undefined);
      if (index === 0) {
        await pod.call('POST', '/api/v1/config/partners', { partnerId: 'ACME', password: PASSWORD });
        await pod.call('POST', '/api/v1/config/files', { fileId: 'IN', receiveDirectory: 'in' });
      }
      const [serverId, port] = [`NODE${index + 1}`, (ports[index] = await freePort())];
      await pod.call('POST', '/api/v1/servers', { serverId, port, autoStart: false });
      await pod.call('POST', `/api/v1/servers/${serverId}/start`);
    }
  };

  const begin = async (pod: number, restarted: boolean, transferId = 9): Promise<RawPeer> => {
    const connect = pod === 0 ? CONNECT : connectAs({ server: 'NODE2' });
    const peer = await RawPeer.from('127.0.0.1', ports[pod]!, HOSTS[PODS[pod]!]);
    await peer.sendAll(connect);
    peers.push(peer);
    expect(diagnosticOf(await peer.send(create({ restarted, transferId })))).toBe('0-000');
    await peer.send(ORF);
    return peer;
  };

  /** From here on nothing excuses an answer that the transfer is in progress elsewhere. */
  const leaseIsOver = (): Promise<void> =>
    patiently(async () => {
      const { rows } = await database.knex.raw<{ rows: { over: boolean }[] }>(
        `select seen_at < now() - interval '11 seconds' as over from pesit_server.instances where node = 'pod-a'`,
      );
      return rows[0]?.over === true;
    });

  const record = async (): Promise<Json> => {
    const [found, ...more] = (await pods[1]!.call('GET', '/api/v1/transfers'))['content'] as readonly Json[];
    expect(more).toEqual([]);
    return found!;
  };

  const delivered = async (): Promise<readonly string[]> => {
    const entries = await readdir(join(directory, 'in'), { withFileTypes: true });
    const names = entries.filter((entry) => entry.isFile()).map(({ name }) => name);
    return Promise.all(names.map((name) => readFile(join(directory, 'in', name), 'latin1')));
  };

  const clean = (): Promise<void> => patiently(async () => (await readdir(join(directory, 'in/.pesit'))).length === 0);

  test('within the data: its partner continues on another pod, and what it still writes harms nothing', async () => {
    await start();
    const [frozen, other] = pods as [KilledService, KilledService];
    const lost = await begin(0, false);
    await lost.sendAll(WRITE, DTF, syn(1));
    await frozen.freeze();
    // On their way when it stands still: it reads them when it continues.
    for (const one of [LATE_DTF, syn(2), LATE_DTF, syn(3)]) lost.write(lost.bytesOf(one));
    await leaseIsOver();
    const peer = await begin(1, true);
    expect(pointOf(await peer.send(WRITE))).toBe(1);
    await peer.sendAll(DTF, syn(2));
    frozen.goOn();
    // It finds that the transfer is no longer its own, without being asked.
    await lost.closed();
    await peer.sendAll(DTF, DTF_END);
    expect(diagnosticOf(await peer.send(transEnd(3 * DATA.length, 3)))).toBe('0-000');
    expect(await record()).toMatchObject({ status: 'COMPLETED', node: 'pod-b', attempts: 2, listener: 'NODE2' });
    expect(await delivered()).toEqual([DATA.repeat(3)]);
    await clean();
    expect(await other.call('GET', '/api/v1/config/partners/ACME')).toMatchObject({ transferCount: 1 });
  }, 180_000);

  test('killed within the data: who reads events hears of every outcome, when it comes again to the other pod', async () => {
    await start();
    const [dies, other] = pods as [KilledService, KilledService];
    const reader = new EventFollower();
    await reader.connect(dies);
    const end = async (peer: RawPeer, articles: number): Promise<void> => {
      await peer.send(DTF_END);
      expect(diagnosticOf(await peer.send(transEnd(articles * DATA.length, articles)))).toBe('0-000');
    };
    const whole = await begin(0, false, 1);
    await whole.sendAll(WRITE, DTF);
    await end(whole, 1);
    await reader.saw('COMPLETED', 1);
    const cut = [await begin(0, false, 2), await begin(0, false, 3)];
    for (const peer of cut) await peer.sendAll(WRITE, DTF, syn(1));
    await reader.saw('IN_PROGRESS', 2);
    const [{ id }] = (await other.call('GET', '/api/v1/transfers?status=IN_PROGRESS&sort=startTime,asc'))[
      'content'
    ] as [{ readonly id: number }];
    const one = (lastId?: string): Promise<TestEventReader> => {
      const { port, authorization } = lastId === undefined ? dies : other;
      return TestEventReader.open(port, `/api/v1/transfers/${id}/events`, { authorization }, lastId);
    };
    const first = await one();
    const { id: lastId } = await first.next('transfer');
    await dies.kill();
    await Promise.all([reader.over(), first.over()]);
    await reader.connect(other);
    const again = await one(lastId);
    expect((await again.next()).data).toMatchObject({ id, status: expect.stringMatching(/^(?:IN_PROGRESS|FAILED)$/) });
    await reader.saw('FAILED', 2);
    await again.over();
    expect(again.events.at(-1)).toMatchObject({ id: 'over', data: { id, status: 'FAILED', restartable: true } });
    expect((await one('over')).status).toBe(204);
    const peer = await begin(1, true, 2);
    await peer.sendAll(WRITE, DTF);
    await end(peer, 2);
    await reader.saw('COMPLETED', 2);
    expect(reader.resets).toEqual(['new', 'unknown id']);
    expect(reader.statuses).toEqual(await statusesAt(other));
    expect(reader.statuses.map(([, status]) => status).toSorted()).toEqual(['COMPLETED', 'COMPLETED', 'FAILED']);
    await reader.close();
  }, 300_000);

  /** It stands still at a step of its delivery. @returns the answer that its own session has in the end */
  const deliversAt = async (at: string, points: readonly number[]): Promise<string | undefined> => {
    await start(at);
    const [frozen] = pods as [KilledService];
    const lost = await begin(0, false);
    await lost.send(WRITE);
    for (const point of points) await lost.sendAll(DTF, syn(point));
    const articles = points.length + 1;
    await lost.sendAll(DTF, DTF_END);
    lost.write(lost.bytesOf(transEnd(articles * DATA.length, articles)));
    await frozen.stands();
    await leaseIsOver();
    const peer = await begin(1, true);
    const from = pointOf(await peer.send(WRITE)) ?? 0;
    for (let left = articles - from; left > 0; left -= 1) await peer.send(DTF);
    await peer.send(DTF_END);
    expect(diagnosticOf(await peer.send(transEnd(articles * DATA.length, articles)))).toBe('0-000');
    expect(await delivered()).toEqual([DATA.repeat(articles)]);
    frozen.goOn();
    const answer = await lost.next();
    lost.socket.destroy();
    expect(await record()).toMatchObject({ status: 'COMPLETED' });
    expect(await delivered()).toEqual([DATA.repeat(articles)]);
    expect(await pods[1]!.call('GET', '/api/v1/config/partners/ACME')).toMatchObject({ transferCount: 1 });
    await clean();
    return diagnosticOf(answer);
  };

  test.each([
    ['a small file', []],
    ['a file with points', [1, 2]],
  ])(
    'before the file has its name: %s is delivered once, by the other pod',
    async (_, points) => {
      expect(await deliversAt('before:link', points)).not.toBe('0-000');
    },
    180_000,
  );

  test('when the file has its name: it stays, and both pods say so', async () => {
    expect(await deliversAt('before:complete', [1])).toBe('0-000');
  }, 180_000);
});

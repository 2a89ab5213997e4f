/** Three pods over one database: what is said to one is true on all. Each has an address of its own on this machine. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { connectTls, TlsClientTerms } from '@pesit-node/net';
import { TestCa } from '@pesit-node/net/testing/certificates';
import type { Config } from '@pesit-node/service';
import { summaryOf } from '@pesit-node/protocol/testing';
import { captureLog, emptyTables, freePort, withDatabase } from '@pesit-node/service/testing';
import type { TestDatabase } from '@pesit-node/service/testing';

import { withRedis } from '../../../packages/cluster/test/support/redis.js';
import { MIGRATIONS } from '../src/migrations/index.js';
import { TestNode, until } from './support/node.js';
import { RawPeer } from './support/raw-peer.js';
import { connectAs, RELEASE } from './support/steps.js';

const SERVERS = '/api/v1/servers';

interface Line {
  readonly name: string;
  readonly status: string;
  readonly statusReason: string | null;
  readonly since: string | null;
}

const accepts = (host: string, port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, host);
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });

withDatabase((harness) => {
  let database: TestDatabase;
  let directory: string;
  let port: number;
  const pods: TestNode[] = [];

  beforeAll(async () => {
    database = await harness.open({ migrations: [MIGRATIONS] });
  });
  beforeEach(async () => {
    await emptyTables(database, 'pesit_server', 'pesit_common');
    directory = await mkdtemp(join(tmpdir(), 'pesit-listener-pods-'));
    await mkdir(join(directory, 'data'));
    port = await freePort();
  });
  afterEach(async () => {
    for (const pod of pods.splice(0)) await pod.stop();
    await rm(directory, { recursive: true, force: true });
  });
  afterAll(() => database.knex.destroy());

  const hostOf = (number: number): string => `127.0.0.${number}`;

  const startPods = async (
    count: number,
    settings: Partial<Config<'server'>>,
    listenerLookMs?: number,
    storeLookMs?: number,
  ): Promise<readonly TestNode[]> => {
    for (let number = 1; number <= count; number++) {
      const own = await harness.another({ ...database, searchPath: [MIGRATIONS.schema] });
      const options = {
        node: `pod-${number}`,
        answerMs: 0,
        ...(listenerLookMs === undefined ? {} : { listenerLookMs }),
        ...(storeLookMs === undefined ? {} : { storeLookMs }),
      };
      const pod = new TestNode(own, join(directory, 'data'), captureLog(), {
        settings: { 'listener.host': hostOf(number), ...settings },
        ...options,
      });
      pods.push(pod);
      await pod.start();
    }
    for (const { node } of pods) await node.cluster.members.refresh();
    return pods;
  };

  /** Which pods take connections on a port. */
  const accepting = async (on: number): Promise<readonly boolean[]> =>
    Promise.all(pods.map((_, index) => accepts(hostOf(index + 1), on)));
  const all = async (on: number, expected: boolean): Promise<void> => {
    await until(async () => (await accepting(on)).every((one) => one === expected) || undefined);
  };
  const lines = async (pod: TestNode): Promise<readonly Line[]> =>
    (await pod.call('get', `${SERVERS}/S`))['pods'] as readonly Line[];

  /** Each verb is said to another pod. */
  const everyVerb = async (): Promise<void> => {
    const [first, second, third] = pods as [TestNode, TestNode, TestNode];
    const created = await first.call('post', SERVERS, { serverId: 'S', port });
    expect(created).toMatchObject({ status: 'RUNNING', wanted: true });
    await all(port, true);
    expect(await second.call('post', `${SERVERS}/S/stop`)).toMatchObject({ wanted: false });
    await all(port, false);
    expect(await third.call('post', `${SERVERS}/S/start`)).toMatchObject({ status: 'RUNNING' });
    await all(port, true);

    const other = await freePort();
    await first.call('put', `${SERVERS}/S`, { port: other });
    await all(other, true);
    expect(await accepting(port)).toEqual([false, false, false]);

    const running = async (): Promise<readonly (string | null)[]> => {
      const said = await lines(second);
      return said.every(({ status }) => status === 'RUNNING') ? said.map(({ since }) => since) : [];
    };
    const before = await until(async () => ((await running()).length === 3 ? await running() : undefined));
    await second.call('post', `${SERVERS}/S/restart`);
    await until(async () => {
      const after = await running();
      return (after.length === 3 && after.every((since, index) => since !== before[index])) || undefined;
    });
    await all(other, true);

    await third.call('delete', `${SERVERS}/S?force=true`);
    await all(other, false);
    expect(await accepting(port)).toEqual([false, false, false]);
    for (const pod of pods) expect(await pod.call('get', SERVERS)).toEqual([]);
  };

  /** A keystore is changed at another pod than the one that partners meet. */
  const changedKeystore = async (): Promise<void> => {
    const [here, there] = pods as [TestNode, TestNode];
    const ca = await TestCa.create('Bank CA');
    const issued = async (name: string) => {
      const { certificateChain: certificate, privateKey, fingerprint } = await ca.issue(name);
      return { body: { certificate, privateKey }, fingerprint };
    };
    const [before, after] = [await issued('before'), await issued('after')];
    await there.call('post', '/api/v1/certificates/keystores', { name: 'k', ...before.body });
    await here.call('post', SERVERS, { serverId: 'S', port: null, sslEnabled: true, tlsPort: port, keystoreName: 'k' });
    await here.partner('ACME');
    const connect = () => {
      const terms = new TlsClientTerms({ trust: { certificates: [ca.certificate] }, sessionCacheSize: 0 });
      return here.connect({ port, transport: connectTls(() => terms), server: 'S' });
    };
    const open = await connect();
    expect(open.security?.peerCertificate?.fingerprint).toBe(before.fingerprint);
    await there.call('put', '/api/v1/certificates/keystores/k', after.body);
    await until(async () => {
      const next = await connect();
      await next.release();
      return next.security?.peerCertificate?.fingerprint === after.fingerprint || undefined;
    });
    // The session that was open has not noticed.
    await open.release();
  };

  test('without Redis: a changed keystore is used by the handshakes of the other pod, and no session drops', async () => {
    await startPods(2, {}, 200, 200);
    await changedKeystore();
  });

  test('without Redis: every verb said to one pod is true on all', async () => {
    await startPods(3, {}, 200);
    await everyVerb();
  });

  withRedis(({ url, unique }) => {
    test('with Redis: a changed keystore is used by the other pod before it looks by itself', async () => {
      const settings = { 'cluster.enabled': true, 'cluster.name': unique(), 'redis.url': url };
      await startPods(2, settings, 3_600_000, 3_600_000);
      for (const { node } of pods) await until(() => node.cluster.redisConnected || undefined);
      await changedKeystore();
    });

    test('with Redis: every verb said to one pod is true on all, before they look by themselves', async () => {
      await startPods(3, { 'cluster.enabled': true, 'cluster.name': unique(), 'redis.url': url }, 3_600_000);
      for (const { node } of pods) await until(() => node.cluster.redisConnected || undefined);
      await everyVerb();
    });
  });

  test('the status is that of all pods, with a line for each; one that leaves has none', async () => {
    const [first, , third] = (await startPods(3, {}, 200)) as [TestNode, TestNode, TestNode];
    const foreign = createServer().listen(port, hostOf(3));
    await once(foreign, 'listening');
    await first.call('post', SERVERS, { serverId: 'S', port });
    const inUse = `port ${port} is in use by another process: stop it, or choose another port`;
    const reason = `RUNNING on 2 of 3; pod-3 FAILED: ${inUse}`;
    for (const pod of pods) {
      const path = `${SERVERS}/S/status`;
      const shown = await until(async () => {
        const status = await pod.call('get', path);
        return status['statusReason'] === reason ? status : undefined;
      });
      expect(shown).toMatchObject({ status: 'RUNNING', nextAttemptAt: expect.any(String) });
      expect((shown['pods'] as readonly Line[]).map(({ name, status }) => `${name} ${status}`)).toEqual([
        ...['pod-1 RUNNING', 'pod-2 RUNNING', 'pod-3 FAILED'],
      ]);
    }
    const said = await first.call('post', `${SERVERS}/S/start`);
    expect(said['message']).toBe(`Listener S is running already on port ${port}; pod-3 FAILED: ${inUse}`);
    foreign.close();
    await until(async () => (await accepts(hostOf(3), port)) || undefined);
    await third.stop();
    pods.pop();
    await first.node.cluster.members.refresh();
    expect((await lines(first)).map(({ name }) => name)).toEqual(['pod-1', 'pod-2']);
    expect(await first.call('get', `${SERVERS}/S`)).toMatchObject({ status: 'RUNNING', statusReason: null });
  });

  test('the line of a pod that died is shown until its lease is over', async () => {
    const [first] = (await startPods(1, {}, 200)) as [TestNode];
    await first.call('post', SERVERS, { serverId: 'S', port });
    const instance = randomUUID();
    await database.knex('pesit_common.cluster_pods').insert({
      ...{ instance, app: 'server', cluster: 'pesit', namespace: 'default', pod: 'pod-2' },
    });
    await database.knex('listener_pods').insert({
      ...{ server_id: 'S', instance, status: 'RUNNING', sessions: 3, refused: 2, standby: false },
    });
    await first.node.cluster.members.refresh();
    expect(await first.call('get', `${SERVERS}/S`)).toMatchObject({ activeConnections: 3, refusedConnections: 2 });
    const over = { seen_at: database.knex.raw("now() - interval '11 seconds'") };
    await database.knex('pesit_common.cluster_pods').where({ instance }).update(over);
    await until(async () => (await lines(first)).length === 1 || undefined);
    expect(await first.call('get', `${SERVERS}/S`)).toMatchObject({ activeConnections: 0, refusedConnections: 0 });
  });

  test('the limits of a partner and of a listener hold across pods', async () => {
    const [first, second] = (await startPods(2, {}, 200)) as [TestNode, TestNode];
    await first.call('post', SERVERS, { serverId: 'S', port, maxConnections: 2 });
    await first.partner('ACME', { maxConnections: 1 });
    for (const partner of ['BETA', 'GAMMA']) await first.partner(partner);
    await until(async () => (await accepting(port)).every((one) => one) || undefined);
    const peers: RawPeer[] = [];
    const says = async (number: number, requester: string): Promise<string> => {
      const peer = await RawPeer.from(hostOf(number), port, hostOf(number));
      peers.push(peer);
      return summaryOf(await peer.send(connectAs({ requester, server: 'S' })));
    };
    expect(await says(1, 'ACME')).toBe('ACONNECT');
    expect(await says(2, 'ACME')).toBe('RCONNECT 3-309');
    expect(await says(2, 'BETA')).toBe('ACONNECT');
    expect(await says(1, 'GAMMA')).toBe('RCONNECT 3-309');
    expect(await says(2, 'GAMMA')).toBe('RCONNECT 3-309');
    const [acme] = peers;
    await acme?.send(RELEASE);
    acme?.socket.destroy();
    await until(async () => ((await says(2, 'ACME')) === 'ACONNECT' ? true : undefined));
    for (const { socket } of peers) socket.destroy();
    expect(second.log.lines.join('\n')).toContain('ACME has 1 sessions already, on all pods together');
  });

  test('a pod that starts runs what is wanted, not what autoStart says', async () => {
    const [first] = (await startPods(1, {}, 200)) as [TestNode];
    const other = await freePort();
    await first.call('post', SERVERS, { serverId: 'S', port, autoStart: false });
    await first.call('post', `${SERVERS}/S/start`);
    await first.call('post', SERVERS, { serverId: 'T', port: other });
    await first.call('post', `${SERVERS}/T/stop`);
    await first.restart();
    expect([await accepts(hostOf(1), port), await accepts(hostOf(1), other)]).toEqual([true, false]);
  });

  describe('with cluster.listeners: leader', () => {
    test('the leader alone runs the listeners and is ready; another pod takes over when it leaves', async () => {
      const settings = {
        'cluster.enabled': true,
        'cluster.name': randomUUID(),
        'cluster.listeners': 'leader',
      } as const;
      await startPods(2, settings, 200);
      const leads = ({ node }: TestNode): boolean => node.cluster.leader.isLeader;
      const leader = await until(() => pods.find(leads));
      const standby = pods.find((pod) => pod !== leader)!;
      const said = await standby.call('post', SERVERS, { serverId: 'S', port });
      expect(said).toMatchObject({ wanted: true });
      const at = (pod: TestNode): string => pod.config['listener.host'];
      await until(async () => (await accepts(at(leader), port)) || undefined);
      expect(await accepts(at(standby), port)).toBe(false);
      expect([(await leader.readiness()).code, (await standby.readiness()).code]).toEqual([200, 503]);
      const { components } = await standby.readiness();
      expect(components['listeners']).toEqual({
        status: 'DOWN',
        details: { reason: 'another pod leads and runs the listeners (cluster.listeners: leader)', running: 0 },
      });
      await until(async () => {
        const { status, statusReason } = await standby.call('get', `${SERVERS}/S`);
        return (status === 'RUNNING' && statusReason === null) || undefined;
      });
      await leader.stop();
      pods.splice(pods.indexOf(leader), 1);
      await until(async () => (await accepts(at(standby), port)) || undefined);
      expect(await accepts(at(leader), port)).toBe(false);
      await until(async () => (await standby.readiness()).code === 200 || undefined);
    });
  });
});

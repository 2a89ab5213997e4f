/** A volume that one pod cannot use: it takes no files and says so, and another pod continues its transfers. */
import { execFileSync } from 'node:child_process';
import { constants } from 'node:fs';
import { mkdir, mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import { afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { deferred } from '@pesit-node/ground';
import { diagnosticOf, summaryOf } from '@pesit-node/protocol/testing';
import { PasswordVerifier } from '@pesit-node/service';
import { captureLog, emptyTables, freePort, withDatabase } from '@pesit-node/service/testing';
import type { TestDatabase } from '@pesit-node/service/testing';
import { nodeFiles } from '@pesit-node/storage';
import type { FileOperations } from '@pesit-node/storage';

import { MIGRATIONS } from '../src/migrations/index.js';
import type { NodeOptions } from '../src/node.js';
import { TestNode, until } from './support/node.js';
import { passwords } from './support/passwords.js';
import { RawPeer } from './support/raw-peer.js';
import { CONNECT, connectAs, create, CRF, DATA, DESELECT, DTF, DTF_END, ORF, select } from './support/steps.js';
import { syn, transEnd, WRITE } from './support/steps.js';

const LATER = 'the storage of this node is not available for now: try again later';

withDatabase((harness) => {
  let database: TestDatabase;
  const pods: TestNode[] = [];
  /** What a look meets. */
  let fails: string | undefined;
  const files: FileOperations = {
    ...nodeFiles,
    open: (path, flags, mode) =>
      fails === undefined
        ? nodeFiles.open(path, flags, mode)
        : Promise.reject(Object.assign(new Error(fails), { code: fails })),
  };
  const OPTIONS = { node: 'pod-1', volumeLookMs: 20, volumeFiles: files } as const;

  beforeAll(async () => {
    database = await harness.open({ migrations: [MIGRATIONS] });
  });
  beforeEach(() => (fails = undefined));
  afterEach(async () => {
    for (const pod of pods) await pod.stop();
    for (const { data } of pods) await rm(dirname(data), { recursive: true, force: true });
    pods.length = 0;
  });

  const start = async (
    options: Partial<NodeOptions> & Pick<ConstructorParameters<typeof TestNode>[3], 'settings'> = {},
    first?: TestNode,
  ): Promise<TestNode> => {
    const own =
      first === undefined ? database : await harness.another({ ...database, searchPath: [MIGRATIONS.schema] });
    if (first === undefined) await emptyTables(own, 'pesit_server', 'pesit_common');
    const data = first?.data ?? join(await mkdtemp(join(tmpdir(), 'pesit-volumes-')), 'data');
    await mkdir(data, { recursive: true });
    const pod = new TestNode(own, data, captureLog(), { ...OPTIONS, ...options });
    pods.push(pod);
    await pod.start();
    return pod;
  };
  const isReady = (pod: TestNode, code: number) =>
    until(async () => ((await pod.readiness()).code === code ? true : undefined));

  test('that fails: no session, no file, until it is well again', async () => {
    const pod = await start();
    await pod.configure();
    const idle = await RawPeer.open(pod.port, CONNECT);
    const busy = await RawPeer.open(pod.port, CONNECT, create(), ORF, WRITE, DTF, syn(1));
    fails = 'EROFS';
    // A session that does nothing ends, so that its partner comes to another pod.
    expect(summaryOf(await idle.next())).toBe('ABORT 3-322');
    await isReady(pod, 503);
    const { components } = await pod.readiness();
    const reason = expect.stringMatching(new RegExp(`^cannot write ${pod.data}/…: `));
    expect(components['volumes']).toMatchObject({
      status: 'DOWN',
      details: { kind: 'failed', directory: pod.data, reason },
    });
    const [member] = (await pod.call('get', '/api/v1/cluster'))['members'] as readonly Record<string, unknown>[];
    expect(member).toMatchObject({ ready: false, notReadyReason: expect.stringMatching(/^volumes: cannot write /) });
    expect(await pod.text('get', '/metrics')).toMatch(/^pesit_volumes_up 0$/m);
    const late = await RawPeer.open(pod.port);
    const refused = await late.send(CONNECT);
    expect([summaryOf(refused), refused?.includes(LATER)]).toEqual(['RCONNECT 3-322', true]);
    // What runs may end; no other file begins.
    expect(diagnosticOf(await busy.sendAll(DTF_END, transEnd(DATA.length, 1)))).toBe('0-000');
    expect(summaryOf(await busy.sendAll(CRF, DESELECT, create({ transferId: 8 })))).toBe('ACK(CREATE) 3-322');
    fails = undefined;
    await isReady(pod, 200);
    const again = await RawPeer.open(pod.port, CONNECT, create({ transferId: 9 }));
    again.socket.destroy();
    expect(await pod.text('get', '/metrics')).toMatch(/^pesit_volumes_up 1$/m);
    const said = pod.log.entries().map(({ msg }) => msg);
    expect(said).toContain('this pod takes no files, for a volume cannot be used');
    expect(said).toContain('the volumes of this pod can be used again: it takes files');
    for (const { socket } of [idle, busy, late]) socket.destroy();
  });

  test.each([
    ['lost', 'ESTALE'],
    ['full', 'ENOSPC'],
    ['read-only', 'EROFS'],
  ])(
    'that is %s while a partner comes in: CREATE and SELECT are answered 2-201, until it is well again',
    async (_, code) => {
      const asked = deferred<undefined>();
      const verified = deferred<undefined>();
      const verifier = new PasswordVerifier({
        check: async (password, stored) => {
          asked.resolve(undefined);
          await verified.promise;
          return passwords.verify(password, stored);
        },
      });
      const pod = await start({ verifier });
      await pod.configure();
      const peer = await RawPeer.open(pod.port);
      const answer = peer.send(CONNECT);
      await asked.promise;
      fails = code;
      await isReady(pod, 503);
      verified.resolve(undefined);
      expect(summaryOf(await answer)).toBe('ACONNECT');
      for (const [step, name] of [
        [create({ transferId: 7 }), 'ACK(CREATE)'],
        [select('OUT'), 'ACK(SELECT)'],
      ] as const) {
        const refused = await peer.send(step);
        expect([summaryOf(refused), refused?.includes(LATER)]).toEqual([`${name} 2-201`, true]);
      }
      const records = await until(async () => {
        const found = await pod.history('&status=FAILED');
        return found.length === 2 ? found : undefined;
      });
      expect(records).toMatchObject(
        ['SEND', 'RECEIVE'].map((direction) => ({
          ...{ direction, diagnostic: '2-201' },
          errorMessage: expect.stringMatching(/^no files can be taken here: cannot (?:write|create|open) /),
        })),
      );
      fails = undefined;
      await isReady(pod, 200);
      expect(diagnosticOf(await peer.send(create({ transferId: 8 })))).toBe('0-000');
      peer.socket.destroy();
    },
  );

  test('that does not answer: its transfers continue on another pod, and once', async () => {
    const timings = {
      leaseMs: 3000,
      restartWaitMs: 30_000,
      volumeFiles: nodeFiles,
      settings: { 'storage.answer-timeout': 2 },
    };
    const first = await start(timings);
    await first.configure();
    // A real call that does not return: a FIFO waits for a reader.
    const fifo = join(first.data, '.pesit-look-pod-1');
    const lost = await RawPeer.open(first.port, CONNECT, create(), ORF, WRITE, DTF, syn(1));
    const other = await start({ ...timings, node: 'pod-2' }, first);
    await until(() => mkfifo(fifo));
    expect(summaryOf(await until(() => lost.next()))).toBe('ABORT 3-322');
    expect((await first.readiness()).components['volumes']).toMatchObject({
      details: { kind: 'silent', reason: expect.stringMatching(/has not answered for \d+\.\d s/) },
    });
    const port = await freePort();
    await other.call('post', '/api/v1/servers', { serverId: 'NODE2', port });
    const peer = await RawPeer.open(port, connectAs({ server: 'NODE2' }), create({ restarted: true }), ORF, WRITE);
    expect(diagnosticOf(await peer.sendAll(DTF, DTF_END, transEnd(2 * DATA.length, 2)))).toBe('0-000');
    expect(await other.received('IN')).toEqual([Buffer.from(DATA.repeat(2))]);
    expect(await other.ended()).toMatchObject({ status: 'COMPLETED', node: 'pod-2', attempts: 2 });
    const reader = await open(fifo, constants.O_RDONLY | constants.O_NONBLOCK);
    await rm(fifo);
    await reader.close();
    await isReady(first, 200);
    expect(await other.history()).toHaveLength(1);
    for (const { socket } of [lost, peer]) socket.destroy();
  });

  test('a pod whose directory is another one than that of the cluster takes no files, and says why', async () => {
    const settings = { 'cluster.enabled': true };
    const first = await start({ settings });
    await first.configure();
    expect(await nodeFiles.readdir(first.data)).toContain('.pesit-server-volume');
    // The same path in another container: nothing is mounted there.
    await rm(join(first.data, '.pesit-server-volume'));
    await isReady(first, 503);
    expect((await first.readiness()).components['volumes']).toMatchObject({
      details: {
        kind: 'not shared',
        reason: expect.stringMatching(/pod-1 placed on .*: the volume that the pods share is not mounted here/),
      },
    });
    await (
      await nodeFiles.open(join(first.data, '.pesit-server-volume'), constants.O_CREAT | constants.O_WRONLY)
    ).close();
    await isReady(first, 200);
  });
});

/** @returns undefined while a look has its file there. */
const mkfifo = (path: string): true | undefined => {
  try {
    execFileSync('mkfifo', [path], { stdio: 'pipe' });
    return true;
  } catch {
    return undefined;
  }
};

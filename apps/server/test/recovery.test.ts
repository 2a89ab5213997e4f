import { createHash, randomUUID } from 'node:crypto';
import { link, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { diagnosticOf, pointOf } from '@pesit-node/protocol/testing';
import { captureLog, withDatabase, freePort } from '@pesit-node/service/testing';
import { nodeFiles } from '@pesit-node/storage';

import { MIGRATIONS } from '../src/migrations/index.js';
import { TransferContexts } from '../src/transfers/contexts.js';
import { TestNode, until, useNode } from './support/node.js';
import type { TransferRecord } from './support/node.js';
import { RawPeer } from './support/raw-peer.js';
import { CONNECT, create, DATA, DTF, DTF_END, endOf, ORF, syn, transEnd, WRITE } from './support/steps.js';

const DEAD = '00000000-0000-4000-8000-000000000001';
const sha256 = (content: string): string => `sha256:${createHash('sha256').update(content).digest('hex')}`;

interface Orphan {
  /** Columns of its record beside the usual ones. */
  readonly record?: Readonly<Record<string, unknown>>;
  readonly staged?: string;
  readonly final?: string;
  /** The staged file and the final one are the same. */
  readonly linked?: boolean;
  /** A mark of the delivery; the staged name is gone, and the final one was fetched. */
  readonly mark?: { readonly content: string; readonly how: 'linked' | 'moved' };
}

const INTENT = {
  delivering: true,
  size: 7,
  checksum: sha256('content'),
  path: 'name',
  bytes_transferred: 7,
  articles: 1,
};

withDatabase((harness) => {
  const node = useNode(harness, { restartWaitMs: 400 });

  const directory = (): string => join(node().data, 'IN/in');

  /** A transfer whose process is gone, and what that has left on the disk. */
  const orphan = async ({ record, staged, final, linked = false, mark }: Orphan): Promise<string> => {
    const context = randomUUID();
    await node()
      .database.knex('transfers')
      .insert({
        partner_id: 'ACME',
        direction: 'RECEIVE',
        status: 'IN_PROGRESS',
        virtual_file_id: 'IN',
        transfer_id: 9,
        filename: 'name',
        listener: 'NODE1',
        node: 'node-b',
        instance: DEAD,
        session_id: 's',
        remote_address: '::1',
        context,
        directory: directory(),
        overwrite: false,
        ...record,
      });
    const part = join(directory(), '.pesit', `${context}.part`);
    await mkdir(join(directory(), '.pesit'), { recursive: true });
    if (staged !== undefined) await writeFile(part, staged);
    if (final !== undefined) await writeFile(join(directory(), 'name'), final);
    if (linked) await link(part, join(directory(), 'name'));
    if (mark !== undefined) {
      await writeFile(join(directory(), '.pesit', `${context}.${nodeFiles.boot}.${mark.how}`), mark.content);
    }
    return part;
  };

  const recovered = async (): Promise<TransferRecord> => {
    await node().restartListening();
    const [record, ...more] = await node().history();
    expect(more).toEqual([]);
    return record!;
  };

  const COMPLETED = { status: 'COMPLETED', size: 7, checksum: sha256('content'), diagnostic: '0-000' };
  const RESTARTABLE = { status: 'FAILED', restartable: true, diagnostic: '2-223', checksum: null, size: null };

  test.each<[string, Orphan, object]>([
    ['nothing was staged', {}, RESTARTABLE],
    ['it was staged', { staged: 'cont' }, RESTARTABLE],
    ['it was staged whole, with the intent', { staged: 'content', record: INTENT }, RESTARTABLE],
    ['it was delivered and recorded as intended', { final: 'content', record: INTENT }, COMPLETED],
    ['it has both names, with the intent', { staged: 'content', linked: true, record: INTENT }, COMPLETED],
    ['it has both names', { staged: 'content', linked: true }, COMPLETED],
    ['a small one was delivered', { final: 'content' }, COMPLETED],
    [
      'an empty one was delivered',
      { final: '', record: { ...INTENT, size: 0, checksum: sha256('') } },
      { ...COMPLETED, size: 0, checksum: sha256('') },
    ],
    ['the final name has another content than intended', { final: 'CONTENT', record: INTENT }, RESTARTABLE],
    ['the final name has another size than intended', { final: 'more content', record: INTENT }, RESTARTABLE],
    ['it was intended, and there is no trace of it', { record: INTENT }, RESTARTABLE],
    ['a small one was delivered and fetched', { mark: { content: 'content', how: 'linked' } }, COMPLETED],
    ['it was delivered and fetched', { mark: { content: 'content', how: 'linked' }, record: INTENT }, COMPLETED],
    [
      'it replaced another and was fetched',
      { mark: { content: 'content', how: 'moved' }, record: { overwrite: true } },
      COMPLETED,
    ],
    [
      'the checksum is not kept',
      { final: 'content', record: { ...INTENT, checksum: null } },
      { ...COMPLETED, checksum: null },
    ],
    [
      'it has no context, from an earlier version',
      { record: { context: null } },
      { ...RESTARTABLE, restartable: false },
    ],
    ['it was read', { record: { direction: 'SEND' } }, RESTARTABLE],
  ])('%s', async (_, what, expected) => {
    await orphan(what);
    const record = await recovered();
    expect(record).toMatchObject(expected);
    const isDelivered = record.status === 'COMPLETED';
    expect(await node().staged('IN')).toHaveLength(!isDelivered && what.staged !== undefined ? 1 : 0);
    const words = node()
      .log.entries()
      .map(({ msg }) => msg);
    expect(words).toContain(
      isDelivered
        ? 'marked a transfer of a dead process as COMPLETED: its file was delivered'
        : 'marked a transfer of a dead process as FAILED: the partner may restart it',
    );
  });

  test('a file that may replace another proves nothing by its name: it is received once more', async () => {
    await orphan({ final: 'content', record: { overwrite: true } });
    expect(await recovered()).toMatchObject(RESTARTABLE);
  });

  test('the empty file that kept the name of a delivery is taken away', async () => {
    await orphan({ staged: 'content', final: '', record: INTENT });
    expect(await recovered()).toMatchObject(RESTARTABLE);
    expect(await node().received('IN')).toEqual([]);
  });

  test('a file of that name that another transfer has delivered is not taken for it', async () => {
    await orphan({ final: 'content' });
    await orphan({ record: { transfer_id: 10 } });
    const delivered = { status: 'COMPLETED', end_time: new Date(), path: join(directory(), 'name') };
    await node().database.knex('transfers').where('transfer_id', 10).update(delivered);
    await node().restartListening();
    expect(await node().history()).toEqual([
      expect.objectContaining({ status: 'COMPLETED', transferId: 10 }),
      expect.objectContaining({ ...RESTARTABLE, transferId: 9 }),
    ]);
  });

  test('a volume that is not mounted says nothing: it is decided when it is there', async () => {
    await orphan({ final: 'content', record: INTENT });
    await rename(join(node().data, 'IN'), join(node().data, 'AWAY'));
    expect(await recovered()).toMatchObject({ status: 'IN_PROGRESS' });
    const words = node()
      .log.entries()
      .map(({ msg }) => msg);
    expect(words).toContain('could not inspect an interrupted transfer yet: leaving it as it is, trying again');
    await rename(join(node().data, 'AWAY'), join(node().data, 'IN'));
    expect(await recovered()).toMatchObject(COMPLETED);
  });

  test('the restart of a transfer that a dead process has delivered is answered as of a complete one', async () => {
    await orphan({
      final: DATA,
      record: { ...INTENT, size: DATA.length, bytes_transferred: DATA.length, checksum: sha256(DATA) },
    });
    const peer = await RawPeer.open(node().port, CONNECT, create({ restarted: true }), ORF, WRITE, DTF, DTF_END);
    expect(diagnosticOf(await peer.send(transEnd(DATA.length, 1)))).toBe('0-000');
    peer.socket.destroy();
    expect(await node().history()).toEqual([expect.objectContaining({ status: 'COMPLETED', attempts: 1 })]);
    expect((await node().received('IN')).map(String)).toEqual([DATA]);
  });

  test('what nobody had counted of it is counted then', async () => {
    await orphan({ final: DATA });
    expect(await recovered()).toMatchObject({ status: 'COMPLETED', articles: 0 });
    const peer = await RawPeer.open(node().port, CONNECT, create({ restarted: true }), ORF, WRITE, DTF, DTF_END);
    expect(diagnosticOf(await peer.send(transEnd(DATA.length, 1)))).toBe('0-000');
    peer.socket.destroy();
    expect(await node().history()).toEqual([
      expect.objectContaining({ status: 'COMPLETED', bytesTransferred: DATA.length, articles: 1 }),
    ]);
  });

  test('more staged keys are asked for than a statement takes values', async () => {
    const { knex } = node().database;
    const contexts = new TransferContexts({ knex, node: 'test', instance: randomUUID(), retentionDays: 7 });
    const keys = Array.from({ length: 70_000 }, (_, n) => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`);
    expect(await contexts.wantedAmong(keys)).toEqual(new Set());
  });
});

withDatabase((harness) => {
  const log = captureLog();
  let data: string;
  let pods: readonly TestNode[] = [];

  beforeEach(async () => {
    const database = await harness.open({ migrations: [MIGRATIONS] });
    data = await mkdtemp(join(tmpdir(), 'pesit-pods-'));
    // Longer than a loaded machine holds up a renewal: who is late by a lease counts as gone.
    const options = { leaseMs: 3000, restartWaitMs: 2000 };
    pods = [
      new TestNode(database, data, log, { ...options, node: 'pod-a' }),
      new TestNode(await harness.another(database), data, log, { ...options, node: 'pod-b' }),
    ];
    for (const pod of pods) await pod.start();
    await pods[0]!.configure();
    await pods[1]!.call('post', '/api/v1/servers', {
      serverId: 'NODE2',
      port: (pods[1]!.port = await freePort()),
      autoStart: false,
    });
    await pods[1]!.call('post', '/api/v1/servers/NODE2/start');
  });

  afterEach(async () => {
    for (const pod of pods) await pod.stop();
    await rm(data, { recursive: true, force: true });
  });

  const writing = async (pod: TestNode, restarted: boolean): Promise<RawPeer> => {
    const peer = await RawPeer.open(pod.port, CONNECT, create({ restarted }), ORF);
    return peer;
  };

  test('a restart that reaches another pod goes on there', async () => {
    const [first, second] = pods as [TestNode, TestNode];
    const cut = await writing(first, false);
    await cut.sendAll(WRITE, DTF, syn(1), DTF);
    cut.socket.resetAndDestroy();
    await first.ended();
    const peer = await writing(second, true);
    expect(pointOf(await peer.send(WRITE))).toBe(1);
    await peer.sendAll(DTF, DTF_END);
    expect(diagnosticOf(await peer.send(transEnd(2 * DATA.length, 2)))).toBe('0-000');
    peer.socket.destroy();
    expect(await second.history()).toEqual([
      expect.objectContaining({ status: 'COMPLETED', attempts: 2, node: 'pod-b', listener: 'NODE2' }),
    ]);
    expect((await first.received('IN')).map(String)).toEqual([DATA + DATA]);
  });

  test('a transfer of a living pod is left alone: not recovered, and its restart elsewhere waits, then 2-207', async () => {
    const [first, second] = pods as [TestNode, TestNode];
    const running = await writing(first, false);
    await running.sendAll(WRITE, DTF, syn(1));
    await second.restartListening('NODE2');
    expect((await second.history())[0]).toMatchObject({ status: 'IN_PROGRESS' });
    const peer = await RawPeer.open(second.port, CONNECT);
    expect(diagnosticOf(await peer.send(create({ restarted: true })))).toBe('2-207');
    peer.socket.destroy();
    expect(diagnosticOf(await running.sendAll(...endOf(1)))).toBe('0-000');
    running.socket.destroy();
  });

  test('a pod that stood still beyond its lease delivers nothing that another may have taken, however small', async () => {
    const [first] = pods as [TestNode, TestNode];
    const { knex } = pods[1]!.database;
    const before = log.lines.length;
    const running = await writing(first, false);
    await running.sendAll(WRITE, DTF, DTF_END);
    // As while it stands still: the lease is not renewed, and another pod takes the transfer.
    const still = await knex.transaction();
    try {
      await still.raw("select from instances where node = 'pod-a' for update");
      await until(async () => {
        const { rows } = await knex.raw<{ rows: unknown[] }>(
          "select from instances where node = 'pod-a' and seen_at < now() - interval '3 seconds'",
        );
        return rows.length > 0 || undefined;
      });
      await knex('transfers').increment('fence', 1);
      expect(diagnosticOf(await running.send(transEnd(DATA.length, 1)))).toBe('2-207');
    } finally {
      await still.rollback();
    }
    running.socket.destroy();
    expect(
      log
        .entries()
        .slice(before)
        .map(({ msg }) => msg),
    ).not.toContain('took the delivered file back: its transfer could not be recorded');
    expect(await first.received('IN')).toEqual([]);
  });

  /** A pod of another machine, as the table of processes shows it. */
  const elsewhere = async (renewed: string): Promise<string> => {
    const { knex } = pods[1]!.database;
    const instance = randomUUID();
    await knex('instances').insert({
      instance,
      node: 'pod-c',
      machine: 'another',
      pid: 1,
      started: '1',
      seen_at: knex.raw(renewed),
    });
    await knex('transfers').insert({
      partner_id: 'ACME',
      direction: 'SEND',
      status: 'IN_PROGRESS',
      transfer_id: 9,
      listener: 'NODE1',
      node: 'pod-c',
      instance,
      session_id: 's',
      remote_address: '::1',
      context: randomUUID(),
    });
    return instance;
  };

  test('a process of another machine counts as gone when its lease is over', async () => {
    await elsewhere("now() - interval '1 hour'");
    await until(async () => (await pods[1]!.history('&restartable=true')).length === 1 || undefined);
    expect((await pods[1]!.history())[0]).toMatchObject({ status: 'FAILED', diagnostic: '2-223', restartable: true });
  });

  test('and while its lease runs it does not', async () => {
    await elsewhere("now() + interval '1 hour'");
    await pods[1]!.restartListening('NODE2');
    expect((await pods[1]!.history())[0]).toMatchObject({ status: 'IN_PROGRESS' });
  });

  test('a process of this machine that is gone is known at once', async () => {
    const instance = await elsewhere('now()');
    const { knex } = pods[1]!.database;
    const ours = knex('instances').where('node', 'pod-a').limit(1).select('machine');
    await knex('instances')
      .where({ instance })
      .update({ machine: ours as never, pid: 1, started: '0' });
    await pods[1]!.restartListening('NODE2');
    expect((await pods[1]!.history())[0]).toMatchObject({ status: 'FAILED', restartable: true });
  });
});

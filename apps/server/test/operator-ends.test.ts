/** What an operator ends: transfers, sessions, all sessions of a listener; on this pod and on another. */
import { afterEach, describe, expect, test } from '@jest/globals';
import { diagnosticOf, nameOf } from '@pesit-node/protocol/testing';
import { captureLog, emptyTables, withDatabase } from '@pesit-node/service/testing';

import { MIGRATIONS } from '../src/migrations/index.js';
import { TestNode, until, useNode } from './support/node.js';
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
  syn,
  WRITE,
} from './support/steps.js';
import type { Step } from './support/steps.js';

const WRITES = [create(), ORF, WRITE, DTF, syn(1)] as const;

withDatabase((harness) => {
  const peers: RawPeer[] = [];
  let other: TestNode | undefined;
  // Before the node stops: it would wait for them.
  afterEach(async () => {
    for (const peer of peers.splice(0)) peer.socket.destroy();
    await other?.stop();
    other = undefined;
    await emptyTables(node().database, 'pesit_common');
  });
  const node = useNode(harness, { progressMs: 20 });

  const partner = async (...steps: readonly Step[]): Promise<RawPeer> => {
    const peer = await RawPeer.open(node().port, CONNECT, ...steps);
    peers.push(peer);
    return peer;
  };
  /** Another pod of the same cluster, which has no session. */
  const otherPod = async (): Promise<TestNode> => {
    const own = await harness.another({ ...node().database, searchPath: [MIGRATIONS.schema] });
    other = new TestNode(own, node().data, captureLog(), {
      ...{ node: 'pod-b', answerMs: 0, settings: { 'listener.host': '127.0.0.2' } },
    });
    await other.start();
    return other;
  };
  /** The entry of that action: it is written behind the answer. */
  const audited = (action: string, objectType: string) =>
    until(async () => {
      const { content } = await node().call('get', `/api/v1/audit?action=${action}&objectType=${objectType}`);
      return (content as readonly Record<string, unknown>[])[0];
    });

  describe('cancel', () => {
    test.each([
      ['while data come', WRITES],
      ['before WRITE', WRITES.slice(0, 1)],
      ['after DTF.END', [...WRITES, DTF_END]],
    ] as const)('%s: CANCELLED for good, and nothing is delivered', async (_, steps) => {
      const peer = await partner(...steps);
      const [{ id } = { id: 0 }] = await node().history();
      const cancelled = node().call('post', `/api/v1/transfers/${id}/cancel`);
      const said = await peer.next();
      expect(diagnosticOf(said)).toBe('2-216');
      if (nameOf(said) === 'IDT') {
        // End code 12.
        expect(said?.includes(Buffer.from('13010c', 'hex'))).toBe(true);
        await peer.send(ACK_IDT);
        await peer.sendAll(CRF, DESELECT);
      } else {
        expect(nameOf(said)).toBe('ABORT');
      }
      // IN_PROGRESS where the machine is slow: the partner had not acknowledged it in time.
      expect(await cancelled).toMatchObject({ id });
      expect(await node().record(({ status }) => status === 'CANCELLED')).toMatchObject({
        ...{ diagnostic: '2-216', restartable: false, errorMessage: 'cancelled by operator' },
      });
      expect(await node().files('IN/in')).toEqual([]);
      expect(await audited('cancelled', 'transfer')).toMatchObject({ actor: 'operator', object: String(id) });
      await expect(node().call('post', `/api/v1/transfers/${id}/cancel`)).rejects.toThrow(/409.*is CANCELLED/);
    });

    test('a file whose end was acknowledged is not cancelled', async () => {
      await partner(...WRITES, ...endOf(1));
      const [{ id, status } = { id: 0, status: '' }] = await node().history();
      expect(status).toBe('COMPLETED');
      await expect(node().call('post', `/api/v1/transfers/${id}/cancel`)).rejects.toThrow(
        /409.*is COMPLETED: only one that runs can be cancelled/,
      );
      await expect(node().call('post', '/api/v1/transfers/4242/cancel')).rejects.toThrow(/404/);
    });

    test('the end of the file and the cancel come at once: one of the two, as record, file and partner agree', async () => {
      const outcomes = new Set<string>();
      for (let round = 0; round < 6; round++) {
        const peer = await partner(create({ transferId: 20 + round }), ORF, WRITE, DTF);
        const [{ id } = { id: 0 }] = await node().history();
        const [end] = endOf(1);
        await peer.send(end as Step);
        const cancelled = node()
          .call('post', `/api/v1/transfers/${id}/cancel`)
          .then(
            () => 'cancelled',
            (error: unknown) => (String(error).includes(' 409 ') ? 'too late' : String(error)),
          );
        // Sooner and later than the request, by turns of the event loop.
        for (let turn = 0; turn < round * 3; turn++) await new Promise(setImmediate);
        const answer = await peer.send(endOf(1)[1] as Step);
        if (nameOf(answer) === 'IDT') await peer.send(ACK_IDT);
        const outcome = await cancelled;
        outcomes.add(outcome);
        const { status } = await node().ended();
        expect([outcome, status]).toEqual(
          outcome === 'cancelled' ? ['cancelled', 'CANCELLED'] : ['too late', 'COMPLETED'],
        );
        const acknowledged = nameOf(answer) === 'ACK(TRANS.END)' && diagnosticOf(answer) === '0-000';
        expect(acknowledged).toBe(status === 'COMPLETED');
        peer.socket.destroy();
      }
      const completed = (await node().history()).filter(({ status }) => status === 'COMPLETED').length;
      expect((await node().received('IN')).length).toBe(completed);
    });

    test('on another pod', async () => {
      const peer = await partner(...WRITES);
      const pod = await otherPod();
      const [{ id } = { id: 0 }] = await node().history();
      const cancelled = pod.call('post', `/api/v1/transfers/${id}/cancel`);
      expect(nameOf(await peer.next())).toBe('IDT');
      await peer.send(ACK_IDT);
      await peer.sendAll(CRF, DESELECT);
      expect(await cancelled).toMatchObject({ id, node: 'node-a' });
      expect(await node().ended()).toMatchObject({ status: 'CANCELLED' });
    });
  });

  describe('sessions', () => {
    const SESSIONS = '/api/v1/servers/NODE1/sessions';
    const listed = async (from = node()) =>
      (await from.call('get', SESSIONS)) as unknown as {
        readonly sessions: readonly { readonly id: string; readonly state: string }[];
        readonly silentPods: readonly string[];
      };

    test('what each does, on all pods; one is ended from another pod, and its file can be restarted', async () => {
      expect(await listed()).toEqual({ sessions: [], silentPods: [] });
      const idle = await partner();
      const busy = await partner(...WRITES);
      const pod = await otherPod();
      const { sessions, silentPods } = await listed(pod);
      expect(silentPods).toEqual([]);
      const about = {
        partnerId: 'ACME',
        remoteAddress: '127.0.0.1',
        dialect: 'length-prefixed',
        tls: null,
        pod: 'node-a',
      };
      expect(sessions).toEqual([
        expect.objectContaining({ ...about, state: 'IDLE', transfer: null }),
        expect.objectContaining({
          ...{ ...about, state: 'TRANSFERRING' },
          transfer: {
            ...{ id: expect.any(Number), direction: 'RECEIVE', filename: expect.any(String) },
            ...{ bytesTransferred: DATA.length, syncPoint: 1 },
          },
        }),
      ]);
      const { id = '' } = sessions.find(({ state }) => state === 'TRANSFERRING') ?? {};
      await pod.text('delete', `${SESSIONS}/${id}`);
      const said = await busy.next();
      expect([nameOf(said), diagnosticOf(said)]).toEqual(['ABORT', '3-316']);
      expect(await node().ended()).toMatchObject({
        ...{ status: 'FAILED', diagnostic: '3-316', restartable: true },
        errorMessage: expect.stringContaining('the session was ended by operator'),
      });
      await until(async () => ((await listed()).sessions.length === 1 ? true : undefined));
      // The others are as they were.
      await idle.send(create({ transferId: 11 }));
      expect(await audited('ended', 'session')).toMatchObject({ actor: 'operator', object: id });
      await expect(node().text('delete', `${SESSIONS}/${id}`)).rejects.toThrow(/404/);
      await expect(node().text('delete', `${SESSIONS}/nobody`)).rejects.toThrow(/404/);
      await expect(node().call('get', '/api/v1/servers/NOBODY/sessions')).rejects.toThrow(/404/);
    });

    test('stop with force ends all at once', async () => {
      const peers = [await partner(), await partner(...WRITES)];
      const stopped = await node().call('post', '/api/v1/servers/NODE1/stop?force=true');
      for (const peer of peers) expect(nameOf(await peer.next())).toBe('ABORT');
      expect(stopped).toMatchObject({ wanted: false });
      await until(async () =>
        (await node().call('get', '/api/v1/servers/NODE1/status'))['status'] === 'STOPPED' ? true : undefined,
      );
      await node().call('post', '/api/v1/servers/NODE1/start');
    });
  });
});

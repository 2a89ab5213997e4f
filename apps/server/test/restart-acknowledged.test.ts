import { describe, expect, test } from '@jest/globals';
import { diagnosticOf, pointOf, summaryOf } from '@pesit-node/protocol/testing';
import { withDatabase } from '@pesit-node/service/testing';

import { refusedWith, until, useNode } from './support/node.js';
import { RawPeer } from './support/raw-peer.js';
import {
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
  transEnd,
  WRITE,
} from './support/steps.js';
import type { Step } from './support/steps.js';

const RESTART = create({ restarted: true });

withDatabase((harness) => {
  const node = useNode(harness, { restartWaitMs: 200 });

  const open = (...steps: readonly Step[]): Promise<RawPeer> => RawPeer.open(node().port, CONNECT, ...steps);

  /** From the first byte to the end, with success. */
  const writesAll = async (peer: RawPeer): Promise<void> => {
    expect(pointOf(await peer.sendAll(ORF, WRITE))).toBe(0);
    expect(diagnosticOf(await peer.sendAll(DTF, ...endOf(1)))).toBe('0-000');
    peer.socket.destroy();
  };

  describe('a partner that lost the last acknowledgement', () => {
    test('is sent to the last point; what it sends again is dropped and the end acknowledged', async () => {
      const first = await open(create(), ORF, WRITE, DTF, syn(1), DTF, DTF_END);
      await first.send(transEnd(2 * DATA.length, 2));
      first.socket.destroy();
      const before = await node().history();
      const peer = await open(RESTART, ORF);
      expect(pointOf(await peer.send(WRITE))).toBe(1);
      await peer.send(DTF);
      await peer.send(DTF_END);
      const end = await peer.send(transEnd(2 * DATA.length, 2));
      expect(summaryOf(end)).toBe('ACK(TRANS.END) 0-000');
      await peer.sendAll(CRF, DESELECT);
      peer.socket.destroy();
      expect(await node().history()).toEqual(before);
      expect((await node().received('IN')).map(String)).toEqual([DATA + DATA]);
      expect(await node().call('get', '/api/v1/config/partners/ACME')).toMatchObject({ transferCount: 1 });
    });

    test('without points the whole file is taken and dropped', async () => {
      const first = await open(create(), ORF, WRITE, DTF, DTF_END);
      await first.send(transEnd(DATA.length, 1));
      first.socket.destroy();
      await writesAll(await open(RESTART));
      expect(await node().history()).toHaveLength(1);
      expect(await node().received('IN')).toHaveLength(1);
    });

    test('and is interrupted while it sends it again: nothing changes', async () => {
      const first = await open(create(), ORF, WRITE, DTF, syn(1), DTF_END);
      await first.send(transEnd(DATA.length, 1));
      first.socket.destroy();
      const before = await node().history();
      const peer = await open(RESTART, ORF, WRITE);
      peer.socket.resetAndDestroy();
      await until(async () => {
        const { activeConnections } = await node().call('get', '/api/v1/servers/NODE1/status');
        return activeConnections === 0 || undefined;
      });
      expect(await node().history()).toEqual(before);
    });

    test('one that gives an old identity to another file is refused once, and taken then', async () => {
      const first = await open(create(), ORF, WRITE, DTF, DTF_END);
      await first.send(transEnd(DATA.length, 1));
      first.socket.destroy();
      const other = await open(RESTART, ORF, WRITE, DTF, DTF, DTF_END);
      expect(diagnosticOf(await other.send(transEnd(2 * DATA.length, 2)))).toBe('3-319');
      await other.sendAll(CRF, DESELECT, RESTART, ORF, WRITE, DTF, DTF, DTF_END);
      expect(diagnosticOf(await other.send(transEnd(2 * DATA.length, 2)))).toBe('0-000');
      other.socket.destroy();
      expect((await node().received('IN')).map(String).sort()).toEqual([DATA, DATA + DATA]);
    });

    test('another file of the same length is told by its hash', async () => {
      const session = await node().connect({ syncPoints: undefined });
      await node().send(session, 'IN', Buffer.from('one'), { transferId: 5 });
      const again = node().send(session, 'IN', Buffer.from('two'), { transferId: 5, restarted: true });
      await expect(again).rejects.toEqual(refusedWith('3-319'));
      await node().send(session, 'IN', Buffer.from('two'), { transferId: 5, restarted: true });
      expect((await node().received('IN')).map(String).sort()).toEqual(['one', 'two']);
    });

    test.each([
      ['label', { label: 'other' }],
      ['creation date', { creationDate: '261121120000' }],
    ])('another %s says that it is another file', async (_, what) => {
      const first = await open(create(), ORF, WRITE, DTF, DTF_END);
      await first.send(transEnd(DATA.length, 1));
      first.socket.destroy();
      const peer = await open(create({ restarted: true, ...what }), ORF, WRITE, DTF, DTF_END);
      expect(diagnosticOf(await peer.send(transEnd(DATA.length, 1)))).toBe('0-000');
      peer.socket.destroy();
      expect(await node().received('IN')).toHaveLength(2);
      expect(await node().history()).toHaveLength(2);
    });
  });
});

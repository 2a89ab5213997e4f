import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { afterEach, describe, expect, test } from '@jest/globals';
import { diagnosticOf, pointOf, summaryOf } from '@pesit-node/protocol/testing';
import { withDatabase } from '@pesit-node/service/testing';

import { watchFiles } from './support/faults.js';
import { bytes, refusedWith, useNode } from './support/node.js';
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
  transEnd,
  WRITE,
} from './support/steps.js';
import type { Step } from './support/steps.js';

withDatabase((harness) => {
  const node = useNode(harness);
  let undo: () => void = () => undefined;
  afterEach(() => {
    undo();
  });

  const open = (...steps: readonly Step[]): Promise<RawPeer> => RawPeer.open(node().port, CONNECT, ...steps);

  /** What was acknowledged is there: the partner goes on from point 1 and ends well. */
  const goesOn = async (): Promise<void> => {
    const peer = await open(create({ restarted: true }), ORF);
    expect(pointOf(await peer.send(WRITE))).toBe(1);
    await peer.sendAll(DTF, DTF_END);
    expect(diagnosticOf(await peer.send(transEnd(2 * DATA.length, 2)))).toBe('0-000');
    peer.socket.destroy();
    expect((await node().received('IN')).map(String)).toEqual([DATA + DATA]);
    expect(await node().history()).toContainEqual(expect.objectContaining({ status: 'COMPLETED', attempts: 2 }));
  };

  describe('a disk that is full', () => {
    test('interrupts the transfer with 2-219; it goes on when there is space', async () => {
      const files = watchFiles();
      undo = files.stop;
      const peer = await open(create(), ORF, WRITE, DTF, syn(1));
      files.isFull = true;
      await peer.send(DTF);
      const told = await peer.send(syn(2));
      expect(summaryOf(told)).toBe('IDT 2-219');
      await peer.send(ACK_IDT);
      await peer.sendAll(CRF, DESELECT);
      peer.socket.destroy();
      expect(await node().ended()).toMatchObject({
        status: 'FAILED',
        diagnostic: '2-219',
        restartable: true,
        syncPoint: 1,
        errorMessage: expect.stringMatching(/the disk is full; free space or enlarge the volume/),
      });
      undo();
      await goesOn();
    });
  });

  describe('maxBytesPerSecond', () => {
    const RATE = 262_144;
    /** Of which at most a tenth, and one read of 64 KB, passes at once. */
    const content = bytes(RATE);
    const slow = { maxBytesPerSecond: RATE };

    /** Milliseconds of a file in a session. */
    const timed = async (move: () => Promise<unknown>): Promise<number> => {
      const began = performance.now();
      await move();
      return performance.now() - began;
    };

    test.each([
      ['a partner', '/api/v1/config/partners/ACME'],
      ['a listener', '/api/v1/servers/NODE1'],
    ])('of %s slows its files from the next one on, in both directions, and says so', async (_, path) => {
      await writeFile(join(node().data, 'OUT/out/file'), content);
      const session = await node().connect();
      await node().send(session, 'IN', content);
      expect(await node().call('put', path, slow)).toMatchObject(slow);
      expect(await timed(() => node().send(session, 'IN', content))).toBeGreaterThan(400);
      expect(await timed(() => node().receive(session, 'OUT'))).toBeGreaterThan(400);
      expect(await node().received('IN')).toEqual([content, content]);
      const state = await node().call('get', path.endsWith('NODE1') ? `${path}/status` : path);
      expect(state).toMatchObject(slow);
    });

    test('lets no more pass between two acknowledgements than comes in ten seconds', async () => {
      await node().call('put', '/api/v1/servers/NODE1', { maxBytesPerSecond: 65_536, syncInterval: 256 });
      const asked = { syncPoints: { intervalKb: 512, window: 8 } };
      expect((await node().connect(asked)).terms).toMatchObject({ syncInterval: 256 * 1024, syncWindow: 2 });
      await node().call('put', '/api/v1/servers/NODE1', { maxBytesPerSecond: null });
      expect((await node().connect(asked)).terms).toMatchObject({ syncInterval: 256 * 1024, syncWindow: 4 });
    });
  });

  describe('a directory that vanishes', () => {
    const away = async (): Promise<void> => {
      await rename(join(node().data, 'IN'), join(node().data, 'AWAY'));
    };
    const back = async (): Promise<void> => {
      await rename(join(node().data, 'AWAY'), join(node().data, 'IN'));
    };

    test('refuses the end with 2-211, and each restart until it is back', async () => {
      const peer = await open(create(), ORF, WRITE, DTF, syn(1), DTF, DTF_END);
      await away();
      const end = await peer.send(transEnd(2 * DATA.length, 2));
      expect(summaryOf(end)).toBe('ACK(TRANS.END) 2-211');
      peer.socket.destroy();
      expect(await node().ended()).toMatchObject({ status: 'FAILED', diagnostic: '2-211', restartable: true });
      const again = node().send(await node().connect(), 'IN', bytes(10), { transferId: 9, restarted: true });
      await expect(again).rejects.toEqual(refusedWith('2-211'));
      expect(await node().history('&restartable=true')).toHaveLength(1);
      await back();
      await goesOn();
    });

    test('before WRITE refuses that, and nothing is lost', async () => {
      const peer = await open(create(), ORF, WRITE, DTF, syn(1));
      peer.socket.resetAndDestroy();
      await node().ended();
      const again = await open(create({ restarted: true }), ORF);
      await away();
      const answer = await again.send(WRITE);
      expect(summaryOf(answer)).toBe('ACK(WRITE) 2-211');
      again.socket.destroy();
      await back();
      expect(await node().record(({ status, attempts }) => status === 'FAILED' && attempts === 2)).toMatchObject({
        diagnostic: '2-211',
        restartable: true,
      });
      const peerAgain = await open(create({ restarted: true }), ORF);
      expect(pointOf(await peerAgain.send(WRITE))).toBe(1);
      peerAgain.socket.destroy();
    });
  });

  test('the name that is taken meanwhile refuses the end with 2-204; it is delivered when the name is free', async () => {
    await node().virtualFile('ONE', { receiveFilenamePattern: 'one' });
    const peer = await open(create({ fileName: 'ONE' }), ORF, WRITE, DTF, syn(1), DTF_END);
    await node().send(await node().connect(), 'ONE', Buffer.from('faster'));
    expect(diagnosticOf(await peer.send(transEnd(DATA.length, 1)))).toBe('2-204');
    peer.socket.destroy();
    expect(await node().history('&restartable=true')).toEqual([expect.objectContaining({ diagnostic: '2-204' })]);
    await rename(join(node().data, 'ONE/in/one'), join(node().data, 'ONE/in/first'));
    const again = await open(create({ fileName: 'ONE', restarted: true }), ORF);
    expect(pointOf(await again.send(WRITE))).toBe(1);
    expect(diagnosticOf(await again.sendAll(...endOf(1)))).toBe('0-000');
    again.socket.destroy();
    expect((await node().received('ONE')).map(String).sort()).toEqual([DATA, 'faster'].sort());
  });
});

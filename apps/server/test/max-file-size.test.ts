/** `maxFileSize` of a virtual file: what announces more is refused, what sends more is stopped and leaves nothing. */
import { describe, expect, test } from '@jest/globals';
import { diagnosticOf, nameOf, summaryOf, valueOf } from '@pesit-node/protocol/testing';
import { withDatabase } from '@pesit-node/service/testing';

import { until, useNode } from './support/node.js';
import { RawPeer } from './support/raw-peer.js';
import { ACK_IDT, CONNECT, create, CRF, DATA, DESELECT, DTF, endOf, ORF, syn, WRITE } from './support/steps.js';
import type { CreateOptions } from './support/steps.js';

withDatabase((harness) => {
  const node = useNode(harness);
  const SIZE = DATA.length;

  const limited = (maxFileSize: number | null, fields: object = {}): Promise<void> =>
    node().virtualFile('BIG', { receiveFilenamePattern: '${uuid}', maxFileSize, ...fields });
  const open = (options: CreateOptions = {}): Promise<RawPeer> =>
    RawPeer.open(node().port, CONNECT, create({ fileName: 'BIG', reservationKb: 0, ...options }));
  const answered = async (options: CreateOptions): Promise<string> => {
    const peer = await RawPeer.open(node().port, CONNECT);
    const answer = await peer.send(create({ fileName: 'BIG', ...options }));
    peer.socket.destroy();
    return summaryOf(answer);
  };
  /** PI 19 of an IDT. */
  const endCodeOf = (answer: Buffer | undefined): number | undefined => valueOf(answer!.subarray(6), 19)?.[0];

  describe('what is announced (PI 42)', () => {
    test('is refused with 2-206 when it is more, and says how much is taken', async () => {
      await limited(10_240);
      expect(await answered({ reservationKb: 12 })).toBe('ACK(CREATE) 2-206');
      expect(await node().ended()).toMatchObject({
        status: 'FAILED',
        errorMessage: expect.stringMatching(/announces 11264 bytes or more .*BIG takes 10240 \(maxFileSize\)/),
      });
      expect(await node().staged('BIG')).toEqual([]);
    });

    test('is rounded up to kilobytes by its sender: that is not more', async () => {
      await limited(10_241);
      expect(await answered({ reservationKb: 11 })).toBe('ACK(CREATE) 0-000');
    });

    test('is nothing without a limit', async () => {
      await limited(null);
      expect(await answered({ reservationKb: 1024 })).toBe('ACK(CREATE) 0-000');
    });
  });

  describe('what is sent', () => {
    test('may be as much as the limit', async () => {
      await limited(2 * SIZE);
      const peer = await open();
      await peer.sendAll(ORF, WRITE, DTF, DTF, ...endOf(2));
      peer.socket.destroy();
      expect(await node().ended()).toMatchObject({ status: 'COMPLETED', size: 2 * SIZE });
    });

    test('is stopped for good at the first byte more: IDT 2-224, end code 12, nothing stays, nothing to go on with', async () => {
      await limited(2 * SIZE);
      const peer = await open();
      await peer.sendAll(ORF, WRITE, DTF, DTF, syn(1), DTF);
      const told = await peer.send(syn(2));
      expect([nameOf(told), diagnosticOf(told), endCodeOf(told)]).toEqual(['IDT', '2-224', 12]);
      await peer.send(ACK_IDT);
      await peer.sendAll(CRF, DESELECT);
      expect(await node().ended()).toMatchObject({
        ...{ status: 'FAILED', diagnostic: '2-224', restartable: false },
        errorMessage: expect.stringMatching(/larger than the 50 bytes that the virtual file BIG takes \(maxFileSize\)/),
      });
      expect(await until(async () => ((await node().staged('BIG')).length === 0 ? [] : undefined))).toEqual([]);
      expect(await node().received('BIG')).toEqual([]);
      // The session goes on.
      expect(summaryOf(await peer.send(create({ transferId: 10 })))).toBe('ACK(CREATE) 0-000');
      peer.socket.destroy();
    });

    test('of a text counts as it lies on the disk: with its ends of lines', async () => {
      await limited(SIZE, { text: true });
      const peer = await open();
      await peer.sendAll(ORF, WRITE, DTF);
      const [, told] = [await peer.sendAll(...endOf(1).slice(0, 1)), await peer.next()];
      expect(summaryOf(told)).toBe('IDT 2-224');
      peer.socket.destroy();
    });

    test('on a restart counts with what was sent before', async () => {
      await limited(2 * SIZE);
      const peer = await open({ transferId: 9 });
      await peer.sendAll(ORF, WRITE, DTF, syn(1));
      peer.socket.resetAndDestroy();
      expect(await node().ended()).toMatchObject({ restartable: true });
      const again = await open({ transferId: 9, restarted: true });
      await again.sendAll(ORF, WRITE, DTF, syn(2), DTF);
      expect(diagnosticOf(await again.send(syn(3)))).toBe('2-224');
      again.socket.destroy();
    });
  });

  test('a new limit counts from the next file on, without a restart of the listener', async () => {
    await limited(null);
    await node().call('put', '/api/v1/config/files/BIG', { maxFileSize: 1024 });
    expect(await answered({ reservationKb: 3 })).toBe('ACK(CREATE) 2-206');
    await node().call('put', '/api/v1/config/files/BIG', { maxFileSize: null });
    expect(await answered({ reservationKb: 3 })).toBe('ACK(CREATE) 0-000');
  });
});

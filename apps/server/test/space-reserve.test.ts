/** `storage.reserve`: space that partners cannot fill. */
import { beforeEach, describe, expect, test } from '@jest/globals';
import { summaryOf } from '@pesit-node/protocol/testing';
import { withDatabase } from '@pesit-node/service/testing';

import { bytes, refusedWith, useNode } from './support/node.js';
import { RawPeer } from './support/raw-peer.js';
import { CONNECT, create } from './support/steps.js';

const MB = 1024 * 1024;
const RESERVE = 500 * MB;

withDatabase((harness) => {
  let free = 0;
  /** Called at each look at the volume of a receive directory. */
  let looked: () => void = () => undefined;
  const node = useNode(harness, {
    settings: { 'storage.reserve': RESERVE },
    freeSpace: () => {
      looked();
      return Promise.resolve(free);
    },
  });
  beforeEach(() => {
    free = 1000 * MB;
    looked = () => undefined;
  });

  const asked = async (reservationKb: number): Promise<string> => {
    const peer = await RawPeer.open(node().port, CONNECT);
    const answer = await peer.send(create({ reservationKb }));
    peer.socket.destroy();
    return summaryOf(answer);
  };

  describe('a CREATE', () => {
    test('is told to come again later (2-201) while no more than the reserve is free', async () => {
      free = RESERVE;
      expect(await asked(0)).toBe('ACK(CREATE) 2-201');
      expect(await node().ended()).toMatchObject({
        status: 'FAILED',
        errorMessage: expect.stringMatching(
          /^524288000 bytes are free on the volume of .*, and 524288000 must stay \(storage\.reserve\): free space/,
        ),
      });
      free = RESERVE + 1;
      expect(await asked(0)).toBe('ACK(CREATE) 0-000');
    });

    test('that announces more than is free beside the reserve is refused (2-206)', async () => {
      expect(await asked(501 * 1024)).toBe('ACK(CREATE) 2-206');
      expect(await asked(499 * 1024)).toBe('ACK(CREATE) 0-000');
    });
  });

  test('a file that runs is interrupted with 2-219 when the reserve is reached, and goes on when there is space', async () => {
    const content = bytes(20 * MB);
    const session = await node().connect({ syncPoints: { intervalKb: 256, window: 16 } });
    // The look at CREATE, and the first one at its data.
    let looks = 0;
    looked = () => {
      if (++looks === 2) free = RESERVE - 1;
    };
    const request = { transferId: 7, recordLength: 32_000 };
    await expect(node().send(session, 'IN', content, request)).rejects.toEqual(refusedWith('2-219'));
    const { syncPoint, errorMessage } = await node().ended();
    expect(errorMessage).toMatch(/must stay \(storage\.reserve\)/);
    expect(await node().ended()).toMatchObject({ status: 'FAILED', diagnostic: '2-219', restartable: true });
    expect(syncPoint).toBeGreaterThan(0);
    expect((await node().staged('IN')).length).toBeGreaterThan(0);
    free = 1000 * MB;
    const peer = await RawPeer.open(node().port, CONNECT);
    const answer = await peer.send(create({ transferId: 7, restarted: true, reservationKb: 0, recordLength: 32_000 }));
    expect(summaryOf(answer)).toBe('ACK(CREATE) 0-000');
    peer.socket.destroy();
  });

  test('health says so, readiness does not: what sends goes on', async () => {
    const health = async () =>
      ((await node().call('get', '/actuator/health')) as { components: Record<string, unknown> }).components['storage'];
    expect(await health()).toMatchObject({ status: 'UP', details: { free, reserve: RESERVE } });
    expect(await node().text('get', '/metrics')).toMatch(
      /^pesit_storage_free_bytes 1048576000\n(?:#.*\n)*pesit_storage_reserve_bytes 524288000$/m,
    );
    free = 1;
    await expect(node().text('get', '/actuator/health')).rejects.toThrow(/503 .*must stay \(storage\.reserve\)/);
    expect((await node().readiness()).code).toBe(200);
  });
});

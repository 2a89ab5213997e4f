/** PI 29 in what a partner says of a file that goes well: DTF.END, CRF and DESELECT may carry it (§4.4.8, §4.4.12, §4.4.21). */
import { describe, expect, test } from '@jest/globals';
import { fpdu, pi, summaryOf } from '@pesit-node/protocol/testing';
import { withDatabase } from '@pesit-node/service/testing';

import { until, useNode } from './support/node.js';
import { RawPeer } from './support/raw-peer.js';
import {
  CONNECT,
  create,
  CRF,
  DATA,
  DESELECT,
  DTF,
  DTF_END,
  ORF,
  RELEASE,
  step,
  transEnd,
  WRITE,
} from './support/steps.js';
import type { Step } from './support/steps.js';

withDatabase((harness) => {
  const node = useNode(harness);

  const WORDS = 'kept for seven years';

  /** The step with PI 2 = 0-000 and PI 29. */
  const speaking = (name: 'DTF.END' | 'CRF' | 'DESELECT', words: string | Buffer): Step =>
    step(
      name,
      (y) => fpdu(name, y, 0, pi(2, '000000'), pi(29, Buffer.from(words as string, 'latin1'))),
      name !== 'DTF.END',
    );

  const write = async (...instead: readonly Step[]): Promise<RawPeer> => {
    const end = [DTF_END, transEnd(DATA.length, 1), CRF, DESELECT];
    const steps = end.map((one) => instead.find(({ name }) => name === one.name) ?? one);
    const peer = await RawPeer.open(node().port, CONNECT, create(), ORF, WRITE, DTF, ...steps);
    return peer;
  };

  /** The newest record when the text is there. */
  const saidOf = (text: string) => node().record(({ diagnosticComplement }) => diagnosticComplement === text);

  describe('PI 29 beside a success is in the record', () => {
    test.each(['DTF.END', 'CRF', 'DESELECT'] as const)('of %s', async (name) => {
      const peer = await write(speaking(name, WORDS));
      expect(await saidOf(WORDS)).toMatchObject({ status: 'COMPLETED', diagnostic: '0-000', errorMessage: null });
      expect(node().log.entries()).toContainEqual(
        expect.objectContaining({ msg: 'partner sent a text with its answer (PI 29)', at: name, partnerSaid: WORDS }),
      );
      // The session goes on, and what was said of one file is not said of the next.
      const again = [create({ transferId: 10 }), ORF, WRITE, DTF, DTF_END, transEnd(DATA.length, 1), CRF, DESELECT];
      expect(summaryOf(await peer.sendAll(...again, RELEASE))).toBe('RELCONF');
      expect(await node().ended()).toMatchObject({ status: 'COMPLETED', diagnosticComplement: null });
    });
  });

  test('the last of them counts', async () => {
    await write(speaking('DTF.END', 'one'), speaking('CRF', 'two'), speaking('DESELECT', 'three'));
    expect(await saidOf('three')).toMatchObject({ status: 'COMPLETED' });
  });

  test('of 4,096 bytes the 254 of the specification are kept; what is no text is shown as base64', async () => {
    await write(speaking('CRF', Buffer.alloc(4096, 'x')));
    await saidOf('x'.repeat(254));
    await write(speaking('CRF', Buffer.from([0xff, 0])));
    await saidOf(`base64:${Buffer.from([0xff, 0]).toString('base64')}`);
  });

  test('none that is empty, and none without a file', async () => {
    const peer = await write(speaking('DTF.END', ''));
    expect(await node().ended()).toMatchObject({ diagnosticComplement: null });
    peer.socket.destroy();
  });

  test('it is there although the partner leaves at once', async () => {
    const peer = await write();
    const more = [create({ transferId: 10 }), ORF, WRITE, DTF, speaking('DTF.END', 'and gone')];
    await peer.sendAll(...more);
    peer.socket.destroy();
    await saidOf('and gone');
    await until(async () => (await node().ended()).status === 'FAILED' || undefined);
    expect(await node().ended()).toMatchObject({ status: 'FAILED', diagnosticComplement: 'and gone' });
  });
});

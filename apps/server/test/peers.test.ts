/** What products of the field do to a server, as far as it shows in records, files and the log; the wire is in packages/protocol. */
import { describe, expect, test } from '@jest/globals';
import { eachDatabase } from '@pesit-node/service/testing';

import { productOf } from '../src/partners/seen.js';
import { until, useNode } from './support/node.js';
import {
  codesOf,
  CONNECT,
  create,
  CRF,
  DATA,
  DESELECT,
  diagnosticOf,
  DTF,
  DTF_END,
  entity,
  fpdu,
  ORF,
  pi,
  RawPeer,
  RELEASE,
  transEnd,
  WRITE,
  WRITING,
} from './support/raw-peer.js';

type Step = Parameters<RawPeer['send']>[0];

eachDatabase((harness) => {
  const node = useNode(harness);

  const say = async (...steps: readonly Step[]): Promise<readonly (Buffer | undefined)[]> => {
    const peer = await RawPeer.open(node().port);
    const answers: (Buffer | undefined)[] = [];
    for (const step of steps) answers.push(await peer.send(step));
    peer.socket.destroy();
    return answers;
  };
  const connectWith = (more: Buffer): Step => ({
    ...CONNECT,
    bytes: (y) => {
      const plain = CONNECT.bytes(y);
      return fpdu([0x40, 0x20], [0, 1], Buffer.concat([plain.subarray(6), more]));
    },
  });

  describe('PeSIT Wizard', () => {
    test('single articles with ID.SRC = 1: a prefix may be its own or of Connect:Express, none is of the latter', () => {
      expect(productOf({ version: 2, singleArticle: 'prefixed' })).toBe('PeSIT Wizard or Connect:Express');
      expect(productOf({ version: 2, singleArticle: 'plain' })).toBe('Connect:Express');
      expect(productOf({ version: 2, singleArticle: 'unknown' })).toBeUndefined();
    });

    test('PI 13 begins at 1 again with each of its starts: a new file, never taken for the old one', async () => {
      await say(...WRITING);
      await say(...WRITING);
      const records = await node().history();
      expect(records.map(({ status, attempts }) => [status, attempts])).toEqual([
        ['COMPLETED', 1],
        ['COMPLETED', 1],
      ]);
      expect(await node().received('IN')).toHaveLength(2);
    });

    test('a message in PI 91 of CONNECT: the session is accepted, and the log has the text', async () => {
      const [answer] = await say(connectWith(pi(91, 'end of day\u001b[2J')));
      expect(codesOf(answer)).toBe('4021');
      const line = await until(() =>
        node()
          .log.entries()
          .find((entry) => String(entry['notice']).includes('end of day')),
      );
      expect(line).toMatchObject({
        msg: 'tolerated',
        notice: 'CONNECT: parameter 91 of 14 bytes ("end of day.[2J") is not part of this FPDU: skipped',
      });
    });

    test('articles in DTFs of 32,006 bytes after 4,096 was answered: taken', async () => {
      const article = Buffer.concat([Buffer.from([1, 0xfa]), Buffer.alloc(506, 'a')]);
      const dtf = (y: number): Buffer =>
        fpdu([0, 0], [y, 63], Buffer.concat(Array.from({ length: 63 }, () => article)));
      const large: Step = { name: 'DTF', bytes: dtf, answered: false };
      const answers = await say(CONNECT, create(), ORF, WRITE, large, DTF_END, transEnd(63 * 506, 63), CRF, DESELECT);
      expect(
        answers
          .filter((answer) => answer !== undefined)
          .map(diagnosticOf)
          .slice(1),
      ).toEqual(Array.from({ length: 6 }, () => '0-000'));
      expect(await node().ended()).toMatchObject({ status: 'COMPLETED', size: 63 * 506, articles: 63 });
    });

    test('the connection goes without RELEASE after a negative ACK: one record, and the place is free', async () => {
      await node().call('put', '/api/v1/config/partners/ACME', { maxConnections: 1 });
      const answers = await say(CONNECT, create({ fileName: 'NOTHERE' }));
      expect(diagnosticOf(answers[1])).toBe('2-226');
      expect(await node().history()).toMatchObject([{ status: 'FAILED', diagnostic: '2-226' }]);
      await until(async () => {
        const [answer] = await say(CONNECT);
        return codesOf(answer) === '4021' ? true : undefined;
      });
      expect(await node().history()).toHaveLength(1);
    });
  });

  test('Waarp, Transfer CFT: files one after the other on a connection, the first refused, the last released', async () => {
    const answers = await say(
      ...[CONNECT, create({ fileName: 'NOTHERE', transferId: 8 }), create(), ORF, WRITE, DTF, DTF_END],
      ...[transEnd(DATA.length, 1), CRF, DESELECT, create({ transferId: 10 }), ORF, WRITE, DTF, DTF_END],
      ...[transEnd(DATA.length, 1), CRF, DESELECT, RELEASE],
    );
    expect(codesOf(answers.at(-1))).toBe('4024');
    expect((await node().history()).map(({ status }) => status)).toEqual(['COMPLETED', 'COMPLETED', 'FAILED']);
  });

  test('Connect:Express: CONNECT and what follows it in pieces of one byte', async () => {
    const peer = await RawPeer.open(node().port);
    for (const byte of entity(CONNECT.bytes(0))) peer.write(Buffer.from([byte]));
    expect(codesOf(await peer.next())).toBe('4021');
    peer.socket.destroy();
  });
});

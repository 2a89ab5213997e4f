/**
 * What our server answers to what a partner asks wrongly or may not ask (pesit-e.md §9): one row a case, FPDUs by hand. Where
 * it stands afterwards, and what an operator reads of it. FPDUs that no partner should send at all are rows of
 * packages/protocol/test/bad-input.test.ts; attempts of one transfer that meet (2-207, 3-314) are in restart.test.ts.
 */
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { describe, expect, test } from '@jest/globals';
import { fpdu, pi, summaryOf } from '@pesit-node/protocol/testing';
import { withDatabase } from '@pesit-node/service/testing';

import { PASSWORD, until, useNode } from './support/node.js';
import type { TestNode } from './support/node.js';
import { RawPeer } from './support/raw-peer.js';
import {
  ACK_IDT,
  CONNECT,
  connectAs,
  create,
  CRF,
  DESELECT,
  DTF,
  DTF_END,
  endOf,
  message,
  ORF,
  read,
  RELEASE,
  segmentedMessage,
  select,
  step,
  transEnd,
  WRITE,
} from './support/steps.js';
import type { Step } from './support/steps.js';

const ACME = '/api/v1/config/partners/ACME';
const NODE1 = '/api/v1/servers/NODE1';
const put =
  (path: string, fields: object) =>
  (node: TestNode): Promise<unknown> =>
    node.call('put', path, { ...fields });
const virtualFile =
  (fields: object) =>
  (node: TestNode): Promise<unknown> =>
    node.virtualFile('OTHER', { ...fields });
const OTHER = (more: object = {}): Step => create({ fileName: 'OTHER', ...more });
const offering = async (node: TestNode): Promise<void> => {
  await writeFile(join(node.data, 'OUT/out/data.bin'), 'content');
};
const occupied =
  (path: string) =>
  async (node: TestNode): Promise<void> => {
    await node.call('put', path, { maxConnections: 1 });
    await node.connect();
  };

/** Data to which the server has something to say. */
const dtf = (article: Buffer): Step => step('DTF', (y) => fpdu('DTF', y, 0, article));
const FAILED_END = step('DTF.END', (y) => fpdu('DTF.END', y, 0, pi(2, '0200d5')), false);
const PIECE = Buffer.alloc(60_000, 'x');
/** A file that is complete here under PI 13 = 9. */
const delivered = async (node: TestNode): Promise<void> => {
  const peer = await RawPeer.open(node.port, CONNECT, create(), ORF, WRITE, DTF, ...endOf(1));
  peer.socket.destroy();
};

type Row = readonly [
  what: string,
  steps: readonly Step[],
  answer: string,
  prepare?: (node: TestNode) => Promise<unknown>,
];

const CONNECTIONS: readonly Row[] = [
  ['an unknown partner (PI 3)', [connectAs({ requester: 'NOBODY' })], 'RCONNECT 3-301'],
  ['a partner of blanks', [connectAs({ requester: ' ' })], 'RCONNECT 3-301'],
  ['a partner outside ASCII', [connectAs({ requester: 'ACM\xc9' })], 'RCONNECT 3-301'],
  [
    'another server (PI 4) on a strict listener',
    [connectAs({ server: 'NODE2' })],
    'RCONNECT 3-301',
    put(NODE1, { strictServerId: true }),
  ],
  ['a wrong password (PI 5)', [connectAs({ password: 'wrong' })], 'RCONNECT 3-304'],
  ['a password of blanks', [connectAs({ password: ' ' })], 'RCONNECT 3-304'],
  ['a new password behind the right one', [connectAs({ password: `${PASSWORD}NEWPASS1` })], 'RCONNECT 3-304'],
  ['a disabled partner', [CONNECT], 'RCONNECT 3-304', put(ACME, { enabled: false })],
  [
    'no pre-connection where one is asked for',
    [CONNECT],
    'RCONNECT 3-304',
    put(ACME, { preconnectId: 'ACME', preconnectPassword: 'pre-Pa55' }),
  ],
  ['a CONNECT without PI 22', [connectAs({ access: null })], 'ABORT 3-318'],
  ['version 3 (PI 6)', [connectAs({ version: 3 })], 'RCONNECT 3-308'],
  ['one connection too many of the partner', [CONNECT], 'RCONNECT 3-309', occupied(ACME)],
  ['one connection too many of the listener', [CONNECT], 'RCONNECT 3-309', occupied(NODE1)],
];

const WRITES: readonly Row[] = [
  ['an unknown virtual file (PI 12)', [create({ fileName: 'NOWHERE' })], 'ACK(CREATE) 2-226'],
  ['a virtual file of blanks', [create({ fileName: ' ' })], 'ACK(CREATE) 2-226'],
  ['a virtual file outside ASCII', [create({ fileName: 'F\xc9' })], 'ACK(CREATE) 2-226'],
  ['a disabled virtual file', [OTHER()], 'ACK(CREATE) 2-226', virtualFile({ enabled: false })],
  ['a virtual file to read', [create({ fileName: 'OUT' })], 'ACK(CREATE) 2-226'],
  ['a partner that may not write', [create()], 'ACK(CREATE) 2-226', put(ACME, { allowedOperations: ['READ'] })],
  ['a message as a file (PI 11 = FFFF)', [create({ fileType: 0xffff })], 'ACK(CREATE) 2-226'],
  [
    'a label (PI 37) against the pattern',
    [OTHER({ label: 'a.txt' })],
    'ACK(CREATE) 2-226',
    virtualFile({ filenamePattern: '*.csv' }),
  ],
  [
    'fixed records (PI 31) for a variable file',
    [OTHER({ recordFormat: 0 })],
    'ACK(CREATE) 2-226',
    virtualFile({ recordFormat: 128 }),
  ],
  [
    'longer records (PI 32) than the virtual file takes',
    [OTHER({ recordLength: 81 })],
    'ACK(CREATE) 2-220',
    virtualFile({ recordLength: 80 }),
  ],
  ['PI 32 = 0', [create({ recordLength: 0 })], 'ACK(CREATE) 2-200'],
  ['PI 13 = 0', [create({ transferId: 0 })], 'ACK(CREATE) 3-318'],
  ['CREATE in a connection to read (PI 22)', [create()], 'ACK(CREATE) 3-305'],
  [
    'a name that exists',
    [OTHER({ transferId: 10 })],
    'ACK(CREATE) 2-204',
    async (node) => {
      await node.virtualFile('OTHER', { receiveFilenamePattern: 'one' });
      await writeFile(join(node.data, 'OTHER/in/one'), '');
    },
  ],
  [
    'a directory that is missing',
    [create()],
    'ACK(CREATE) 2-211',
    (node) => rm(join(node.data, 'IN'), { recursive: true }),
  ],
  ['4 TB (PI 42) on a smaller disk', [create({ reservationKb: 0xffff_ffff })], 'ACK(CREATE) 2-206'],
  ['a second WRITE', [create(), ORF, WRITE, DTF, ...endOf(1), WRITE], 'ACK(WRITE) 2-226'],
  ['an article longer than PI 32', [create(), ORF, WRITE, dtf(Buffer.alloc(1025))], 'IDT 2-220'],
  [
    'a fixed record that is not filled',
    [create({ recordFormat: 0, recordLength: 80 }), ORF, WRITE, dtf(Buffer.alloc(79))],
    'IDT 2-220',
  ],
  ['DTF.END with an error', [create(), ORF, WRITE, DTF, FAILED_END, transEnd(25, 1)], 'ACK(TRANS.END) 2-213'],
  ['wrong counts', [create(), ORF, WRITE, DTF, DTF_END, transEnd(24, 1)], 'ABORT 3-319'],
  [
    'another file as the restart of one that is complete',
    [create({ restarted: true }), ORF, WRITE, DTF, DTF, ...endOf(2)],
    'ACK(TRANS.END) 3-319',
    delivered,
  ],
];

const READS: readonly Row[] = [
  ['an unknown virtual file (PI 12)', [select('NOWHERE')], 'ACK(SELECT) 2-205'],
  ['a virtual file of blanks', [select(' ')], 'ACK(SELECT) 2-205'],
  ['a disabled virtual file', [select('OTHER')], 'ACK(SELECT) 2-205', virtualFile({ enabled: false })],
  ['a virtual file to write', [select('IN')], 'ACK(SELECT) 2-226'],
  ['a partner that may not read', [select('OUT')], 'ACK(SELECT) 2-226', put(ACME, { allowedOperations: ['WRITE'] })],
  ['a message as a file (PI 11 = FFFF)', [select('OUT', { fileType: 0xffff })], 'ACK(SELECT) 2-226'],
  ['no file there', [select('OUT')], 'ACK(SELECT) 2-205'],
  ['a direction to change (PI 14 = FF)', [select('TURN', { attributes: 0xff })], 'ACK(SELECT) 2-205'],
  ['SELECT in a connection to write (PI 22)', [select('OUT')], 'ACK(SELECT) 3-305', offering],
  ['READ from a point that nobody knows', [select('OUT'), ORF, read(7)], 'ACK(READ) 2-214', offering],
];

const MESSAGES: readonly Row[] = [
  [
    'of a partner that may not write',
    [message(Buffer.from('x'))],
    'ACK(MSG) 2-226',
    put(ACME, { allowedOperations: ['READ'] }),
  ],
  ['of more than 64 KB', segmentedMessage(PIECE, PIECE), 'ACK(MSG) 2-209'],
];

withDatabase((harness) => {
  const node = useNode(harness);

  /** What the session has to do before the next file, and that it can. */
  const goesOn = async (peer: RawPeer, answer: string): Promise<void> => {
    const steps = /CREATE|SELECT|MSG/.test(answer) ? [] : [CRF, DESELECT];
    await peer.sendAll(...(answer.startsWith('IDT') ? [ACK_IDT] : []), ...steps);
    expect(summaryOf(await peer.send(RELEASE))).toBe('RELCONF');
  };
  const logged = (what: string) =>
    node()
      .log.entries()
      .findLast(({ msg }) => msg === what);
  const diagnosticIn = (answer: string): string => answer.slice(-5);
  /** For jest: as many values in each row. */
  const all = (rows: readonly Row[]) =>
    rows.map(([what, steps, answer, prepare]) => [what, answer, steps, prepare] as const);

  describe('connections', () => {
    test.each(all(CONNECTIONS))('%s: %s', async (_, answer, steps, prepare) => {
      await prepare?.(node());
      const peer = await RawPeer.open(node().port);
      expect(summaryOf(await peer.sendAll(...steps))).toBe(answer);
      peer.socket.end();
      await peer.closed();
      expect(await node().history()).toEqual([]);
      expect(await node().call('get', `${NODE1}/status`)).toMatchObject({ refusedConnections: 1 });
      expect(logged('connection refused')).toMatchObject({ diagnostic: expect.stringContaining(diagnosticIn(answer)) });
    });
  });

  describe.each([
    ['files to write', WRITES],
    ['files to read', READS],
  ])('%s', (_, rows) => {
    test.each(all(rows))('%s: %s', async (what, answer, steps, prepare) => {
      await prepare?.(node());
      const access = what.includes('PI 22') ? (answer.includes('CREATE') ? 1 : 0) : 2;
      const peer = await RawPeer.open(node().port, connectAs({ access }));
      expect(summaryOf(await peer.sendAll(...steps))).toBe(answer);
      if (!answer.startsWith('ABORT')) await goesOn(peer, answer);
      peer.socket.end();
      await peer.closed();
      if (what === 'a second WRITE' || what.startsWith('another file as the restart')) return;
      const diagnostic = diagnosticIn(answer);
      const record = await until(async () => (await node().history()).find((one) => one.status === 'FAILED'));
      expect(record).toMatchObject({ diagnostic, errorMessage: expect.stringMatching(/./) });
      expect(
        logged(
          answer.startsWith('ACK(CREATE)') || answer.startsWith('ACK(SELECT)') ? 'transfer refused' : 'transfer failed',
        ),
      ).toMatchObject({
        diagnostic: expect.stringContaining(diagnostic),
      });
    });
  });

  describe('messages', () => {
    test.each(all(MESSAGES))('%s: %s', async (_, answer, steps, prepare) => {
      await prepare?.(node());
      const peer = await RawPeer.open(node().port, CONNECT);
      expect(summaryOf(await peer.sendAll(...steps))).toBe(answer);
      await goesOn(peer, answer);
      peer.socket.end();
      await peer.closed();
      expect(logged('message refused')).toMatchObject({ diagnostic: expect.stringContaining(diagnosticIn(answer)) });
    });
  });
});

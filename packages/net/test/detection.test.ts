import { describe, expect, test } from '@jest/globals';
import { decodePreconnectionAnswer, detect, encodePreconnection } from '../src/index.js';
import type { Detection } from '../src/index.js';

const hex = (digits: string): Buffer => Buffer.from(digits.replaceAll(' ', ''), 'hex');

/** `PARTNER ` and `SECRET  ` in CP037. */
const IDENTIFIER = 'd7c1d9e3d5c5d940';
const PASSWORD = 'e2c5c3d9c5e34040';
const PESIT = `d7c5e2c9e3404040 ${IDENTIFIER} ${PASSWORD}`;
const CFTPSITX = `c3c6e3d7e2c9e3e7 ${IDENTIFIER} ${PASSWORD} 0d25`;

const preconnection = (marker: 'PESIT' | 'CFTPSITX', length: number, ack: string, nak: string): Detection => ({
  kind: 'preconnection',
  length,
  preconnection: { marker, identifier: 'PARTNER', password: 'SECRET' },
  ack: hex(ack),
  nak: hex(nak),
});

/** Every row of the table in pesit-e.md §1: first bytes, verdict, and how many bytes it takes. */
const ROWS: readonly (readonly [string, string, Detection, number])[] = [
  ['bare pre-connection', PESIT, preconnection('PESIT', 24, 'c1c3d2f0', 'd5c1d2f0'), 24],
  ['length-prefixed pre-connection', `0018 ${PESIT}`, preconnection('PESIT', 26, '0004 c1c3d2f0', '0004 d5c1d2f0'), 26],
  ['bare CFTPSITX', CFTPSITX, preconnection('CFTPSITX', 26, 'c1c3d2f0 0d25', 'd5c1d2f0 0d25'), 26],
  [
    'length-prefixed CFTPSITX',
    `001c ${CFTPSITX} 0000`,
    preconnection('CFTPSITX', 30, '0008 c1c3d2f0 0d25 0000', '0008 d5c1d2f0 0d25 0000'),
    30,
  ],
  [
    'length-prefixed CFTPSITX without a trailer',
    `001a ${CFTPSITX}`,
    preconnection('CFTPSITX', 28, '0006 c1c3d2f0 0d25', '0006 d5c1d2f0 0d25'),
    28,
  ],
  ['raw CONNECT', '002c 4020 0007 0301', { kind: 'connect', dialect: 'raw' }, 4],
  ['length-prefixed CONNECT', '002c 002c 4020 0007', { kind: 'connect', dialect: 'length-prefixed' }, 6],
  ['length-prefixed CONNECT with CRC', '002e 002c 4020 0007', { kind: 'connect', dialect: 'length-prefixed' }, 6],
  ['TLS ClientHello', '1603 0100 c801 0000', { kind: 'tls' }, 2],
  ['TLS 1.0 record of 3.3', '1603 0302 0001', { kind: 'tls' }, 2],
  ['HTTP', Buffer.from('GET / HTTP/1.1\r\n').toString('hex'), { kind: 'unknown' }, 6],
  ['SSH', Buffer.from('SSH-2.0-OpenSSH').toString('hex'), { kind: 'unknown' }, 6],
  ['zeros', '0000 0000 0000', { kind: 'unknown' }, 6],
  ['another FPDU first, prefixed', '0006 0006 4023 0007', { kind: 'unknown' }, 6],
  ['another FPDU first, raw', '0006 4023 0007', { kind: 'unknown' }, 6],
  ['the marker with a wrong length before it', `0019 ${PESIT}`, { kind: 'unknown' }, 6],
  ['a marker with one byte wrong', 'd7c5e2c9e4404040', { kind: 'unknown' }, 6],
  ['the ASCII marker', Buffer.from('PESIT   PARTNER SECRET  ').toString('hex'), { kind: 'unknown' }, 6],
];

describe.each(ROWS)('%s', (_, digits, verdict, needed) => {
  const bytes = hex(digits);

  test('whole, and with more behind it', () => {
    expect(detect(bytes)).toEqual(verdict);
    expect(detect(Buffer.concat([bytes, hex('00ff 4020')]))).toEqual(verdict);
  });

  test('byte by byte: no verdict before it can be known, then always the same', () => {
    for (let length = 0; length <= bytes.length; length++) {
      expect([length, detect(bytes.subarray(0, length))]).toEqual([
        length,
        length < needed ? { kind: 'more' } : verdict,
      ]);
    }
  });
});

test('the answers are views of nothing that the partner sent', () => {
  const bytes = hex(CFTPSITX);
  const detection = detect(bytes);
  bytes.fill(0);
  expect(detection.kind === 'preconnection' && detection.ack.toString('hex')).toBe('c1c3d2f00d25');
});

test('any two bytes that are no marker wait for more, and any six give a verdict', () => {
  const verdicts: number[] = [];
  for (let pair = 0; pair < 65_536; pair++) {
    if (detect(Buffer.from([pair >> 8, pair & 0xff])).kind !== 'more') verdicts.push(pair);
  }
  expect(verdicts).toEqual([0x1603]);
  for (let byte = 0; byte < 256; byte++) expect(detect(Buffer.alloc(6, byte)).kind).toBe('unknown');
});

test('what a requester sends is 24 bytes of CP037, cut and padded to the fields', () => {
  expect(encodePreconnection('PARTNER', 'SECRET').toString('hex')).toBe(PESIT.replaceAll(' ', ''));
  expect(encodePreconnection('', '').toString('hex')).toBe('d7c5e2c9e3404040' + '40'.repeat(16));
  expect(encodePreconnection('PARTNER TOO LONG', 'SECRET TOO LONG').toString('hex')).toBe(
    'd7c5e2c9e3404040 d7c1d9e3d5c5d940 e2c5c3d9c5e340e3'.replaceAll(' ', ''),
  );
});

test.each([
  ['c1c3d2f0', true],
  ['d5c1d2f0', false],
  ['c1c3d2f0 0d25', true],
  ['c1c3d2f1', undefined],
  ['41434b30', undefined],
  ['c1c3d2', undefined],
  ['', undefined],
])('the answer %s means %s', (digits, meaning) => {
  expect(decodePreconnectionAnswer(hex(digits))).toBe(meaning);
});

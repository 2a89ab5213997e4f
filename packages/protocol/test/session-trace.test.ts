/** A session as text while it runs: whatever the pieces, the same lines; the bytes given are free again. */
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { SessionTrace } from '../src/index.js';
import type { Dialect, TraceLine } from '../src/index.js';
import { entity, fpdu, hex, pi, text, withCrc } from '../src/testing/index.js';

const connect = (crc: boolean): Buffer =>
  fpdu('CONNECT', 0, 1, crc ? '010101' : '', pi(3, text('A')), pi(4, text('B')), pi(5, text('Zq7w')), '060102 160100');
const dtf = (length: number): Buffer => fpdu('DTF', 9, 0, Buffer.alloc(length, 'x'));
const SYN = fpdu('SYN', 9, 0, '140101');

const onTheWire = (dialect: Dialect, crc: boolean, fpdus: readonly Buffer[]): Buffer =>
  Buffer.concat(
    fpdus.map((bytes) => (crc ? withCrc(bytes) : bytes)).map((bytes) => (dialect === 'raw' ? bytes : entity(bytes))),
  );
const said = (lines: readonly TraceLine[]): string[] => lines.map(({ text: line }) => line.replace(/:? PI .*/, ''));

/** Gives the bytes in pieces of a buffer that is used again. */
const inPieces = (trace: SessionTrace, bytes: Buffer, sizes: readonly number[]): TraceLine[] => {
  const lines: TraceLine[] = [];
  const piece = Buffer.alloc(bytes.length);
  for (let at = 0, turn = 0; at < bytes.length; turn++) {
    const length = Math.min(sizes[turn % sizes.length]!, bytes.length - at);
    bytes.copy(piece, 0, at, at + length);
    lines.push(...trace.take('received', piece.subarray(0, length), turn));
    piece.fill(0xee);
    at += length;
  }
  return [...lines, ...trace.end()];
};

describe.each<[Dialect, boolean]>([
  ['length-prefixed', false],
  ['length-prefixed', true],
  ['raw', false],
  ['raw', true],
])('%s, CRC %s', (dialect, crc) => {
  const bytes = onTheWire(dialect, crc, [connect(crc), dtf(3000), dtf(700), SYN, dtf(1), dtf(2), dtf(900)]);
  const story = ['CONNECT to 0 from 1', 'data: 2 FPDUs, 3700 bytes', 'SYN to 9', 'data: 3 FPDUs, 903 bytes'];

  test.each([1, 2, 7, 511, 512, 513, 2000, 100_000])('in pieces of %i bytes', (size) => {
    expect(said(inPieces(new SessionTrace(dialect), bytes, [size]))).toEqual(story);
  });

  test('in pieces of any size', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 3000 }), { minLength: 1, maxLength: 8 }), (sizes) => {
        expect(said(inPieces(new SessionTrace(dialect), bytes, sizes))).toEqual(story);
      }),
      { numRuns: 60 },
    );
  });

  test('time and direction are those of the first FPDU of a run', () => {
    const trace = new SessionTrace(dialect);
    const wire = (...fpdus: Buffer[]): Buffer => onTheWire(dialect, crc, fpdus);
    expect(trace.take('received', wire(connect(crc)), 1)).toMatchObject([{ time: 1, direction: 'received' }]);
    expect(trace.take('sent', wire(dtf(5)), 2)).toEqual([]);
    expect(trace.take('sent', wire(dtf(5)), 3)).toEqual([]);
    expect(trace.take('sent', wire(SYN), 4)).toMatchObject([
      { time: 2, direction: 'sent', text: 'data: 2 FPDUs, 10 bytes' },
      { time: 4, direction: 'sent' },
    ]);
  });
});

test('an FPDU with a wrong CRC is named, and what follows it is read', () => {
  const trace = new SessionTrace('length-prefixed');
  const damaged = withCrc(dtf(20));
  damaged[10]! ^= 1;
  const lines = [
    ...trace.take('received', onTheWire('length-prefixed', true, [connect(true), dtf(20)]), 1),
    ...trace.take('received', entity(damaged), 2),
    ...trace.take('received', onTheWire('length-prefixed', true, [SYN]), 3),
  ];
  expect(said(lines)).toEqual([
    'CONNECT to 0 from 1',
    'data: 1 FPDU, 20 bytes',
    expect.stringMatching(/^damaged: DTF: expected CRC 0x[0-9a-f]{4}, got 0x[0-9a-f]{4}$/),
    'SYN to 9',
  ]);
});

test('what is no PeSIT ends the trace of that direction alone', () => {
  const trace = new SessionTrace('raw');
  trace.take('received', connect(false), 1);
  expect(said(trace.take('received', hex('0006ffff0000 0006ffff0000'), 2))).toEqual([
    'unreadable from here on: an FPDU: expected a phase and type of PeSIT E, got phase 0xff type 0xff',
  ]);
  expect(trace.take('received', SYN, 3)).toEqual([]);
  expect(said(trace.take('sent', SYN, 4))).toEqual(['SYN to 9']);
});

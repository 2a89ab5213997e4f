/** The literal vectors of `vectors/codec.json`: CRC, CP037, pre-connection, FPDUs of the field. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from '@jest/globals';
import {
  PARAMETERS,
  checksum,
  decodeBody,
  encodeFpdu,
  fpduByCodes,
  fromEbcdic,
  parameterByCode,
  toEbcdic,
} from '../src/index.js';
import type { ParameterKey, Parameters } from '../src/index.js';
import { hex, withCrc } from '../src/testing/index.js';

interface Vectors {
  readonly crc: readonly { data: string; crc: string }[];
  readonly cp037_to_latin1: string;
  readonly preconnection: {
    readonly request: { identifier: string; password: string; entity: string };
    readonly ack: string;
    readonly nak: string;
  };
  readonly fpdu: readonly { name: string; hex: string; ids: [number, number]; parameters: Record<string, unknown> }[];
}

const VECTORS = JSON.parse(readFileSync(path.join(import.meta.dirname, 'vectors', 'codec.json'), 'utf8')) as Vectors;

describe('CRC (PI 1)', () => {
  test.each(VECTORS.crc)('of $data is $crc', ({ data, crc }) => {
    expect(
      checksum([hex(data)])
        .toString(16)
        .padStart(4, '0'),
    ).toBe(crc);
    expect(withCrc(hex(data)).toString('hex')).toBe(data + crc);
  });

  test('is the same however the FPDU is cut, and as long as an FPDU may be', () => {
    const bytes = Buffer.from(Array.from({ length: 65_535 }, (_, i) => (i * 31 + (i >> 8)) & 0xff));
    const expected = withCrc(bytes).readUInt16BE(65_535);
    expect(checksum([bytes])).toBe(expected);
    expect(checksum([bytes.subarray(0, 1), bytes.subarray(1, 4001), Buffer.alloc(0), bytes.subarray(4001)])).toBe(
      expected,
    );
    for (let length = 0; length < 20; length++) {
      const short = bytes.subarray(1000, 1000 + length);
      expect([length, checksum([short])]).toEqual([length, withCrc(short).readUInt16BE(length)]);
    }
    expect(checksum([Buffer.alloc(65_535, 0xff)])).toBe(withCrc(Buffer.alloc(65_535, 0xff)).readUInt16BE(65_535));
  });

  test('makes both sums over FPDU and CRC zero', () => {
    const sealed = withCrc(hex('0009c003e200140101'));
    let [c0, c1] = [0, 0];
    for (const byte of sealed) {
      c0 = (c0 + byte) % 255;
      c1 = (c1 + c0) % 255;
    }
    expect([c0, c1]).toEqual([0, 0]);
    expect(checksum([hex('0009c003e200140101')])).toBe(sealed.readUInt16BE(9));
  });
});

describe('EBCDIC CP037', () => {
  test('every byte both ways', () => {
    const all = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
    expect(Buffer.from(fromEbcdic(all), 'latin1').toString('hex')).toBe(VECTORS.cp037_to_latin1);
    expect(toEbcdic(Buffer.from(VECTORS.cp037_to_latin1, 'hex').toString('latin1'))).toEqual(all);
  });

  test('a character outside ISO 8859-1 becomes SUB', () => {
    expect(toEbcdic('A€B').toString('hex')).toBe('c13fc2');
  });

  test('pre-connection bytes', () => {
    const { request, ack, nak } = VECTORS.preconnection;
    const plain = `PESIT   ${request.identifier.padEnd(8)}${request.password.padEnd(8)}`;
    expect(toEbcdic(plain).toString('hex')).toBe(request.entity);
    expect(fromEbcdic(hex(request.entity))).toBe(plain);
    expect([toEbcdic('ACK0').toString('hex'), toEbcdic('NAK0').toString('hex')]).toEqual([ack, nak]);
  });
});

describe('FPDUs of the field', () => {
  test.each(VECTORS.fpdu)('$name', ({ hex: digits, ids: [destination, source], parameters }) => {
    const bytes = hex(digits);
    const name = fpduByCodes(bytes[2]!, bytes[3]!)!;
    const named = Object.fromEntries(
      Object.entries(parameters).map(([code, value]) => [parameterByCode(Number(code)), value]),
    ) as Parameters;
    expect(encodeFpdu(name, destination, source, named).toString('hex')).toBe(digits);
    // Trailing blanks of C values are not significant (§4.7.2.1): "test123 " reads as "test123".
    const trimmed = Object.fromEntries(
      Object.entries(named).map(([key, value]) => [
        key,
        PARAMETERS[key as ParameterKey].type === 'C' ? (value as string).trimEnd() : value,
      ]),
    );
    expect(decodeBody(name, destination, source, bytes.subarray(6))).toEqual({
      name,
      destination,
      source,
      parameters: trimmed,
      notices: [],
    });
  });
});

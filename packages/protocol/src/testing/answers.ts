/** FPDUs read by hand, as `fpdus.ts` writes them: nothing of the decoder under test. */
import { CODES, NAMES, withCrc } from './fpdus.js';
import type { Name } from './fpdus.js';

/** One FPDU read by hand. */
export interface Dissected {
  readonly name: Name;
  readonly destination: number;
  readonly source: number;
  readonly body: Buffer;
}

/** The FPDUs of `bytes`, with the length of each entity checked; the opposite of `entity` and `fpdu`. */
export function dissect(bytes: Buffer, dialect: 'length-prefixed' | 'raw', crc = false): Dissected[] {
  const trailer = crc ? 2 : 0;
  const found: Dissected[] = [];
  for (let offset = 0; offset < bytes.length;) {
    let end: number;
    if (dialect === 'length-prefixed') {
      end = offset + 2 + bytes.readUInt16BE(offset);
      offset += 2;
    } else {
      end = offset + bytes.readUInt16BE(offset) + trailer;
    }
    while (offset < end) {
      const length = bytes.readUInt16BE(offset);
      const one = bytes.subarray(offset, offset + length);
      if (one.length < length) throw new Error(`FPDU of ${length} bytes cut at ${one.length}`);
      const codes = one.toString('hex', 2, 4);
      const name = NAMES.find((candidate) => CODES[candidate] === codes);
      if (name === undefined) throw new Error(`no FPDU has the codes ${codes}`);
      if (crc && !withCrc(one).equals(bytes.subarray(offset, offset + length + 2))) throw new Error(`CRC of ${name}`);
      found.push({ name, destination: one[4] as number, source: one[5] as number, body: one.subarray(6) });
      offset += length + trailer;
    }
    if (offset !== end) throw new Error(`entity ends at ${end}, its last FPDU at ${offset}`);
  }
  return found;
}

/** The value of parameter `code` in a body, `undefined` when it is absent. */
export function valueOf(body: Buffer, code: number): Buffer | undefined {
  for (let offset = 0; offset < body.length;) {
    const long = body[offset + 1] === 0xff;
    const length = long ? body.readUInt16BE(offset + 2) : (body[offset + 1] as number);
    const start = offset + (long ? 4 : 2);
    if (body[offset] === code) return body.subarray(start, start + length);
    offset = start + length;
  }
  return undefined;
}

/** PI 2 of an FPDU, as `3-309`; `none` when it has none. */
export function diagnosticOf({ body }: Pick<Dissected, 'body'>): string {
  const value = valueOf(body, 2);
  return value === undefined ? 'none' : `${value[0]}-${String(value.readUInt16BE(1)).padStart(3, '0')}`;
}

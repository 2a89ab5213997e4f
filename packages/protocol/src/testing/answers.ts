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
export const dissect = (bytes: Buffer, dialect: 'length-prefixed' | 'raw', crc = false): Dissected[] => {
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
      const name = nameByCodes(one.toString('hex', 2, 4));
      if (crc && !withCrc(one).equals(bytes.subarray(offset, offset + length + 2))) throw new Error(`CRC of ${name}`);
      found.push({ name, destination: one[4] as number, source: one[5] as number, body: one.subarray(6) });
      offset += length + trailer;
    }
    if (offset !== end) throw new Error(`entity ends at ${end}, its last FPDU at ${offset}`);
  }
  return found;
};

/** The value of parameter `code` in a body, `undefined` when it is absent. */
export const valueOf = (body: Buffer, code: number): Buffer | undefined => {
  for (let offset = 0; offset < body.length;) {
    const long = body[offset + 1] === 0xff;
    const length = long ? body.readUInt16BE(offset + 2) : (body[offset + 1] as number);
    const start = offset + (long ? 4 : 2);
    if (body[offset] === code) return body.subarray(start, start + length);
    offset = start + length;
  }
  return undefined;
};

/** Names by phase and type. */
const BY_CODES = new Map(NAMES.map((name) => [CODES[name] as string, name]));

/** @throws Error for codes that no FPDU has */
export const nameByCodes = (codes: string): Name => {
  const name = BY_CODES.get(codes);
  if (name === undefined) throw new Error(`no FPDU has the codes ${codes}`);
  return name;
};

/** Input of a reader of answers: a whole FPDU (the first of an entity with several), or one read by hand. */
type Answer = Buffer | Pick<Dissected, 'body'>;

const bodyOf = (answer: Answer): Buffer =>
  Buffer.isBuffer(answer) ? answer.subarray(6, answer.readUInt16BE(0)) : answer.body;

/** The name of a whole FPDU, of an entity with several that of the first; undefined when there is none. */
export function nameOf(fpdu: Buffer): Name;
export function nameOf(fpdu: Buffer | undefined): Name | undefined;
// eslint-disable-next-line no-restricted-syntax -- overloads
export function nameOf(fpdu: Buffer | undefined): Name | undefined {
  return fpdu === undefined ? undefined : nameByCodes(fpdu.toString('hex', 2, 4));
}

/** PI 2 of an FPDU, as `3-309`; `none` when it has none. */
export const diagnosticOf = (answer: Answer | undefined): string => {
  const value = answer === undefined ? undefined : valueOf(bodyOf(answer), 2);
  return value === undefined ? 'none' : `${value[0]}-${String(value.readUInt16BE(1)).padStart(3, '0')}`;
};

/** PI 18 of an ACK(WRITE), or PI 20 of an ACK(SYN); undefined when it has neither. */
export const pointOf = (answer: Answer | undefined): number | undefined => {
  if (answer === undefined) return undefined;
  const body = bodyOf(answer);
  const value = valueOf(body, 18) ?? valueOf(body, 20);
  return value?.readUIntBE(0, value.length);
};

/** An answer by its name and its diagnostic, `ACK(CREATE) 2-226`; `nothing` when the connection is over. */
export const summaryOf = (answer: Buffer | undefined): string => {
  const name = nameOf(answer);
  if (name === undefined) return 'nothing';
  const diagnostic = diagnosticOf(answer);
  return diagnostic === 'none' ? name : `${name} ${diagnostic}`;
};

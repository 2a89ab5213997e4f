/** Encodes what this node sends: control FPDUs by the two tables (§4.7), strictly canonical. `decoding.ts` is the way back. */
import type { PeerDiagnostic } from './diagnostics.js';
import { PesitError } from './errors.js';
import { CONTENTS, FPDU_HEADER_LENGTH, FPDUS, MAX_FPDU_LENGTH } from './fpdus.js';
import type { ContentItem, FpduName } from './fpdus.js';
import { writeHeader } from './headers.js';
import { encodeLoneSyncPoint } from './lone-sync-points.js';
import { PARAMETERS, describeParameter } from './parameters.js';
import type { CompressionOptions, ParameterKey, Parameters, SyncPointOptions } from './parameters.js';

/**
 * Encodes a control FPDU in the canonical order of the table (Connect:Express answers 3-318 to any other).
 * @param lead bytes left free before the FPDU, for the length of its entity
 * @throws PesitError fault `local` when a value does not fit its parameter
 */
export const encodeFpdu = (
  name: FpduName,
  destination: number,
  source: number,
  parameters: Parameters,
  lead = 0,
): Buffer => {
  const point = encodeLoneSyncPoint(name, destination, source, parameters, lead);
  if (point !== undefined) return point;
  const pieces: Buffer[] = [];
  let length = FPDU_HEADER_LENGTH;
  for (const piece of encodeItems(name, CONTENTS[name], parameters)) {
    pieces.push(piece);
    length += piece.length;
  }
  if (length > MAX_FPDU_LENGTH) throw unfit(name, `at most ${MAX_FPDU_LENGTH} bytes in all`, `${length}`);
  const out = Buffer.allocUnsafe(lead + length);
  writeHeader(out, lead, length, FPDUS[name].phase, FPDUS[name].type, destination, source);
  let offset = lead + FPDU_HEADER_LENGTH;
  for (const piece of pieces) offset += piece.copy(out, offset);
  return out;
};

const unfit = (fpdu: string, expected: string, got: string): PesitError =>
  new PesitError(`${fpdu} cannot be sent: expected ${expected}, got ${got}`, {
    fault: 'local',
    diagnostic: '3-318',
    expected,
    got,
  });

const encodeItems = (name: FpduName, items: readonly ContentItem[], parameters: Parameters): Buffer[] => {
  const pieces: Buffer[] = [];
  const given = new Set(Object.keys(parameters).filter((key) => parameters[key as ParameterKey] !== undefined));
  for (const { key, members } of items) {
    const value = parameters[key];
    if (value === undefined) continue;
    given.delete(key);
    if (members.length > 0) {
      const inner = encodeItems(name, members, value as Parameters);
      if (inner.length > 0) pieces.push(frame(name, key, Buffer.concat(inner)));
    } else {
      const bytes = encodeValue(name, key, value);
      if (bytes.length > 0) pieces.push(frame(name, key, bytes));
    }
  }
  for (const key of given) throw unfit(name, 'only its own parameters', describeParameter(key as ParameterKey));
  return pieces;
};

const frame = (name: FpduName, key: ParameterKey, value: Buffer): Buffer => {
  const row = PARAMETERS[key];
  if (value.length > row.max)
    throw unfit(name, `at most ${row.max} bytes in ${describeParameter(key)}`, `${value.length}`);
  // LI is one byte up to 254, else FF and two bytes (§4.7.2.1).
  const head =
    value.length < 0xff ? [row.code, value.length] : [row.code, 0xff, value.length >>> 8, value.length & 0xff];
  return Buffer.concat([Buffer.from(head), value]);
};

const encodeValue = (name: FpduName, key: ParameterKey, value: unknown): Buffer => {
  const row = PARAMETERS[key];
  switch (row.type) {
    case 'C':
    case 'D':
      return encodeText(name, key, value as string);
    case 'B':
      return value as Buffer;
    case 'N':
    case 'S':
    case 'M':
      return encodeNumber(name, key, value as number, row.max);
    case 'A':
      return encodeAggregate(key, value);
    case 'G':
      throw unfit(name, 'a parameter', describeParameter(key));
  }
};

const encodeText = (name: FpduName, key: ParameterKey, text: string): Buffer => {
  for (let i = 0; i < text.length; i++) {
    if (text.charCodeAt(i) > 0xff)
      throw unfit(name, `${describeParameter(key)} in ISO 8859-1`, 'a character outside it');
  }
  return Buffer.from(text, 'latin1');
};

/** Leading zero bytes are removed, at least one byte stays (§4.7.2.1). */
const encodeNumber = (name: FpduName, key: ParameterKey, value: number, max: number): Buffer => {
  if (!Number.isSafeInteger(value) || value < 0 || value >= 256 ** max) {
    throw unfit(name, `a number of at most ${max} bytes in ${describeParameter(key)}`, `${value}`);
  }
  const bytes: number[] = [];
  let rest = value;
  do {
    bytes.unshift(rest % 256);
    rest = Math.floor(rest / 256);
  } while (rest > 0);
  return Buffer.from(bytes);
};

const encodeAggregate = (key: ParameterKey, value: unknown): Buffer => {
  if (key === 'diagnostic') {
    const [type, reason] = (value as PeerDiagnostic).split('-').map(Number) as [number, number];
    return Buffer.from([type, reason >>> 8, reason & 0xff]);
  }
  if (key === 'syncPoints') {
    const { intervalKb, window } = value as SyncPointOptions;
    return Buffer.from([intervalKb >>> 8, intervalKb & 0xff, window]);
  }
  const { used, mode } = value as CompressionOptions;
  return Buffer.from([used ? 1 : 0, used ? mode : 0]);
};

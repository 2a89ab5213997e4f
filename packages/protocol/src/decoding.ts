/**
 * Decodes what a peer sends: control FPDUs by the two tables (§4.7). Decoding never copies: B values are views of the input.
 * `encoding.ts` is the way back.
 *
 * Liberal in what is readable (pesit-e.md §2): unknown parameters, a wrong order, a duplicate or an empty parameter are
 * skipped and noted; strict in what would corrupt: a length beyond its container, a missing mandatory parameter or an
 * illegal value is a `PesitError` (fault `remote`) with the diagnostic to send.
 */
import { refuses } from './diagnostics.js';
import { PesitError } from './errors.js';
import { diagnosticOf } from './diagnostics.js';
import type { PeerDiagnostic } from './diagnostics.js';
import { CONTENTS, groupOf, isAcknowledgement } from './fpdus.js';
import type { ContentItem, FpduName } from './fpdus.js';
import { decodeLoneSyncPoint } from './lone-sync-points.js';
import { PARAMETERS, describeParameter, parameterByCode } from './parameters.js';
import type { CompressionOptions, ParameterKey, Parameters, SyncPointOptions } from './parameters.js';
import { printable } from './texts.js';

/** A decoded FPDU other than DTF, DTFDA, DTFMA and DTFFA. */
export interface Fpdu {
  readonly name: FpduName;
  /** ID.DST and ID.SRC (§4.7.1). */
  readonly destination: number;
  readonly source: number;
  readonly parameters: Parameters;
  /** Tolerated deviations, one sentence each; at most `MAX_NOTICES`. */
  readonly notices: readonly string[];
}

const MAX_NOTICES = 8;
/** Most characters of a skipped text that a notice shows. */
const MAX_SAID = 64;
/** More parameters than any FPDU has, few enough to bound the work that a peer can ask for. */
const MAX_PARAMETERS = 128;

type MutableParameters = Partial<Record<ParameterKey, unknown>>;

/**
 * Decodes the body of a control FPDU.
 * @param body the bytes after the six of the header; the views in the result share its memory
 * @throws PesitError fault `remote`, diagnostic 3-318
 */
export const decodeBody = (name: FpduName, destination: number, source: number, body: Buffer): Fpdu => {
  const point = decodeLoneSyncPoint(name, body);
  if (point !== undefined) return { name, destination, source, parameters: { syncPoint: point }, notices: [] };
  const notices: string[] = [];
  const note = (text: string): void => {
    if (notices.length < MAX_NOTICES) notices.push(`${name}: ${text}`);
  };
  const parameters = readParameters(name, CONTENTS[name], body, note, undefined);
  const diagnostic = parameters.diagnostic as PeerDiagnostic | undefined;
  const refused = isAcknowledgement(name) && diagnostic !== undefined && refuses(diagnostic);
  checkPresence(name, CONTENTS[name], parameters, refused, note);
  return { name, destination, source, parameters: parameters as Parameters, notices };
};

const illegal = (fpdu: string, expected: string, got: string): PesitError =>
  new PesitError(`${fpdu}: expected ${expected}, got ${got}`, {
    fault: 'remote',
    diagnostic: '3-318',
    expected,
    got,
  });

const readParameters = (
  name: FpduName,
  items: readonly ContentItem[],
  bytes: Buffer,
  note: (text: string) => void,
  group: ParameterKey | undefined,
): MutableParameters => {
  const where = group === undefined ? name : `${name}, ${describeParameter(group)}`;
  const values: MutableParameters = {};
  /** Members that a peer sends outside their group; those inside win. */
  const strays: Partial<Record<ParameterKey, MutableParameters>> = {};
  let offset = 0;
  let count = 0;
  let lastPosition = -1;
  while (offset < bytes.length) {
    if (++count > MAX_PARAMETERS) throw illegal(where, `at most ${MAX_PARAMETERS} parameters`, 'more');
    const code = bytes[offset] ?? 0;
    let length = bytes[offset + 1];
    let start = offset + 2;
    if (length === 0xff) {
      length = start + 2 <= bytes.length ? bytes.readUInt16BE(start) : undefined;
      start += 2;
    }
    if (length === undefined || start + length > bytes.length) {
      const left = Math.max(0, bytes.length - start);
      throw illegal(
        where,
        `the length of parameter ${code} within its container`,
        `${length ?? 'no length'} with ${left} bytes left`,
      );
    }
    const value = bytes.subarray(start, start + length);
    offset = start + length;

    const key = parameterByCode(code);
    const position = key === undefined ? -1 : items.findIndex((item) => item.key === key);
    if (key === undefined || position === -1) {
      const parent = key === undefined || group !== undefined ? undefined : groupOf(name, key);
      if (key !== undefined && parent !== undefined && length > 0) {
        note(`${describeParameter(key)} stands outside ${describeParameter(parent)}`);
        const members = (strays[parent] ??= {});
        members[key] ??= decodeValue(where, key, value);
      } else {
        // PeSIT Wizard puts a message into its CONNECT: nobody else would see it.
        const said = key === 'message' ? ` ("${printable(value.subarray(0, MAX_SAID))}")` : '';
        note(`parameter ${code} of ${length} bytes${said} is not part of this FPDU: skipped`);
      }
      continue;
    }
    const item = items[position] as ContentItem;
    if (position < lastPosition) note(`${describeParameter(key)} is out of order`);
    else lastPosition = position;
    if (values[key] !== undefined) {
      note(`${describeParameter(key)} is there twice: the first is kept`);
      continue;
    }
    if (length === 0) {
      note(`${describeParameter(key)} is empty: taken as absent`);
    } else if (item.members.length > 0) {
      checkLength(where, key, length);
      values[key] = readParameters(name, item.members, value, note, key);
    } else {
      values[key] = decodeValue(where, key, value);
    }
  }
  for (const [parent, members] of Object.entries(strays) as [ParameterKey, MutableParameters][]) {
    values[parent] = { ...members, ...(values[parent] as MutableParameters | undefined) };
  }
  return values;
};

const checkPresence = (
  name: FpduName,
  items: readonly ContentItem[],
  values: MutableParameters,
  refused: boolean,
  note: (text: string) => void,
): void => {
  for (const item of items) {
    const value = values[item.key];
    if (value === undefined) {
      if (item.presence === 'optional' || (refused && item.key !== 'diagnostic')) continue;
      if (item.presence === 'mandatory') {
        throw illegal(name, `the mandatory ${describeParameter(item.key)}`, 'nothing');
      }
      note(`${describeParameter(item.key)} is missing: tolerated`);
    } else if (item.members.length > 0 && !refused) {
      checkPresence(name, item.members, value as MutableParameters, false, note);
    }
  }
};

const checkLength = (where: string, key: ParameterKey, length: number): void => {
  const row = PARAMETERS[key];
  const max = 'accept' in row ? row.accept : row.max;
  if (length > max) throw illegal(where, `at most ${max} bytes in ${describeParameter(key)}`, `${length}`);
};

const decodeValue = (where: string, key: ParameterKey, value: Buffer): unknown => {
  const row = PARAMETERS[key];
  checkLength(where, key, value.length);
  switch (row.type) {
    case 'C':
      return decodeText(value);
    case 'D':
      return value.toString('latin1');
    case 'B':
      return value;
    case 'N':
    case 'S':
    case 'M':
      return decodeNumber(where, key, value);
    case 'A':
      return decodeAggregate(where, key, value);
    case 'G':
      // Groups are read by `readParameters`; a group inside a group does not exist.
      throw illegal(where, 'a parameter', describeParameter(key));
  }
};

/** Trailing blanks are not significant (§4.7.2.1); NUL padding is met in the field. PI 5 keeps its positions. */
const decodeText = (value: Buffer): string => {
  let end = value.length;
  while (end > 0 && (value[end - 1] === 0x20 || value[end - 1] === 0x00)) end--;
  return value.toString('latin1', 0, end);
};

const decodeNumber = (where: string, key: ParameterKey, value: Buffer): number => {
  let number = 0;
  for (const byte of value) number = number * 256 + byte;
  const row = PARAMETERS[key];
  if (number > Number.MAX_SAFE_INTEGER) {
    throw illegal(where, `${describeParameter(key)} below 2^53`, `0x${value.toString('hex')}`);
  }
  if ('values' in row && !(row.values as readonly number[]).includes(number)) {
    throw illegal(where, `${describeParameter(key)} one of ${row.values.join(', ')}`, `${number}`);
  }
  return number;
};

const decodeAggregate = (
  where: string,
  key: ParameterKey,
  value: Buffer,
): PeerDiagnostic | SyncPointOptions | CompressionOptions => {
  const row = PARAMETERS[key];
  // The window is there when the interval is not 0 (§4.7.3).
  if (key === 'syncPoints' && value.length === 2 && value.readUInt16BE(0) === 0) return { intervalKb: 0, window: 0 };
  if (value.length !== row.max) {
    throw illegal(where, `${row.max} bytes in ${describeParameter(key)}`, `${value.length}`);
  }
  if (key === 'diagnostic') {
    const type = value.readUInt8(0);
    if (type > 3) throw illegal(where, `${describeParameter(key)} of type 0 to 3`, `${type}`);
    return diagnosticOf(type, value.readUInt16BE(1));
  }
  if (key === 'syncPoints') return { intervalKb: value.readUInt16BE(0), window: value.readUInt8(2) };
  return { used: value.readUInt8(0) === 1, mode: value.readUInt8(1) };
};

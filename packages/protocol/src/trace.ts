/**
 * FPDUs as text for people: one line each, parameters with their names, secrets masked, data and long texts summarised.
 * The answer is a line, whatever the bytes are: a trace shows above all what is wrong.
 */
import { CRC_LENGTH } from './crc.js';
import { decodeBody } from './decoding.js';
import type { Fpdu } from './decoding.js';
import { describeDiagnostic } from './diagnostics.js';
import type { PeerDiagnostic } from './diagnostics.js';
import { PesitError } from './errors.js';
import { FPDU_HEADER_LENGTH, fpduByCodes, isDataFpdu } from './fpdus.js';
import type { DataFpduName } from './fpdus.js';
import { UNDEFINED_INTERVAL } from './negotiation.js';
import { PARAMETER_KEYS, PARAMETERS, describeParameter } from './parameters.js';
import type { CompressionOptions, ParameterKey, Parameters, SyncPointOptions } from './parameters.js';
import { printable } from './texts.js';

/** Bytes of an opaque value that are shown. */
const SHOWN_BYTES = 64;
const MASK = '********';

/** Meaning of the numbers of the symbolic parameters (pesit-e.md §2). */
export const MEANINGS: Partial<Record<ParameterKey, Readonly<Record<number, string>>>> = {
  crc: { 0: 'no', 1: 'yes' },
  version: { 1: 'D', 2: 'E' },
  fileType: { 0xffff: 'message', 0xfffe: 'reply' },
  restarted: { 0: 'new', 1: 'restart' },
  dataCode: { 0: 'ASCII', 1: 'EBCDIC', 2: 'binary' },
  endCode: { 4: 'error', 8: 'suspended', 12: 'cancelled by the server', 16: 'cancelled by the requester' },
  accessType: { 0: 'write', 1: 'read', 2: 'both' },
  resynchronisation: { 0: 'not allowed', 1: 'allowed' },
  recordFormat: { 0x00: 'fixed', 0x80: 'variable' },
  fileOrganisation: { 0: 'sequential', 1: 'relative', 2: 'indexed' },
  reservationUnit: { 0: 'KB', 1: 'records' },
};
export const COMPRESSION_KINDS = ['none', 'horizontal', 'vertical', 'both'];

/**
 * One line for an FPDU.
 * @param fpdu the bytes of one FPDU, from its length on, with or without its CRC; or one that is decoded already
 */
export const describeFpdu = (fpdu: Buffer | Fpdu): string =>
  Buffer.isBuffer(fpdu) ? describeBytes(fpdu) : describeDecoded(fpdu);

const describeBytes = (bytes: Buffer): string => {
  if (bytes.length < FPDU_HEADER_LENGTH) return `no FPDU: ${bytes.length} bytes`;
  const length = bytes.readUInt16BE(0);
  const [destination, source] = [bytes.readUInt8(4), bytes.readUInt8(5)];
  const name = fpduByCodes(bytes.readUInt8(2), bytes.readUInt8(3));
  if (name === undefined) return `unknown FPDU ${bytes.toString('hex', 2, 4)}, ${bytes.length} bytes`;
  const head = headOf(name, destination, source);
  if (length < FPDU_HEADER_LENGTH || (length !== bytes.length && length + CRC_LENGTH !== bytes.length))
    return `${head}: damaged, announced as ${length} bytes, ${bytes.length} are here`;
  const body = bytes.subarray(FPDU_HEADER_LENGTH, length);
  if (isDataFpdu(name)) return `${headOf(name, destination, 0)}: ${describeData(name, source, body)}`;
  try {
    return describeDecoded(decodeBody(name, destination, source, body));
  } catch (error) {
    if (!(error instanceof PesitError)) throw error;
    return `${head}: unreadable, ${body.length} bytes of parameters: ${error.message}`;
  }
};

const describeDecoded = ({ name, destination, source, parameters, notices }: Fpdu): string => {
  const values = describeParameters(parameters);
  const tolerated = notices.length === 0 ? '' : ` (${notices.join('; ')})`;
  return `${headOf(name, destination, source)}${values === '' ? '' : `: ${values}`}${tolerated}`;
};

const headOf = (name: string, destination: number, source: number): string =>
  `${name} to ${destination}${source === 0 ? '' : ` from ${source}`}`;

const describeData = (name: DataFpduName, source: number, body: Buffer): string => {
  if (name === 'DTFDA') return `start of an article, ${body.length} bytes`;
  if (name === 'DTFMA') return `middle of an article, ${body.length} bytes`;
  if (name === 'DTFFA') return `end of an article, ${body.length} bytes`;
  if (source === 0) return `1 article, ${body.length} bytes`;
  if (source > 1) return `${source} articles, ${Math.max(0, body.length - 2 * source)} bytes`;
  const prefixed = body.length >= 2 && body.readUInt16BE(0) === body.length - 2;
  return prefixed
    ? `1 article with its length, ${body.length - 2} bytes`
    : `1 article, ${body.length} bytes (ID.SRC 1)`;
};

const describeParameters = (parameters: Parameters): string =>
  PARAMETER_KEYS.flatMap((key) => {
    const value = parameters[key];
    return value === undefined ? [] : [`${describeParameter(key)} ${describeValue(key, value)}`];
  }).join(', ');

const describeValue = (key: ParameterKey, value: unknown): string => {
  const row = PARAMETERS[key];
  if ('secret' in row) return MASK;
  switch (row.type) {
    case 'C':
    case 'D':
      return quoted(Buffer.from(value as string, 'latin1'));
    case 'B':
      return describeOpaque(value as Buffer);
    case 'G':
      return `{${describeParameters(value as Parameters)}}`;
    case 'A':
      return describeAggregate(key, value);
    default: {
      const meaning = MEANINGS[key]?.[value as number];
      return meaning === undefined ? String(value) : `${String(value)} ${meaning}`;
    }
  }
};

const describeAggregate = (key: ParameterKey, value: unknown): string => {
  if (key === 'diagnostic') return describeDiagnostic(value as PeerDiagnostic);
  if (key === 'syncPoints') {
    const { intervalKb, window } = value as SyncPointOptions;
    if (intervalKb === 0) return 'none';
    return `${intervalKb === UNDEFINED_INTERVAL ? 'undefined interval' : `${intervalKb} KB`}, window ${window}`;
  }
  const { used, mode } = value as CompressionOptions;
  return used ? (COMPRESSION_KINDS[mode] ?? `unknown kind ${mode}`) : 'none';
};

/** Text where it is text, else hexadecimal; in either case no more than its beginning. */
const describeOpaque = (bytes: Buffer): string => {
  const start = bytes.subarray(0, SHOWN_BYTES);
  const isText = start.every((byte) => byte >= 0x20 && byte !== 0x7f && (byte < 0x80 || byte >= 0xa0));
  const shown = isText ? quoted(start) : start.toString('hex');
  return bytes.length > SHOWN_BYTES ? `${shown}… of ${bytes.length} bytes` : shown;
};

/** Keeps text of a partner from ending the line or colouring a terminal. */
const quoted = (bytes: Buffer): string => `"${printable(bytes)}"`;

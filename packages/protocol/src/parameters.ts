import type { PeerDiagnostic } from './diagnostics.js';

/**
 * The parameters of PeSIT E (§4.7.2.2, §4.7.3): one row a PI or PGI. Codec, validation, error texts and the
 * documentation derive from this table; a parameter that is not here is unknown and skipped on receipt.
 *
 * Types (§4.7.2.1): C text, N unsigned number, S symbolic byte, M bit mask (b1 is the most significant bit),
 * D date `YYMMDDhhmmss`, A aggregate, B opaque bytes, G group of parameters (PGI).
 */
export type ParameterType = 'C' | 'N' | 'S' | 'M' | 'D' | 'A' | 'B' | 'G';

interface ParameterRow {
  readonly code: number;
  readonly name: string;
  readonly type: ParameterType;
  /** Longest value that this node sends, in bytes; for a group, the bound on its contents. */
  readonly max: number;
  /** Longest value taken on receipt, where the field exceeds the specification. */
  readonly accept?: number;
  readonly values?: readonly number[];
  /** Never shown in a log, a trace or an error. */
  readonly secret?: true;
}

export const PARAMETERS = {
  crc: { code: 1, name: 'CRC used', type: 'S', max: 1, values: [0, 1] },
  diagnostic: { code: 2, name: 'diagnostic', type: 'A', max: 3 },
  requester: { code: 3, name: 'requester identification', type: 'C', max: 24 },
  server: { code: 4, name: 'server identification', type: 'C', max: 24 },
  accessControl: { code: 5, name: 'access control', type: 'C', max: 16, secret: true },
  version: { code: 6, name: 'version', type: 'N', max: 2 },
  syncPoints: { code: 7, name: 'sync points', type: 'A', max: 3 },
  fileIdentifier: { code: 9, name: 'file identifier', type: 'G', max: 140 },
  fileType: { code: 11, name: 'file type', type: 'N', max: 2 },
  fileName: { code: 12, name: 'file name', type: 'C', max: 76 },
  transferId: { code: 13, name: 'transfer identifier', type: 'N', max: 3 },
  attributesWanted: { code: 14, name: 'attributes wanted', type: 'M', max: 1 },
  restarted: { code: 15, name: 'restarted transfer', type: 'S', max: 1, values: [0, 1] },
  dataCode: { code: 16, name: 'data code', type: 'S', max: 1, values: [0, 1, 2] },
  priority: { code: 17, name: 'priority', type: 'S', max: 1 },
  restartPoint: { code: 18, name: 'restart point', type: 'N', max: 3 },
  endCode: { code: 19, name: 'end of transfer code', type: 'S', max: 1 },
  syncPoint: { code: 20, name: 'sync point number', type: 'N', max: 3 },
  compression: { code: 21, name: 'compression', type: 'A', max: 2 },
  accessType: { code: 22, name: 'access type', type: 'S', max: 1, values: [0, 1, 2] },
  resynchronisation: { code: 23, name: 'resynchronisation', type: 'S', max: 1, values: [0, 1] },
  maxEntitySize: { code: 25, name: 'maximum entity size', type: 'N', max: 2 },
  supervisionTimer: { code: 26, name: 'supervision timer', type: 'N', max: 2 },
  dataBytes: { code: 27, name: 'number of data bytes', type: 'N', max: 8 },
  articles: { code: 28, name: 'number of articles', type: 'N', max: 4 },
  diagnosticComplement: { code: 29, name: 'diagnostic complement', type: 'B', max: 254, accept: 4096 },
  logicalAttributes: { code: 30, name: 'logical attributes', type: 'G', max: 1024 },
  recordFormat: { code: 31, name: 'record format', type: 'M', max: 1 },
  recordLength: { code: 32, name: 'record length', type: 'N', max: 2 },
  fileOrganisation: { code: 33, name: 'file organisation', type: 'S', max: 1 },
  sealRequired: { code: 34, name: 'SIT seal required', type: 'N', max: 2 },
  seal: { code: 36, name: 'SIT seal', type: 'B', max: 64 },
  fileLabel: { code: 37, name: 'file label', type: 'C', max: 80, accept: 512 },
  keyLength: { code: 38, name: 'key length', type: 'N', max: 2 },
  keyOffset: { code: 39, name: 'key offset', type: 'N', max: 2 },
  physicalAttributes: { code: 40, name: 'physical attributes', type: 'G', max: 64 },
  reservationUnit: { code: 41, name: 'reservation unit', type: 'S', max: 1 },
  maxReservation: { code: 42, name: 'maximum reservation', type: 'N', max: 4 },
  historicalAttributes: { code: 50, name: 'historical attributes', type: 'G', max: 64 },
  creationDate: { code: 51, name: 'creation date', type: 'D', max: 12 },
  extractionDate: { code: 52, name: 'last extraction date', type: 'D', max: 12 },
  originalSender: { code: 61, name: 'original sender', type: 'C', max: 24 },
  finalReceiver: { code: 62, name: 'final receiver', type: 'C', max: 24 },
  fileAccessControl: { code: 63, name: 'file access control', type: 'C', max: 16, secret: true },
  serverDate: { code: 64, name: 'server date', type: 'D', max: 12 },
  authenticationType: { code: 71, name: 'authentication type', type: 'B', max: 254, accept: 4096 },
  authenticationElements: {
    code: 72,
    name: 'authentication elements',
    type: 'B',
    max: 254,
    accept: 4096,
    secret: true,
  },
  sealingType: { code: 73, name: 'sealing type', type: 'B', max: 254, accept: 4096 },
  sealingElements: { code: 74, name: 'sealing elements', type: 'B', max: 254, accept: 4096, secret: true },
  encryptionType: { code: 75, name: 'encryption type', type: 'B', max: 254, accept: 4096 },
  encryptionElements: { code: 76, name: 'encryption elements', type: 'B', max: 254, accept: 4096, secret: true },
  signatureType: { code: 77, name: 'signature type', type: 'B', max: 254, accept: 4096 },
  dataSeal: { code: 78, name: 'data seal', type: 'B', max: 254, accept: 4096 },
  signature: { code: 79, name: 'signature', type: 'B', max: 254, accept: 4096 },
  accreditation: { code: 80, name: 'accreditation', type: 'B', max: 254, accept: 4096 },
  signatureAcknowledgement: { code: 81, name: 'signature acknowledgement', type: 'B', max: 254, accept: 4096 },
  secondSignature: { code: 82, name: 'second signature', type: 'B', max: 254, accept: 4096 },
  secondAccreditation: { code: 83, name: 'second accreditation', type: 'B', max: 254, accept: 4096 },
  message: { code: 91, name: 'message', type: 'B', max: 4096, accept: 65_535 },
  freeMessage: { code: 99, name: 'free message', type: 'B', max: 254, accept: 65_535 },
} as const satisfies Record<string, ParameterRow>;

export type ParameterKey = keyof typeof PARAMETERS;

/** PI 7. */
export interface SyncPointOptions {
  /** Kilobytes of 1,024 bytes between two points; 0 none, 0xFFFF undefined. */
  readonly intervalKb: number;
  /** Points that may wait for their acknowledgement; 0 = points are not acknowledged. */
  readonly window: number;
}

/** PI 21. */
export interface CompressionOptions {
  readonly used: boolean;
  /** 1 horizontal, 2 vertical, 3 both; 0 when not used. */
  readonly mode: number;
}

type ValueOf<K extends ParameterKey> = K extends 'diagnostic'
  ? PeerDiagnostic
  : K extends 'syncPoints'
    ? SyncPointOptions
    : K extends 'compression'
      ? CompressionOptions
      : (typeof PARAMETERS)[K]['type'] extends 'C' | 'D'
        ? string
        : (typeof PARAMETERS)[K]['type'] extends 'B'
          ? Buffer
          : (typeof PARAMETERS)[K]['type'] extends 'G'
            ? Parameters
            : number;

/**
 * The parameters of one FPDU, or of one group, by name. C and D values are strings without trailing blanks
 * (ISO 8859-1), N, S and M numbers, B views of the received bytes.
 */
export type Parameters = { readonly [K in ParameterKey]?: ValueOf<K> };

export const PARAMETER_KEYS = Object.keys(PARAMETERS) as readonly ParameterKey[];

const BY_CODE: readonly (ParameterKey | undefined)[] = (() => {
  const table: (ParameterKey | undefined)[] = new Array<undefined>(256).fill(undefined);
  for (const key of PARAMETER_KEYS) table[PARAMETERS[key].code] = key;
  return table;
})();

export const parameterByCode = (code: number): ParameterKey | undefined => BY_CODE[code];

/** `PI 12 (file name)`, for error texts and traces. */
export const describeParameter = (key: ParameterKey): string => {
  const row = PARAMETERS[key];
  return `${row.type === 'G' ? 'PGI' : 'PI'} ${row.code} (${row.name})`;
};

/** The rules of negotiation (§3.6.3 a, pesit-e.md §3). Later computations use the terms that come out of here, never the configuration. */
import type { CompressionMode } from './compression.js';
import { PesitError } from './errors.js';
import type { Dialect } from './framing.js';
import type { CompressionOptions, SyncPointOptions } from './parameters.js';

/** PI 7: no fixed interval; loses against any number. */
export const UNDEFINED_INTERVAL = 0xffff;

/** Terms that both sides agreed on for a connection. */
export interface ConnectionTerms {
  readonly dialect: Dialect;
  /** 1 = D, 2 = E. */
  readonly version: number;
  readonly crc: boolean;
  /** Bytes between two sync points; 0 = no points. */
  readonly syncInterval: number;
  /** Unacknowledged points allowed; 0 = points are not acknowledged. */
  readonly syncWindow: number;
  /** PI 23: RESYN may be used. */
  readonly resynchronisation: boolean;
  /** PI 22: 0 write, 1 read, 2 both. */
  readonly accessType: number;
}

/** Terms that both sides agreed on for a file. */
export interface FileTerms {
  /** PI 25. */
  readonly maxEntitySize: number;
  /** PI 21: 1 horizontal, 2 vertical, 3 both, 0 none. */
  readonly compression: CompressionMode | 0;
}

export const NO_SYNC: SyncPointOptions = { intervalKb: 0, window: 0 };

/**
 * PI 7 of the answer: in use only if both want it, the smaller of each value; the server may only lower, and a
 * requester applies the same rule to the answer, so that it never gets more than it asked for.
 */
export const negotiateSync = (
  asked: SyncPointOptions | undefined,
  ours: SyncPointOptions | undefined,
): SyncPointOptions => {
  if (asked === undefined || ours === undefined || asked.intervalKb === 0 || ours.intervalKb === 0) return NO_SYNC;
  return { intervalKb: Math.min(asked.intervalKb, ours.intervalKb), window: Math.min(asked.window, ours.window) };
};

/** @param defaultKb the sender's own interval, when PI 7 leaves it undefined on both sides */
export const intervalBytes = (sync: SyncPointOptions, defaultKb: number): number =>
  (sync.intervalKb === UNDEFINED_INTERVAL ? defaultKb : sync.intervalKb) * 1024;

/**
 * PI 6: the lower of both versions; absent or 0 is taken as ours. The bits 0x80 and 0x40 are capability flags of Axway products.
 * @returns undefined when the version is unknown (RCONNECT 3-308)
 */
export const negotiateVersion = (asked: number | undefined): number | undefined => {
  const version = (asked ?? 0) & ~0xc0;
  if (version === 0) return 2;
  return version <= 2 ? version : undefined;
};

/** PI 23: both have to want it, and there have to be points to go back to (§3.6.3 p). */
export const canResynchronise = (asked: boolean, ours: boolean | undefined, sync: SyncPointOptions): boolean =>
  asked && ours === true && sync.intervalKb > 0;

export const NO_COMPRESSION: CompressionOptions = { used: false, mode: 0 };

/** PI 21 of a mode; 0 is no compression. */
export const compressionOptions = (mode: CompressionMode | 0): CompressionOptions => ({ used: mode !== 0, mode });

/** Horizontal is 1, vertical 2, both 3: the two kinds as bits. */
const kindsOf = (compression: CompressionOptions | undefined): CompressionMode | 0 => {
  const { used, mode } = compression ?? NO_COMPRESSION;
  return used && (mode === 1 || mode === 2 || mode === 3) ? mode : 0;
};

/** PI 21 of the answer: the kinds that both want (annex A §1). */
export const negotiateCompression = (
  asked: CompressionOptions | undefined,
  allowed: CompressionOptions | undefined,
): { readonly used: boolean; readonly mode: CompressionMode | 0 } => {
  const mode = (kindsOf(asked) & kindsOf(allowed)) as CompressionMode | 0;
  return { used: mode !== 0, mode };
};

/**
 * The meaning of the answer to our PI 21. Its second byte has a meaning only when both kinds were asked for (annex A §1); a server
 * that leaves it out otherwise accepts what was asked.
 * @throws PesitError 3-318 when it accepts what was not asked for: the data could not be read
 */
export const acceptedCompression = (
  asked: CompressionOptions | undefined,
  answered: CompressionOptions | undefined,
): CompressionMode | 0 => {
  if (answered?.used !== true) return 0;
  const ours = kindsOf(asked);
  if (answered.mode === 0 && (ours === 1 || ours === 2)) return ours;
  const mode = kindsOf(answered);
  if (mode !== 0 && (mode & ours) === mode) return mode;
  const [expected, got] = [ours === 0 ? 'no compression (PI 21)' : `compression ${ours} (PI 21)`, `${answered.mode}`];
  throw new PesitError(`ACK(ORF): expected ${expected}, got ${got}: the partner uses what was not asked for`, {
    fault: 'remote',
    diagnostic: '3-318',
    expected,
    got,
  });
};

/** Smallest PI 25 that still carries data in every form: header, prefix, CRC and some bytes. */
export const MIN_ENTITY_SIZE = 64;

/** The rules of negotiation (§3.6.3 a, pesit-e.md §3). Later computations use the terms that come out of here, never the configuration. */
import type { SyncPointOptions } from './parameters.js';

/** PI 7: no fixed interval; loses against any number. */
export const UNDEFINED_INTERVAL = 0xffff;

/** What both sides agreed on for a connection. */
export interface ConnectionTerms {
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

export const NO_SYNC: SyncPointOptions = { intervalKb: 0, window: 0 };

/**
 * PI 7 of the answer: in use only if both want it, the smaller of each value; the server may only lower, and a
 * requester applies the same rule to the answer, so that it never gets more than it asked for.
 */
export function negotiateSync(
  asked: SyncPointOptions | undefined,
  ours: SyncPointOptions | undefined,
): SyncPointOptions {
  if (asked === undefined || ours === undefined || asked.intervalKb === 0 || ours.intervalKb === 0) return NO_SYNC;
  return { intervalKb: Math.min(asked.intervalKb, ours.intervalKb), window: Math.min(asked.window, ours.window) };
}

/** @param defaultKb the sender's own interval, when PI 7 leaves it undefined on both sides */
export function intervalBytes(sync: SyncPointOptions, defaultKb: number): number {
  return (sync.intervalKb === UNDEFINED_INTERVAL ? defaultKb : sync.intervalKb) * 1024;
}

/**
 * PI 6: the lower of both versions; absent or 0 is taken as ours. The bits 0x80 and 0x40 are capability flags of Axway products.
 * @returns undefined when the version is unknown (RCONNECT 3-308)
 */
export function negotiateVersion(asked: number | undefined): number | undefined {
  const version = (asked ?? 0) & ~0xc0;
  if (version === 0) return 2;
  return version <= 2 ? version : undefined;
}

/** Smallest PI 25 that still carries data in every form: header, prefix, CRC and some bytes. */
export const MIN_ENTITY_SIZE = 64;

import type { StoredVersion } from './row.js';

/** A file that can be sent. */
export interface Sendable {
  /** Absolute, links resolved. */
  readonly path: string;
  /** Bytes. */
  readonly size: number;
  readonly version: StoredVersion;
}

/** As a store or the file system knows it. */
interface Facts {
  readonly size: number | bigint;
  readonly mtimeNs: bigint;
}

export const sendable = (path: string, { size, mtimeNs }: Facts): Sendable => ({
  path,
  size: Number(size),
  version: { size: Number(size), mtimeNs: String(mtimeNs) },
});

import type { BigIntStats } from 'node:fs';

import type { StoredVersion } from './row.js';

/** A file that can be sent. */
export interface Sendable {
  /** Absolute, links resolved. */
  readonly path: string;
  /** Bytes. */
  readonly size: number;
  readonly version: StoredVersion;
}

export const sendable = (path: string, { size, mtimeNs }: BigIntStats): Sendable => ({
  path,
  size: Number(size),
  version: { size: Number(size), mtimeNs: String(mtimeNs) },
});

/** Tells one version of a file from another. */
export interface FileVersion {
  /** Bytes. */
  readonly size: number;
  /** Modification time in nanoseconds since the epoch. */
  readonly mtimeNs: bigint;
  /** Name that the store itself gives this version, such as the ETag of an object; absent where it has no name for it. */
  readonly tag?: string;
}

/** A tag is compared where both have one: what is kept of a version may be size and time alone. */
export const isSameVersion = (a: FileVersion, b: FileVersion): boolean =>
  a.size === b.size && a.mtimeNs === b.mtimeNs && (a.tag === undefined || b.tag === undefined || a.tag === b.tag);

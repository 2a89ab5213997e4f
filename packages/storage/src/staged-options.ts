import type { FileOperations } from './files.js';
import type { GrowthRules } from './growth.js';
import type { RecordFormat } from './record-format.js';

/** `transfer.checksum`. */
export type ChecksumKind = 'sha256' | 'none';

/**
 * `transfer.durability`: when received bytes are put on stable storage. With every value, a process that is killed loses
 * nothing acknowledged; what it decides is a power cut or a crash of the operating system.
 *
 * - `checkpoint`: each point, with its bytes, before it is acknowledged; the file and its name before the transfer is.
 *   Risks nothing.
 * - `end`: nothing at the points; the file and its name before the transfer is acknowledged. A power cut may take back
 *   points that the partner counts as stored: the file then continues from an older one or from the start, which asks for a
 *   partner that can go back, and costs time. A file that is complete is safe. With `checksum: 'none'` nothing could tell
 *   bytes lost from bytes kept, so no points are kept at all and a restart begins at the start.
 * - `none`: as `end`, and nothing at the end either. A power cut soon after the end may lose a file that was acknowledged
 *   and recorded COMPLETED, or leave it empty or cut: only for files that can be fetched or sent again.
 */
export type Durability = 'checkpoint' | 'end' | 'none';

export interface StagedFileOptions {
  /** Absolute; must exist. */
  readonly receiveDirectory: string;
  /** Names the staged file; unique among the transfers that share the directory. `[A-Za-z0-9._-]`, at most 200. */
  readonly key: string;
  /**
   * Number of the caller's claim of the transfer, above that of every attempt before: whatever one with a lower number still does
   * harms nothing that this one has. Default 1.
   */
  readonly fence?: number;
  readonly format: RecordFormat;
  /** Default `sha256`. */
  readonly checksum?: ChecksumKind;
  /** Most bytes of one write; twice as many may wait for the disk before the peer has to. Default 524,288. */
  readonly writeSize?: number | undefined;
  /** Default `checkpoint`. */
  readonly durability?: Durability;
  /** Kept in the journal for `peek` and `listLeftovers`, such as the identity of the transfer. At most 1024 bytes of UTF-8. */
  readonly memo?: string;
  /** Default: it may grow as long as the disk takes it. */
  readonly growth?: GrowthRules | undefined;
  /** `resume` looks at it between two blocks of what it reads for the hash, and rejects with its reason, a `PesitError`; what is staged stays. */
  readonly signal?: AbortSignal | undefined;
  /** Called after each flush of points or of the end, in time: how long it took, milliseconds. Default: nobody is told. */
  readonly flushed?: ((ms: number) => void) | undefined;
  /** Default: the real file system. */
  readonly files?: FileOperations;
}

export interface DeliveryTarget {
  /** Final name relative to the receive directory, `/` between segments; missing directories are created. */
  readonly path: string;
  /** Replace a file of that name. False: such a file makes the delivery fail with 2-204. */
  readonly overwrite: boolean;
  /**
   * Leaves a mark in the staging directory, by which `peek` knows of the delivery although the final file was fetched
   * meanwhile: until `recorded`. Default false.
   */
  readonly marked?: boolean;
  /** Asked once more for the final path (absolute, links resolved), before anything has that name; what it throws ends the delivery. */
  readonly admit?: (final: string) => Promise<void>;
}

/** A staged file whose bytes are all on stable storage (as far as its durability says). */
export interface StagedContent {
  /** Bytes of the file. */
  readonly size: number;
  /** `sha256:` and 64 hex digits; undefined with `checksum: 'none'`. */
  readonly checksum: string | undefined;
}

/**
 * Outcome of taking a delivery back: the file is gone again; somebody had fetched or replaced it before; it stays
 * because it overwrote another, which is gone anyway, and the next attempt overwrites it; or a later claim of the transfer has it, which may
 * have found it delivered.
 */
export type TakenBack = 'taken back' | 'fetched' | 'stays' | 'claimed';

export interface Delivery extends StagedContent {
  /** Absolute, links resolved. */
  readonly path: string;
}

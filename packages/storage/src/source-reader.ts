import type { PesitError } from '@pesit-node/protocol';
import type { ReadableFile } from './file-store.js';
import type { PointTable } from './point-table.js';
import type { RunningHash } from './running-hash.js';

/** The file that a cutter reads from. */
export interface SourceReader {
  /** For the operator's messages. */
  readonly path: string;
  readonly file: ReadableFile;
  /** Bytes, when the file was opened. */
  readonly size: number;
  /** Hash of the bytes read so far. */
  hash: RunningHash | undefined;
  readonly points: PointTable;
  /** When there is a hash: reads the first bytes of the file for it. */
  hashUpTo(fileOffset: number, signal?: AbortSignal): Promise<void>;
  changed(how: string): PesitError;
}

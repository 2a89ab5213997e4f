/**
 * Files on their way in and out (design §3). This package knows files and articles, not sessions: it implements the two
 * ends of the data path that `protocol` declares, and imports nothing else.
 *
 * In: `StagedFile` takes article views, an `ArticleDecoder` turns them into the bytes of the record format, a `FileWriter`
 * writes them with few large `writev`s and hashes them meanwhile, a `GroupCommit` answers many sync points with one
 * flush: of the data, then of the `PointJournal` beside them. `StagedFile.resume` continues from the newest point whose bytes
 * are proved to be there. The highest fence owns a key: files bear it in their names, and who takes them from a process
 * that may still run continues in a copy (`staging-claim.ts`, `StagingLock`).
 * Nobody sees the file before `deliver` gives it its final name, which never replaces another unless told to.
 * Out: `FileSource` opens the file once and reads it straight into the places of a burst (`BlockCutter`), or cuts it into
 * lines (`LineCutter`), and makes sure at the end that the file was the same all along. For a restart it keeps no table: what
 * was negotiated (`Pacing`) places every point again.
 * Names: what a peer sends becomes part of a name by `expandPattern` alone, and a name becomes a path only inside its
 * directory (`resolveInside`, `deliver`), links included.
 * Where files lie: behind the port `FileStore` (`file-store.ts`), of which `LocalFileStore` is the first; what is in its directories
 * is kept for a while (`directory-index.ts`), so that choosing among thousands costs little.
 * Every failure is a `StorageError`: a `PesitError` with the diagnostic to send and a text that a peer may see.
 */
export { StorageError, storageError } from './errors.js';
export { DEFAULT_RECORD_LENGTH, MAX_RECORD_LENGTH, formatOf, receivedFormat } from './record-format.js';
export type {
  AnnouncedRecords,
  RecordFormat,
  RecordFormatCode,
  RecordFormatName,
  RecordSettings,
} from './record-format.js';
export { StagedFile } from './staged-file.js';
export type { ResumedFile } from './staged-file.js';
export type {
  ChecksumKind,
  Delivery,
  DeliveryTarget,
  Durability,
  StagedContent,
  StagedFileOptions,
  TakenBack,
} from './staged-options.js';
export type { GrowthRules } from './growth.js';
export { ProcessDirectory } from './process-directory.js';
export { DeliveryNotes } from './delivery-notes.js';
export { findDelivered, finishTakingBack, freeEmptyName, hashOfFile } from './found-delivery.js';
export type { IntendedDelivery } from './found-delivery.js';
export { listLeftovers, removeLeftover } from './leftovers.js';
export type { Leftover, RemoveOptions, StagedFacts } from './leftovers.js';
export { claimStaged } from './staging-claim.js';
export { claimedName, FIRST_FENCE, readClaimedName } from './staging-place.js';
export type { ClaimedKey } from './staging-place.js';
export type { StoredPoint } from './group-commit.js';
export { FileSource } from './file-source.js';
export type { FileSourceOptions } from './file-source.js';
export type { FileVersion } from './file-version.js';
export type {
  FileStore,
  FileStoreCapabilities,
  FileStores,
  Located,
  ReadableFile,
  ReceivedFile,
  ReceiveOptions,
  ResumedReceiving,
} from './file-store.js';
export { LocalFileStore, LocalFileStores } from './local-file-store.js';
export type { LocalFileStoreOptions } from './local-file-store.js';
export type { Pacing } from './pacing.js';
export type { PointTable } from './point-table.js';
export { ensureReceiveDirectory, freeSpace } from './directories.js';
export type { SelectionRequest } from './file-selection.js';
export { byAge } from './sendable-file.js';
export type { SendableFile } from './sendable-file.js';
export { isUsedUp, SpaceReserve } from './space-reserve.js';
export type { Space, SpaceReserveOptions } from './space-reserve.js';
export { VolumeWatch } from './volume-watch.js';
export type {
  VolumeFault,
  VolumeFaultKind,
  VolumeWatchEvents,
  VolumeWatchOptions,
  WatchedDirectories,
} from './volume-watch.js';
export { markChecker, markName } from './volume-mark.js';
export type { KnownMark, VolumeMarks } from './volume-mark.js';
export { matchesGlob } from './glob.js';
export { DEFAULT_RECEIVE_PATTERN, expandPattern, sanitiseValue, validatePattern } from './name-pattern.js';
export type { NameValues } from './name-pattern.js';
export { STAGING_DIRECTORY, isInsideRoots, realPathOf, resolveInside } from './path-safety.js';
export { FileLane, fileLane } from './file-lane.js';
export { nodeFiles, useSynchronousIo } from './node-files.js';
export type { FileFacts, FileOperations, OpenFile } from './files.js';
export { answerQuestion } from './check-other.js';
export type { StorageAnswer, StorageQuestion } from './check-other.js';
export { checkStorage } from './storage-check.js';
export type { StorageCheckOptions, StorageFinding, StorageState } from './storage-check.js';

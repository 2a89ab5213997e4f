import type { OpenFile } from './files.js';
import type { JournalPoint } from './journal-format.js';
import { intactPoints, newestPoint } from './point-journal.js';
import type { FoundJournal, FoundPoint } from './point-journal.js';
import { PrefixHash } from './prefix-hash.js';
import type { RecordFormat } from './record-format.js';
import type { RunningHash } from './running-hash.js';

/** The point from which a staged file may continue. */
export interface UsablePoint {
  /** Undefined when nothing of the file can be used. */
  readonly found: FoundPoint | undefined;
  /** Hash of the bytes before the point. */
  readonly hash: RunningHash | undefined;
  /** Why it is not the newest point of the journal. */
  readonly reason: string | undefined;
}

/** How the file continues, and what is known of it. */
interface Expectation {
  readonly format: RecordFormat;
  readonly hashed: boolean;
  /** The hash at a point whose bytes this process has written, to continue from. */
  readonly known: RunningHash | undefined;
  readonly signal: AbortSignal | undefined;
}

const nothing = (reason: string): UsablePoint => ({ found: undefined, hash: undefined, reason });

/**
 * The newest point that the file can be trusted up to.
 *
 * With a hash the part that is there is read, unless this process has kept its state for the newest point (`staged-hashes.ts`), and every point that carries a
 * digest is checked against it on the way: bytes that came back wrong after a power cut are never built upon, flushed or
 * not. Without a hash a point counts whose data were flushed before it was written, and points that need their digest are
 * still checked: what was acknowledged with one setting is not lost with the other.
 */
export const findUsablePoint = async (
  journal: FoundJournal,
  file: OpenFile,
  size: number,
  { format, hashed, known, signal }: Expectation,
): Promise<UsablePoint> => {
  const [before, now] = [journal.header.format, format].map(inWords);
  if (before !== now) {
    return nothing(`it was received as ${before}, and would continue as ${now}`);
  }
  if (hashed) return (await knownPoint(journal, size, known)) ?? verifiedPoint(journal, file, size, signal);
  const isWithin = ({ fileOffset }: JournalPoint) => fileOffset <= size;
  const found = await newestPoint(journal, (point) => isWithin(point) && point.flushed);
  const newer = await newestPoint(journal, (point) => isWithin(point) && point.digest !== undefined);
  if (newer !== undefined && newer.index > (found?.index ?? -1)) {
    return { ...(await verifiedPoint(journal, file, size, signal)), hash: undefined };
  }
  if (found === undefined) return nothing(noPointWithin(size));
  return { found, hash: undefined, reason: undefined };
};

const inWords = ({ name, recordLength, codePage }: Pick<RecordFormat, 'name' | 'recordLength' | 'codePage'>) =>
  `${name} of ${recordLength}${codePage === undefined ? '' : `, EBCDIC ${codePage}`}`;

/** The newest point of the journal, when it is the one whose hash is known: then nothing has to be read. */
const knownPoint = async (
  journal: FoundJournal,
  size: number,
  known: RunningHash | undefined,
): Promise<UsablePoint | undefined> => {
  if (known === undefined) return undefined;
  const newest = await newestPoint(journal, ({ fileOffset }) => fileOffset <= size);
  const digest = known.mark(known.position).digest;
  if (newest?.point.fileOffset !== known.position || digest === undefined) return undefined;
  return newest.point.digest?.equals(digest) === true ? { found: newest, hash: known, reason: undefined } : undefined;
};

const verifiedPoint = async (
  journal: FoundJournal,
  file: OpenFile,
  size: number,
  signal: AbortSignal | undefined,
): Promise<UsablePoint> => {
  const prefix = new PrefixHash(file, size, signal);
  let usable = nothing(noPointWithin(size));
  try {
    for await (const found of intactPoints(journal)) {
      const { number, fileOffset, flushed, digest } = found.point;
      if (fileOffset > size) continue;
      const hash = await prefix.upTo(fileOffset);
      if (hash === undefined) break;
      if (digest === undefined ? flushed : hash.mark(fileOffset).digest?.equals(digest)) {
        usable = { found, hash, reason: undefined };
      } else if (digest !== undefined) {
        const back = usable.found?.point.number ?? 0;
        const reason = `the bytes before point ${number} are not those that were received: back to point ${back}`;
        return { ...usable, reason };
      }
    }
    return usable;
  } finally {
    await prefix.stop();
  }
};

export const noPointWithin = (size: number) => `its journal has no point within the ${size} bytes that are there`;

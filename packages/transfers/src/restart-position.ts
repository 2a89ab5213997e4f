/**
 * Where a file that is sent begins again. The receiver names a point; the sender finds its place by counting as the attempts
 * before it placed their points (`Pacing`), or, between compressed articles, where points follow from no rule, by what was
 * written down of each.
 */
import type { SyncPoint } from '@pesit-node/protocol';
import type { FileSource, Pacing, StoredPoint } from '@pesit-node/storage';

/**
 * The attempts that placed the points which stand when one more begins to place some: those after its start are gone, and an
 * attempt that continues exactly as the one before it adds nothing.
 * @returns `pacings` itself when nothing is to be written down
 */
export const pacingsWith = (pacings: readonly Pacing[], attempt: Pacing): readonly Pacing[] => {
  const standing = pacings.filter(({ from }) => from < attempt.from);
  const last = standing.at(-1);
  const continues = last !== undefined && isSame({ ...last, from: 0 }, { ...attempt, from: 0 });
  const result = continues ? standing : [...standing, attempt];
  const isKnown = result.length === pacings.length && result.every((one, i) => isSame(one, pacings[i]));
  return isKnown ? pacings : result;
};

const isSame = (one: Pacing, other: Pacing | undefined): boolean =>
  one.from === other?.from &&
  one.interval === other.interval &&
  one.maxUnsegmentedArticle === other.maxUnsegmentedArticle &&
  (one.compression ?? 0) === (other.compression ?? 0);

/** Whether points of these attempts may have been written down. */
export const hasCompressed = (pacings: readonly Pacing[]): boolean =>
  pacings.some(({ compression = 0 }) => compression !== 0);

/**
 * Brings a source to a point of an earlier attempt.
 * @param pacings of the attempts so far
 * @param written finds the facts that were written down of a point
 * @returns undefined when no attempt has placed such a point, or its place is no longer known
 * @throws StorageError as `FileSource.startAt`; the reason of `signal`
 */
export const goToPoint = async (
  source: FileSource,
  number: number,
  pacings: readonly Pacing[],
  written: (number: number) => Promise<StoredPoint | undefined>,
  signal?: AbortSignal,
): Promise<SyncPoint | undefined> => {
  const point = hasCompressed(pacings) ? await written(number) : undefined;
  if (point === undefined) {
    // Attempts that began at the point or behind it did not place it.
    const before = pacings.filter(({ from }) => from < number);
    return source.startAt(number, before, signal);
  }
  source.points.set(number, point.fileOffset);
  await source.goBack(point);
  return point;
};

/**
 * The facts to write down of a point between compressed articles. It stands before the first article of its burst (annex A §3).
 * @param totals of the session before that burst
 */
export const pointToWrite = (
  source: FileSource,
  number: number,
  { dataBytes, articles }: Pick<SyncPoint, 'dataBytes' | 'articles'>,
): StoredPoint | undefined => {
  const fileOffset = source.points.offsetOf(number);
  return fileOffset === undefined ? undefined : { number, fileOffset, dataBytes, articles };
};

import type { Pacing } from '@pesit-node/storage';

/**
 * The attempts that placed the points which stand when one more begins to place some: those after its start are gone, and an
 * attempt that continues exactly as the one before it adds nothing.
 * @returns `pacings` itself when nothing is to be written down
 */
export const pacingsWith = (pacings: readonly Pacing[], attempt: Pacing): readonly Pacing[] => {
  const standing = pacings.filter(({ from }) => from < attempt.from);
  const last = standing.at(-1);
  const goesOn = last !== undefined && isSame({ ...last, from: 0 }, { ...attempt, from: 0 });
  const result = goesOn ? standing : [...standing, attempt];
  const isKnown = result.length === pacings.length && result.every((one, i) => isSame(one, pacings[i]));
  return isKnown ? pacings : result;
};

const isSame = (one: Pacing, other: Pacing | undefined): boolean =>
  one.from === other?.from &&
  one.interval === other.interval &&
  one.maxUnsegmentedArticle === other.maxUnsegmentedArticle &&
  (one.compression ?? 0) === (other.compression ?? 0);

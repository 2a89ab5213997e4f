import type { Pacing } from '@pesit-node/storage';

/**
 * The attempts that placed the points which stand when one more begins to place some: those after its start are gone, and an
 * attempt that goes on exactly as the one before it adds nothing.
 * @returns `pacings` itself when nothing is to be written down
 */
export const pacingsWith = (pacings: readonly Pacing[], attempt: Pacing): readonly Pacing[] => {
  const standing = pacings.filter(({ from }) => from < attempt.from);
  const last = standing.at(-1);
  const goesOn = last?.interval === attempt.interval && last.maxUnsegmentedArticle === attempt.maxUnsegmentedArticle;
  const result = goesOn ? standing : [...standing, attempt];
  const isSame =
    result.length === pacings.length &&
    result.every(
      ({ from, interval, maxUnsegmentedArticle }, i) =>
        pacings[i]?.from === from &&
        pacings[i].interval === interval &&
        pacings[i].maxUnsegmentedArticle === maxUnsegmentedArticle,
    );
  return isSame ? pacings : result;
};

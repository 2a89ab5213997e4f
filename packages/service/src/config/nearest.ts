/** Edit distance of two short names (insertions, deletions, substitutions). */
const distance = (left: string, right: string): number => {
  let previous = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let row = 1; row <= left.length; row++) {
    const current = [row];
    for (let column = 1; column <= right.length; column++) {
      const substitution = (previous[column - 1] ?? 0) + (left[row - 1] === right[column - 1] ? 0 : 1);
      current.push(Math.min(substitution, (previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1));
    }
    previous = current;
  }
  return previous[right.length] ?? 0;
};

/**
 * The candidate with the smallest edit distance to `name`; the first of equals. Names are cut at 100 characters.
 * @param most edits, beyond which it is another word and not a slip; default: any
 */
export const nearest = (name: string, candidates: readonly string[], most = Infinity): string | undefined => {
  const wanted = name.slice(0, 100).toLowerCase();
  let best: { candidate: string; cost: number } | undefined;
  for (const candidate of candidates) {
    const cost = distance(wanted, candidate.toLowerCase());
    if (best === undefined || cost < best.cost) best = { candidate, cost };
  }
  return best !== undefined && best.cost <= most ? best.candidate : undefined;
};

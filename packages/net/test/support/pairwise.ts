/** Rows in which every two values of different factors meet at least once: far fewer than all combinations. */
export type Factors = Readonly<Record<string, readonly unknown[]>>;
export type RowOf<F extends Factors> = { readonly [K in keyof F]: F[K][number] };

/** Each row takes, value by value, what covers most pairs that have not met yet. The same factors always give the same rows. */
export function pairwise<F extends Factors>(factors: F): RowOf<F>[] {
  const names = Object.keys(factors) as (keyof F & string)[];
  const open = new Set<string>();
  const key = (a: string, x: number, b: string, y: number): string =>
    a < b ? `${a}${x} ${b}${y}` : `${b}${y} ${a}${x}`;
  for (const [i, a] of names.entries()) {
    for (const b of names.slice(i + 1)) {
      for (const x of factors[a]!.keys()) for (const y of factors[b]!.keys()) open.add(key(a, x, b, y));
    }
  }
  const rows: RowOf<F>[] = [];
  while (open.size > 0) {
    const chosen = new Map<string, number>();
    // Begins with a pair that is still open, so that every row brings something.
    const [first] = open;
    for (const part of first!.split(' ')) {
      const name = names.find((candidate) => part.startsWith(candidate) && /^\d+$/.test(part.slice(candidate.length)))!;
      chosen.set(name, Number(part.slice(name.length)));
    }
    for (const name of names) {
      if (chosen.has(name)) continue;
      const gain = (value: number): number =>
        [...chosen].filter(([other, taken]) => open.has(key(name, value, other, taken))).length;
      let best = rows.length % factors[name]!.length;
      for (const value of factors[name]!.keys()) if (gain(value) > gain(best)) best = value;
      chosen.set(name, best);
    }
    const all = [...chosen];
    for (const [a, x] of all) for (const [b, y] of all) open.delete(key(a, x, b, y));
    rows.push(Object.fromEntries(all.map(([name, value]) => [name, factors[name]![value]])) as RowOf<F>);
  }
  return rows;
}

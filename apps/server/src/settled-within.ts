export type Outcome<T> =
  | { readonly kind: 'done'; readonly value: T }
  | { readonly kind: 'failed'; readonly error: unknown }
  /** Not settled yet; the work continues. */
  | { readonly kind: 'late' };

/** How `work` ended, if it ended within `limitMs`. Never rejects. */
export const settledWithin = async <T>(work: Promise<T>, limitMs: number): Promise<Outcome<T>> => {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<Outcome<T>>((resolve) => {
    timer = setTimeout(resolve, Math.max(0, limitMs), { kind: 'late' });
  });
  const settled = work.then(
    (value): Outcome<T> => ({ kind: 'done', value }),
    (error: unknown): Outcome<T> => ({ kind: 'failed', error }),
  );
  const outcome = await Promise.race([settled, limit]);
  clearTimeout(timer);
  return outcome;
};

/** Bounds work that is done side by side: what is too much waits, first come first served. */
export class AtOnce {
  readonly #limit: number;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running < this.#limit) this.#running += 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      // The place goes from hand to hand, so that nobody who comes now overtakes.
      const next = this.#waiting.shift();
      if (next === undefined) this.#running -= 1;
      else next();
    }
  }
}

/** Does `work` for each item, `limit` at once; the first failure ends it, once what runs has ended. */
export const forEachAtOnce = async <T>(
  items: Iterable<T>,
  limit: number,
  work: (item: T) => Promise<void>,
): Promise<void> => {
  const rest = items[Symbol.iterator]();
  let failed = false;
  const worker = async () => {
    for (let next = rest.next(); !failed && next.done !== true; next = rest.next()) {
      await work(next.value).catch((error: unknown) => {
        failed = true;
        throw error;
      });
    }
  };
  const workers = await Promise.allSettled(Array.from({ length: limit }, worker));
  for (const result of workers) if (result.status === 'rejected') throw result.reason;
};

/** Lets everybody else have the event loop. */
export const breathe = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

export interface Deferred<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: Error) => void;
}

/** `Promise.withResolvers`, which Node 20 does not have. */
export const deferred = <T>(): Deferred<T> => {
  let resolve!: (value: T) => void;
  let reject!: (error: Error) => void;
  const promise = new Promise<T>((onValue, onError) => {
    resolve = onValue;
    reject = onError;
  });
  return { promise, resolve, reject };
};

/**
 * The value of `work`, or a rejection with `message` after `timeoutMs`. The work itself is not stopped.
 */
export const within = async <T>(work: Promise<T>, timeoutMs: number, message: string): Promise<T> => {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(message)), timeoutMs);
  });
  try {
    return await Promise.race([work, limit]);
  } finally {
    clearTimeout(timer);
  }
};

/** The value of `work`, or a rejection once `signal` is aborted. The work itself is not stopped. */
export const unlessAborted = async <T>(work: Promise<T>, signal: AbortSignal): Promise<T> => {
  signal.throwIfAborted();
  let abort: () => void = () => undefined;
  const aborted = new Promise<never>((_, reject) => {
    abort = () => {
      reject(new Error('stopped meanwhile', { cause: signal.reason }));
    };
    signal.addEventListener('abort', abort, { once: true });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
};

export type Settled<T> =
  | { readonly kind: 'done'; readonly value: T }
  | { readonly kind: 'failed'; readonly error: unknown }
  /** Not settled yet; the work continues. */
  | { readonly kind: 'late' };

/** How `work` ended, if it ended within `limitMs`. Never rejects. */
export const settledWithin = async <T>(work: Promise<T>, limitMs: number): Promise<Settled<T>> => {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<Settled<T>>((resolve) => {
    timer = setTimeout(resolve, Math.max(0, limitMs), { kind: 'late' });
  });
  const settled = work.then(
    (value): Settled<T> => ({ kind: 'done', value }),
    (error: unknown): Settled<T> => ({ kind: 'failed', error }),
  );
  const outcome = await Promise.race([settled, limit]);
  clearTimeout(timer);
  return outcome;
};

/** Work that is done once: whoever asks shares it, and only after a failure it is begun again for the next who asks. */
export const untilDone = <T>(work: () => Promise<T>): (() => Promise<T>) => {
  let attempt: Promise<T> | undefined;
  return () => {
    attempt ??= work().catch((error: unknown) => {
      attempt = undefined;
      throw error;
    });
    return attempt;
  };
};

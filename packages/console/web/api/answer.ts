/** A page's question to the service: asked at once, asked again when it grows old, and answered in the end, if only by a failure. */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';

import { asFailure } from './failure.ts';
import type { Failure } from './failure.ts';

export interface Answer<T> {
  /** The last answer, also while a failure is told. */
  readonly value: T | undefined;
  readonly failure: Failure | undefined;
  /** Whether it is asked right now. */
  readonly asking: boolean;
  readonly ask: () => void;
}

/** After a failure it is asked again by itself, less and less often. */
const AGAIN_MS = [2000, 4000, 8000, 15_000, 30_000];

/**
 * @param key the question itself: another key is another question, whose predecessor is given up
 * @param every milliseconds after which an answer is old; 0: never
 */
export const useAnswer = <T>(key: string, load: (signal: AbortSignal) => Promise<T>, every = 0): Answer<T> => {
  const [state, set] = useState<{ key: string; value?: T; failure?: Failure; asking: boolean }>({ key, asking: true });
  const [turn, setTurn] = useState(0);
  const loading = useRef(load);
  loading.current = load;
  const failures = useRef(0);
  useEffect(() => {
    const gone = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const later = (ms: number): void => {
      if (ms > 0) timer = setTimeout(() => setTurn((last) => last + 1), document.hidden ? Math.max(ms, 15_000) : ms);
    };
    set((last) => (last.key === key ? { ...last, asking: true } : { key, asking: true }));
    loading.current(gone.signal).then(
      (value) => {
        if (gone.signal.aborted) return;
        failures.current = 0;
        set({ key, value, asking: false });
        later(every);
      },
      (thrown: unknown) => {
        if (gone.signal.aborted) return;
        const failure = asFailure(thrown);
        set((last) => ({ ...last, key, failure, asking: false }));
        const isPassing = failure.status === 0 || failure.status === 429 || failure.status >= 500;
        if (isPassing) later(AGAIN_MS[Math.min(failures.current++, AGAIN_MS.length - 1)] ?? 0);
      },
    );
    return () => {
      gone.abort();
      clearTimeout(timer);
    };
  }, [key, turn, every]);
  const ask = useCallback(() => setTurn((last) => last + 1), []);
  const own = state.key === key;
  return {
    value: own ? state.value : undefined,
    failure: own ? state.failure : undefined,
    asking: own ? state.asking : true,
    ask,
  };
};

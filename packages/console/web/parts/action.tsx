import { useState } from 'preact/hooks';

import { asFailure } from '../api/failure.ts';
import type { Failure } from '../api/failure.ts';

export interface Action {
  /** Does it, unless it is being done. */
  readonly run: (what: () => Promise<unknown>) => void;
  readonly isRunning: boolean;
  readonly failure: Failure | undefined;
  readonly clear: () => void;
}

/** Something the person does, once at a time, whose failure is told. */
export const useAction = (): Action => {
  const [isRunning, setRunning] = useState(false);
  const [failure, setFailure] = useState<Failure>();
  const run = (what: () => Promise<unknown>): void => {
    if (isRunning) return;
    setRunning(true);
    setFailure(undefined);
    what().then(
      () => setRunning(false),
      (thrown: unknown) => {
        setRunning(false);
        setFailure(asFailure(thrown));
      },
    );
  };
  return { run, isRunning, failure, clear: () => setFailure(undefined) };
};

import { useEffect, useRef, useState } from 'preact/hooks';

import { follow } from '../api/live.ts';
import { shown } from '../api/transfers.ts';
import type { Progress, Transfer } from '../api/transfers.ts';

interface Told {
  readonly transfer?: (one: Transfer) => void;
  readonly progress?: (all: readonly Progress[]) => void;
  /** What was known is no longer sure: ask anew. */
  readonly reset?: () => void;
}

/** Follows the events of all transfers, or of one. @returns whether they come right now */
export const useTransferEvents = (path: string, told: Told): boolean => {
  const [isOpen, setOpen] = useState(false);
  const now = useRef(told);
  now.current = told;
  useEffect(() => {
    const gone = new AbortController();
    const event = (name: string, data: unknown): void => {
      if (name === 'transfer') now.current.transfer?.(shown(data));
      else if (name === 'progress') now.current.progress?.(data as readonly Progress[]);
      else if (name === 'reset') now.current.reset?.();
    };
    follow(path, { event, state: setOpen }, gone.signal);
    return () => gone.abort();
  }, [path]);
  return isOpen;
};

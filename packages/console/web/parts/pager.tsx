import { useRef } from 'preact/hooks';

import { number } from '../texts/format.ts';
import { texts } from '../texts/index.ts';

/** Pages beyond this record are asked for by key, as the interface has it. */
const BY_NUMBER = 10_000;

export interface Paging {
  /** From 0. */
  readonly page: number;
  /** As the interface asks for this page; undefined: it can be reached from the one before it alone. */
  readonly ask: { readonly page: number } | { readonly after: string } | undefined;
  /** Takes the key of the page that follows this one. */
  readonly learn: (next: string | null) => void;
}

/**
 * Which page is asked for, and how. Keys of the pages that were seen are kept: beyond some depth a page follows from the one before it.
 * @param given of the address
 * @param addressOf the address of a page
 */
export const usePaging = (given: string | undefined, size: number, addressOf: (page: number) => string): Paging => {
  const keys = useRef(new Map<string, string>());
  const wanted = Number(given ?? 0);
  const page = Number.isSafeInteger(wanted) && wanted > 0 ? wanted : 0;
  const after = keys.current.get(addressOf(page));
  return {
    page,
    ask: (page + 1) * size <= BY_NUMBER ? { page } : after === undefined ? undefined : { after },
    learn: (next) => {
      if (next !== null) keys.current.set(addressOf(page + 1), next);
    },
  };
};

interface PagerProps {
  readonly page: number;
  readonly found: string;
  readonly hasNext: boolean;
  readonly back: string;
  readonly forth: string;
  readonly go: (page: number) => void;
}

/** How many there are, and the pages beside this one. */
export const Pager = ({ page, found, hasNext, back, forth, go }: PagerProps) => {
  const word = texts.value.common.page(number(page + 1));
  return (
    <nav class="row spread" aria-label={word}>
      <span class="quiet">{found}</span>
      <span class="row">
        <button type="button" class="button" disabled={page === 0} onClick={() => go(page - 1)}>
          {back}
        </button>
        <span>{word}</span>
        <button type="button" class="button" disabled={!hasNext} onClick={() => go(page + 1)}>
          {forth}
        </button>
      </span>
    </nav>
  );
};

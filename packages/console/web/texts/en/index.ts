/** Every word of the pages, a file for each page; English says which there are, the other languages have the same (`Texts`). */
import type { audit } from './audit.ts';
import type { certificates } from './certificates.ts';
import type { cluster } from './cluster.ts';
import type { figures } from './figures.ts';
import type { license } from './license.ts';
import type { now } from './now.ts';
import type { record } from './record.ts';
import type { send } from './send.ts';
import type { trace } from './trace.ts';
import type { transfers } from './transfers.ts';
import type { words } from './words.ts';

type English = typeof words & {
  readonly audit: typeof audit;
  readonly certificates: typeof certificates;
  readonly cluster: typeof cluster;
  readonly figures: typeof figures;
  readonly license: typeof license;
  readonly now: typeof now;
  readonly record: typeof record;
  readonly send: typeof send;
  readonly trace: typeof trace;
  readonly transfers: typeof transfers;
};

/** The same with any words. */
export type Words<T> = T extends string
  ? string
  : T extends (...given: infer G) => string
    ? (...given: G) => string
    : { readonly [K in keyof T]: Words<T[K]> };
export type Texts = Words<English>;

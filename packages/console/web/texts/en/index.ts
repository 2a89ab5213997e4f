/** Every word of the pages in English, a file for each page; the other languages have the same keys (`Texts`). */
import { audit } from './audit.ts';
import { certificates } from './certificates.ts';
import { cluster } from './cluster.ts';
import { figures } from './figures.ts';
import { license } from './license.ts';
import { now } from './now.ts';
import { record } from './record.ts';
import { send } from './send.ts';
import { trace } from './trace.ts';
import { transfers } from './transfers.ts';
import { words } from './words.ts';

export const en = {
  ...words,
  audit,
  certificates,
  cluster,
  figures,
  license,
  now,
  record,
  send,
  trace,
  transfers,
} as const;

/** The same with any words. */
export type Words<T> = T extends string
  ? string
  : T extends (...given: infer G) => string
    ? (...given: G) => string
    : { readonly [K in keyof T]: Words<T[K]> };
export type Texts = Words<typeof en>;

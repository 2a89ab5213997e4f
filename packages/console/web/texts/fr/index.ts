/** Terms as the French specification of PeSIT has them (docs/glossary.md). */
import type { Texts } from '../en/index.ts';
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

export const fr: Texts = {
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
};

import type { SingleArticleStyle } from '@pesit-node/protocol';

import { freeMessageText } from './texts.js';

/** Properties that sessions have shown of the other side, by the names of the specification, whichever end this node was. */
export interface PartnerHabits {
  /** Marker of its pre-connection; null: it came without. */
  readonly preconnection?: 'PESIT' | 'CFTPSITX' | null;
  /** PI 6 as it came: Axway products set bits beside the version. */
  readonly version?: number;
  /** PI 99 of its last CONNECT or ACONNECT, as a record shows it; null: none. */
  readonly freeMessage?: string | null;
  /** PI 25 of its last CREATE or SELECT, or of its last answer to one. */
  readonly maxEntitySize?: number;
  /** How it writes single articles (ID.SRC = 1), when it does. */
  readonly singleArticle?: SingleArticleStyle;
}

/** Capability flags of Axway products in PI 6 (`pesit-e.md` §2), which send up to 512 bytes in PI 99. */
const AXWAY_FLAGS = 0xc0;
const MAX_FREE_MESSAGE = 512;

/** PI 99 of a connection, for people; null: none, or blanks. */
export const shownFreeMessage = (freeMessage: Buffer | undefined): string | null => {
  const text = freeMessageText(freeMessage?.subarray(0, MAX_FREE_MESSAGE) ?? null) ?? '';
  return text === '' ? null : text;
};

/** The product that these habits are known of; null when they say nothing. */
export const productOf = ({ preconnection, version = 0, singleArticle }: PartnerHabits): string | null => {
  if (preconnection === 'CFTPSITX') return 'Transfer CFT';
  if ((version & AXWAY_FLAGS) !== 0) return 'an Axway product';
  if (singleArticle === 'plain') return 'Connect:Express';
  return singleArticle === 'prefixed' ? 'PeSIT Wizard or Connect:Express' : null;
};

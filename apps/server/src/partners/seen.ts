import type { ConnectIndication } from '@pesit-node/net';
import type { Dialect, SingleArticleStyle } from '@pesit-node/protocol';

import { freeMessageText } from '../transfers/texts.js';

/** What the last sessions of a partner have shown of it, by the names of the specification. */
export interface PartnerSeen {
  readonly listener?: string;
  readonly remoteAddress?: string;
  readonly dialect?: Dialect;
  /** Marker of its pre-connection; null: it came without. */
  readonly preconnection?: 'PESIT' | 'CFTPSITX' | null;
  /** PI 6 as it came: Axway products set bits beside the version. */
  readonly version?: number;
  /** PI 7 as it asked; null: no sync points. */
  readonly syncPoints?: { readonly intervalKb: number; readonly window: number } | null;
  /** PI 23 and PI 1 as it asked. */
  readonly resynchronisation?: boolean;
  readonly crc?: boolean;
  /** PI 22: 0 write, 1 read, 2 both. */
  readonly accessType?: number;
  /** PI 99 of its last CONNECT, as a record shows it; null: none. */
  readonly freeMessage?: string | null;
  /** PI 25 of its last CREATE or SELECT. */
  readonly maxEntitySize?: number;
  /** How it writes single articles (ID.SRC = 1), when it does. */
  readonly singleArticle?: SingleArticleStyle;
}

/** Axway products send up to 512 bytes (pesit-e.md §2). */
const MAX_FREE_MESSAGE = 512;
/** Capability flags of Axway products in PI 6 (pesit-e.md §2). */
const AXWAY_FLAGS = 0xc0;

/** What a CONNECT shows. */
export const seenIn = (
  { parameters, dialect, preconnection }: ConnectIndication,
  where: { readonly listener: string; readonly remoteAddress: string },
): PartnerSeen => ({
  ...where,
  dialect,
  preconnection: preconnection?.marker ?? null,
  version: parameters.version ?? 0,
  syncPoints: parameters.syncPoints ?? null,
  resynchronisation: parameters.resynchronisation === 1,
  crc: parameters.crc === 1,
  accessType: parameters.accessType ?? 0,
  freeMessage: shown(parameters.freeMessage),
});

const shown = (freeMessage: Buffer | undefined): string | null => {
  const text = freeMessageText(freeMessage?.subarray(0, MAX_FREE_MESSAGE) ?? null);
  return text === '' ? null : text;
};

/** The product that these habits are known of; undefined when they say nothing. */
export const productOf = ({ preconnection, version = 0, singleArticle }: PartnerSeen): string | undefined => {
  if (preconnection === 'CFTPSITX') return 'Transfer CFT';
  if ((version & AXWAY_FLAGS) !== 0) return 'an Axway product';
  if (singleArticle === 'plain') return 'Connect:Express';
  return singleArticle === 'prefixed' ? 'PeSIT Wizard or Connect:Express' : undefined;
};

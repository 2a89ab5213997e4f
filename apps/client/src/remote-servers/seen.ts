import type { Parameters } from '@pesit-node/protocol';
import { showBytes } from '@pesit-node/service';

/** What the last sessions have shown of a server, beside what was negotiated. */
export interface ServerSeen {
  /** PI 6 as it came: Axway products set bits beside the version. */
  readonly version?: number;
  /** PI 99 of its last ACONNECT, as a record shows it; null: none. */
  readonly freeMessage?: string | null;
  /** PI 25 as it answered to the last file. */
  readonly maxEntitySize?: number;
}

/** Capability flags of Axway products in PI 6 (pesit-e.md §2), who send up to 512 bytes in PI 99. */
const AXWAY_FLAGS = 0xc0;
const MAX_FREE_MESSAGE = 512;

/** What an ACONNECT shows. */
export const seenIn = ({ version = 0, freeMessage }: Parameters): ServerSeen => {
  const text = showBytes(freeMessage?.subarray(0, MAX_FREE_MESSAGE) ?? null)?.trimEnd() ?? '';
  return { version, freeMessage: text === '' ? null : text };
};

/** The product that these habits are known of; null when they say nothing. */
export const productOf = ({ version = 0 }: ServerSeen, singleArticle: 'plain' | 'prefixed' | null): string | null => {
  if ((version & AXWAY_FLAGS) !== 0) return 'an Axway product';
  if (singleArticle === null) return null;
  return singleArticle === 'plain' ? 'Connect:Express' : 'PeSIT Wizard or Connect:Express';
};

import type { ConnectIndication } from '@pesit-node/net';
import type { Dialect } from '@pesit-node/protocol';
import { shownFreeMessage } from '@pesit-node/transfers';
import type { PartnerHabits } from '@pesit-node/transfers';

/** Properties of a partner that its last sessions have shown, by the names of the specification. */
export interface PartnerSeen extends PartnerHabits {
  readonly listener?: string;
  readonly remoteAddress?: string;
  readonly dialect?: Dialect;
  /** PI 7 as it asked; null: no sync points. */
  readonly syncPoints?: { readonly intervalKb: number; readonly window: number } | null;
  /** PI 23 and PI 1 as it asked. */
  readonly resynchronisation?: boolean;
  readonly crc?: boolean;
  /** PI 22: 0 write, 1 read, 2 both. */
  readonly accessType?: number;
}

/** Properties that a CONNECT shows. */
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
  freeMessage: shownFreeMessage(parameters.freeMessage),
});

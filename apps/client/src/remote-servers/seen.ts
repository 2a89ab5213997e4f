import type { Parameters } from '@pesit-node/protocol';
import { shownFreeMessage } from '@pesit-node/transfers';
import type { PartnerHabits } from '@pesit-node/transfers';

/** Properties of a server that the last sessions have shown, beside the negotiated ones. */
export type ServerSeen = Pick<PartnerHabits, 'version' | 'freeMessage' | 'maxEntitySize'>;

/** Properties that an ACONNECT shows. */
export const seenIn = ({ version = 0, freeMessage }: Parameters): ServerSeen => ({
  version,
  freeMessage: shownFreeMessage(freeMessage),
});

import type { Parameters } from '@pesit-node/protocol';
import { shownFreeMessage } from '@pesit-node/transfers';
import type { PartnerHabits } from '@pesit-node/transfers';

/** What the last sessions have shown of a server, beside what was negotiated. */
export type ServerSeen = Pick<PartnerHabits, 'version' | 'freeMessage' | 'maxEntitySize'>;

/** What an ACONNECT shows. */
export const seenIn = ({ version = 0, freeMessage }: Parameters): ServerSeen => ({
  version,
  freeMessage: shownFreeMessage(freeMessage),
});

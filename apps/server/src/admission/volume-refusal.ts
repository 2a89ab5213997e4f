import type { SessionRefusal } from '@pesit-node/license';
import type { PesitError } from '@pesit-node/protocol';
import type { VolumeFault } from '@pesit-node/storage';

import { refusal } from '../exchange/refusal.js';

const LATER = 'the storage of this node is not available for now: try again later';

/** Why no session may begin, or a session has to end, for a volume that this pod cannot use: another pod may have it. */
export const sessionRefusal = ({ reason }: VolumeFault): SessionRefusal => ({
  diagnostic: '3-322',
  text: `no files can be taken here: ${reason}`,
  peerText: LATER,
});

/** The same for the session that has to end. */
export const sessionEnd = (fault: VolumeFault): PesitError => {
  const { diagnostic, text, peerText } = sessionRefusal(fault);
  return refusal(diagnostic, text, peerText);
};

/** The same for a file of a session that is open. */
export const fileRefusal = ({ reason }: VolumeFault): PesitError =>
  refusal('2-201', `no files can be taken here: ${reason}`, LATER);

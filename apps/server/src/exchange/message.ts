import type { MessageAnswer, Parameters } from '@pesit-node/protocol';

import { operationsOf } from '../partners/fields.js';
import type { Admitting, Records } from './parts.js';
import { startOf } from './proven-partner.js';
import type { ProvenPartner } from './proven-partner.js';
import { asking, refusal } from './refusal.js';

/** PI 11 of a message (§4.5.11). */
const MESSAGE = 0xffff;
/** PI 14: a reply is wanted. */
const REPLY_EXPECTED = 1;

/**
 * A message of a partner: kept as a record, with its text. The reply, where one is asked for, says under which number.
 * @throws PesitError 2-226 when the partner may not send, 2-201 when the database is away, or why the session has to end
 */
export const acceptMessage = async (
  proven: ProvenPartner,
  { partners, journal }: Pick<Admitting, 'partners'> & Pick<Records, 'journal'>,
  parameters: Parameters,
): Promise<{ readonly id: number; readonly answer: MessageAnswer }> => {
  const { partner, stands } = proven;
  const now = stands(await asking('2-201', () => partners.get(partner.partner_id)));
  if (!operationsOf(now.access_type).includes('WRITE')) {
    throw refusal(
      '2-226',
      `${partner.partner_id} may not send messages (allowedOperations): add WRITE`,
      'this partner may not send messages',
    );
  }
  const { fileIdentifier, message = Buffer.alloc(0), dataCode, attributesWanted } = parameters;
  const id = await journal.message(startOf(proven, 'RECEIVE', parameters), {
    fileType: fileIdentifier?.fileType ?? MESSAGE,
    // A view of the received buffer: copied, for the record outlives it.
    text: Buffer.from(message),
    dataCode,
  });
  return { id, answer: attributesWanted === REPLY_EXPECTED ? { reply: Buffer.from(`received as ${id}`) } : {} };
};

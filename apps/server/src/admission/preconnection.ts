import { readable } from '@pesit-node/protocol';
import type { Preconnection } from '@pesit-node/net';

import { isPlausible } from './plausible.js';
import type { PartnerRow } from '../partners/fields.js';
import { addressProblem } from './addresses.js';
import { mayUseListener } from './grants.js';
import type { Admitting, Observing } from '../exchange/parts.js';
import { asking, refusal } from '../exchange/refusal.js';

/** Longest identifier and password of a pre-connection (§3.8.2). */
const LENGTH = 8;

/**
 * The answer to a pre-connection: ACK0 when this resolves, NAK0 when it rejects. An identifier that no partner is configured
 * with is acknowledged: who it is shows in the CONNECT, and whoever has to come by a pre-connection is refused there.
 * @throws PesitError 3-304, or 3-322 when nobody can be served, or the password not looked at, for now
 */
export const admitPreconnection = async (
  { config, partners, passwords }: Admitting,
  { traces }: Pick<Observing, 'traces'>,
  preconnection: Preconnection,
  where: Readonly<Record<'listener' | 'remoteAddress', string>>,
): Promise<void> => {
  const { identifier, password } = preconnection;
  const named = await asking('3-322', async () =>
    isPlausible(identifier, LENGTH) ? partners.withPreconnection(identifier) : [],
  );
  const known = named.filter((partner) => mayUseListener(partner, where.listener, config['access.default']));
  if (known.length === 0) return;
  const here = known.filter((partner) => addressProblem(partner, where.remoteAddress) === undefined);
  const proofs = await Promise.all(here.map((partner) => proves(passwords, partner, password, where.remoteAddress)));
  if (proofs.includes(true)) return;
  for (const partner of known) traces.preconnectionRefused(partner, preconnection, where);
  const [first] = here.length === 0 ? known : [];
  const problem = first && addressProblem(first, where.remoteAddress);
  throw refusal(
    '3-304',
    problem ?? `the pre-connection of ${JSON.stringify(readable(identifier, LENGTH))} has a wrong password`,
  );
};

/** Whether the session of a partner came by the pre-connection that is asked of it, if one is. */
export const hasPreconnected = async (
  passwords: Admitting['passwords'],
  partner: PartnerRow,
  preconnection: Preconnection | undefined,
  remoteAddress: string,
): Promise<boolean> => {
  if (partner.preconnect_id === null) return true;
  if (preconnection?.identifier !== partner.preconnect_id) return false;
  return proves(passwords, partner, preconnection.password, remoteAddress);
};

const proves = async (
  passwords: Admitting['passwords'],
  { partner_id: partnerId, preconnect_password_hash: stored }: PartnerRow,
  password: string,
  remoteAddress: string,
): Promise<boolean> =>
  stored === null ||
  passwords.proves({ partnerId, remoteAddress, column: 'preconnect_password_hash', password, stored });

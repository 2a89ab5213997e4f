import type { TransportSecurity } from '@pesit-node/net';
import type { PesitError } from '@pesit-node/protocol';
import type { Config } from '@pesit-node/service';

import { operationsOf } from '../partners/fields.js';
import type { PartnerStanding } from '../partners/fields.js';
import { addressProblem } from './addresses.js';
import { tlsProblem } from './certificate.js';
import { mayUseListener } from './grants.js';
import { refusal } from '../exchange/refusal.js';

/** On what a session was opened. */
export interface Login {
  /** As it was then. */
  readonly partner: PartnerStanding;
  /** Identifier of the listener. */
  readonly listener: string;
  /** Address of the partner. */
  readonly remoteAddress: string;
  /** The terms of its connection. */
  readonly security: TransportSecurity | undefined;
  /** Whether its certificate was revoked since the handshake, in words. @throws errors of the database */
  readonly revokedSince: () => Promise<string | undefined>;
  /** `access.default`, as it is now. */
  readonly byDefault: () => Config<'server'>['access.default'];
}

const CONNECT_AGAIN = 'the rights of this partner were changed: connect again';
const LATER = 'this partner is not served for now: try again later';

/**
 * Why a session has to end for what was changed since its CONNECT, if it has to (design §4): 3-304, as it would not be let in
 * like this now, or has to prove itself anew; 3-322 where the partner is disabled and nothing else, which may pass.
 * @param now undefined: the partner no longer exists
 */
export const revocationOf = (
  { partner, listener, remoteAddress, security, byDefault }: Login,
  now: PartnerStanding | undefined,
): PesitError | undefined => {
  const id = partner.partner_id;
  if (now === undefined) return refusal('3-304', `the partner ${id} was deleted`, CONNECT_AGAIN);
  if (now.credentials !== partner.credentials) return refusal('3-304', otherCredentials(partner, now), CONNECT_AGAIN);
  if (!mayUseListener(now, listener, byDefault())) {
    const text = `the partner ${id} is no longer granted the listener ${listener} (allowedListeners)`;
    return refusal('3-304', text, CONNECT_AGAIN);
  }
  const problem = addressProblem(now, remoteAddress) ?? tlsProblem(now, security);
  if (problem !== undefined) return refusal('3-304', problem, CONNECT_AGAIN);
  return now.enabled ? undefined : refusal('3-322', `the partner ${id} was disabled`, LATER);
};

/** @param transfer that comes to its end first */
export const revocationText = (transfer: object | undefined): string =>
  transfer === undefined ? 'session has to end' : 'session has to end after its file';

const otherCredentials = ({ partner_id: id, access_type }: PartnerStanding, now: PartnerStanding): string => {
  const left = operationsOf(now.access_type);
  const lost = operationsOf(access_type).filter((operation) => !left.includes(operation));
  return lost.length > 0
    ? `the partner ${id} may no longer ${lost.join(' and ')} (allowedOperations)`
    : `the password, the pre-connection or the allowedOperations of ${id} were changed, or it was deleted and created anew`;
};

import type { ConnectIndication, ServerConnection } from '@pesit-node/net';
import { adviseOn, PesitError, readable } from '@pesit-node/protocol';

import { isPlausible } from './plausible.js';
import type { ListenerRow } from '../listeners/fields.js';
import type { PartnerRow } from '../partners/fields.js';
import { addressProblem } from './addresses.js';
import { isBound, tlsProblem } from './certificate.js';
import { mayUseListener } from './grants.js';
import type { Admitting } from '../exchange/parts.js';
import { accessControlOf, changePassword, repeatsChange } from './password-change.js';
import type { AccessControl } from './password-change.js';
import type { ShownPassword } from './partner-passwords.js';
import { hasPreconnected } from './preconnection.js';
import { asking, refusal } from '../exchange/refusal.js';
import type { Trial } from '../trials/trials.js';

/** The same for a wrong password and a disabled partner: never say which (pesit-e.md §9). */
const NOT_AUTHORISED = adviseOn('3-304');

interface Login {
  readonly partner: PartnerRow;
  readonly access: AccessControl;
  /** The password was shown, and is the one that counts now. */
  readonly isRight: boolean;
}

type Connection = Pick<ServerConnection, 'remoteAddress' | 'over' | 'takePlace' | 'security'>;

/** Questions about who says to be a partner, beside PI 3 and PI 4. */
interface Proof {
  /** Why the connection is not that of the partner; undefined: nothing speaks against it. */
  readonly problem: (partner: PartnerRow) => string | undefined;
  readonly proves: (shown: ShownPassword) => Promise<boolean>;
  /** In words: the password is wrong. */
  readonly whenWrong: (partnerId: string) => string;
  readonly hasPreconnected: (partner: PartnerRow) => Promise<boolean>;
}

/** Called with the partner that PI 3 names, before anything is proven. */
type Named = (partner: PartnerRow) => void;

/** @throws PesitError 3-301, 3-304, or 3-322 when nobody can be served, or the password not looked at, for now */
const prove = async (
  { config, partners, passwords, admission }: Admitting,
  listener: ListenerRow,
  { parameters }: ConnectIndication,
  connection: Connection,
  named: Named,
  proof: Proof,
): Promise<Login> => {
  const refused = admission.refusal;
  if (refused !== undefined) throw refusal(refused.diagnostic, refused.text, refused.peerText);
  const { requester = '', server = '', accessControl = '' } = parameters;
  const found = await asking('3-322', async () => (isPlausible(requester, 24) ? partners.get(requester) : undefined));
  if (found !== undefined) named(found);
  // On a listener that is not granted to it a partner does not exist, whatever its password.
  const isGranted = found !== undefined && mayUseListener(found, listener.server_id, config['access.default']);
  const partner = isGranted ? found : undefined;
  if (listener.strict_server_id && server !== listener.server_id) {
    throw refusal(
      '3-301',
      `the partner calls ${JSON.stringify(readable(server, 24))} (PI 4), this listener is ${listener.server_id} and strict: correct the partner's server identifier, or set strictServerId to false`,
      `this server is not ${JSON.stringify(readable(server, 24))} (PI 4)`,
    );
  }
  if (partner === undefined) {
    throw refusal(
      '3-301',
      found === undefined
        ? `the partner ${JSON.stringify(readable(requester, 24))} (PI 3) is not configured: create it, or correct the identifier on the other side`
        : `the partner ${found.partner_id} is not granted the listener ${listener.server_id}: name it in its allowedListeners, or let it connect to another one`,
      'requester identification unknown (PI 3)',
    );
  }
  const problem = proof.problem(partner);
  if (problem !== undefined) throw refusal('3-304', problem, NOT_AUTHORISED);
  const access = accessControlOf(accessControl);
  const { password } = access;
  const id = partner.partner_id;
  const { remoteAddress } = connection;
  const waits = (): boolean => !connection.over;
  const stored = partner.password_hash;
  const shown = { partnerId: id, remoteAddress, column: 'password_hash', password, stored, waits } as const;
  // The codes tell an unknown partner from a wrong password (§4.4.3): no time is spent to hide the difference.
  // Bound to a certificate that was verified on this connection, it has proved itself (pesit-e.md §10).
  const isProven = password === '' && isBound(partner);
  const isRight = password !== '' && (await proof.proves(shown));
  const isRepeated = !isRight && password !== '' && (await repeatsChange({ passwords }, partner, access, shown));
  if (!isProven && !isRight && !isRepeated) {
    throw refusal(
      '3-304',
      password === ''
        ? `${id} sent no password (PI 5), and without one only a partner connects that is bound to a certificate: configure it on the other side`
        : proof.whenWrong(id),
      NOT_AUTHORISED,
    );
  }
  if (!(await proof.hasPreconnected(partner))) {
    throw refusal(
      '3-304',
      `${partner.partner_id} did not come by the pre-connection ${partner.preconnect_id ?? ''} that is asked of it: correct it on the other side, or set preconnectId to null`,
      NOT_AUTHORISED,
    );
  }
  if (!partner.enabled) throw refusal('3-304', `the partner ${partner.partner_id} is disabled`, NOT_AUTHORISED);
  // One that came by its certificate alone has shown no password that it could change.
  if (isProven && access.next !== '') {
    throw refusal(
      '3-304',
      `${id} asks to change its password (second half of PI 5) without showing it`,
      NOT_AUTHORISED,
    );
  }
  return { partner, access, isRight };
};

/**
 * Who connects: PI 3 names the partner, PI 5 proves it, PI 4 is compared on a strict listener. Takes a place of the
 * listener, and one among the partner's sessions, to be given back when the session ends.
 * @throws PesitError 3-301, 3-304, 3-309, or 3-322 when nobody can be served, or the password not looked at, for now
 */
export const identify = async (
  admitting: Admitting,
  listener: ListenerRow,
  indication: ConnectIndication,
  connection: Connection,
  named: Named,
): Promise<PartnerRow> => {
  const { config, partners, passwords, places, audit } = admitting;
  const { remoteAddress, security } = connection;
  const { partner, access, isRight } = await prove(admitting, listener, indication, connection, named, {
    problem: (row) => addressProblem(row, remoteAddress) ?? tlsProblem(row, security),
    proves: (shown) => passwords.proves(shown),
    whenWrong: (partnerId) => `the password (PI 5) of ${partnerId} is wrong`,
    hasPreconnected: (row) => hasPreconnected(passwords, row, indication.preconnection, remoteAddress),
  });
  const id = partner.partner_id;
  const changing = { config, partners, passwords, audit };
  const admitted = isRight ? await changePassword(changing, partner, access, remoteAddress) : partner;
  connection.takePlace();
  const max = partner.max_connections ?? config['partner.max-connections'];
  const { server_id: serverId, max_connections: most } = listener;
  const owners = [
    { kind: 'listener', id: serverId, limit: most } as const,
    { kind: 'partner', id, limit: max } as const,
  ];
  const full = await asking('3-322', () => places.take(...owners));
  if (full?.kind === 'listener') {
    throw refusal(
      '3-309',
      `the listener ${serverId} takes at most ${most} connections, of all pods together: raise its maxConnections, or let the partner wait`,
      'too many connections: try again later',
    );
  }
  if (full !== undefined) {
    const raise = partner.max_connections === null ? 'set its maxConnections' : 'raise its maxConnections';
    throw refusal(
      '3-309',
      `${id} has ${max} sessions already, on all pods together: ${raise}, or let it wait`,
      'too many connections of this partner: try again later',
    );
  }
  return admitted;
};

/**
 * The same for a login that this node tries itself: it comes from here, and has neither the certificate of the partner nor the
 * password of its pre-connection. Takes no place of the partner, and changes nothing.
 * @throws PesitError as `identify`; the trial keeps it for the operator
 */
export const identifyTrial = async (
  admitting: Admitting,
  listener: ListenerRow,
  trial: Trial,
  indication: ConnectIndication,
  connection: Connection,
  named: Named,
): Promise<PartnerRow> => {
  try {
    const { partner } = await prove(admitting, listener, indication, connection, named, {
      problem: (row) => (connection.security === undefined ? tlsProblem(row, undefined) : undefined),
      proves: (shown) => admitting.passwords.tries(shown),
      whenWrong: (partnerId) =>
        `the password (PI 5) is not that of ${partnerId}: try the right one, or give the partner a new one`,
      hasPreconnected: () => Promise.resolve(true),
    });
    return partner;
  } catch (error) {
    if (error instanceof PesitError) trial.refused = error;
    throw error;
  }
};

import { inOneLine, PesitError } from '@pesit-node/protocol';
import { Collapse } from '@pesit-node/service';
import type { Audit, EventStream } from '@pesit-node/service';

import { SESSION_REFUSED, TRANSFER_ENDED, TRANSFER_REFUSED } from './events.js';

/** Entries in an hour that refused sessions, and transfers that failed, may make each. */
const SESSIONS_PER_HOUR = 60;
const FAILURES_PER_HOUR = 600;

const TEXT = 300;

const reasonOf = (error: unknown): string | undefined =>
  error instanceof PesitError ? inOneLine(error).slice(0, TEXT) : undefined;

/**
 * Notes outcomes of transfers, and refused sessions, from their events.
 * @param which `audit.transfers`; asked each time
 */
export const auditTransfers = (
  events: EventStream,
  audit: Pick<Audit, 'note' | 'include'>,
  which: () => 'all' | 'failures' | 'none',
  now = () => performance.now(),
): void => {
  const sessions = new Collapse({ perHour: SESSIONS_PER_HOUR, now });
  const failures = new Collapse({ perHour: FAILURES_PER_HOUR, now });
  // Strangers whose certificates are refused take no entry from partners that are.
  const handshakes = new Collapse({ perHour: SESSIONS_PER_HOUR, now });
  audit.include(() => [...sessions.due(), ...handshakes.due(), ...failures.due()]);

  events.subscribe(TRANSFER_ENDED, ({ transfer, status, diagnostic, error }) => {
    if (status === undefined || which() === 'none') return;
    const { id, type, direction, peer, name } = transfer;
    const details = { type, direction, peer, name, diagnostic, reason: reasonOf(error) };
    const entry = { action: status.toLowerCase(), objectType: 'transfer', object: String(id), details };
    if (status !== 'COMPLETED') for (const one of failures.take(entry.object, entry)) audit.note(one);
    else if (which() === 'all') audit.note(entry);
  });
  events.subscribe(TRANSFER_REFUSED, ({ type, direction, peer, status, diagnostic, error, counted }) => {
    // One of many that are equal has no record either.
    if (counted || which() === 'none') return;
    const details = { type, direction, peer, diagnostic, reason: reasonOf(error) };
    const entry = { action: status === 'FAILED' ? 'refused' : status.toLowerCase(), objectType: 'transfer', details };
    for (const one of failures.take(`${peer} ${diagnostic ?? ''}`, entry)) audit.note(one);
  });
  events.subscribe(SESSION_REFUSED, ({ session, certificate, facts: { code } }) => {
    if (certificate === undefined) return;
    const { remoteAddress, listener } = session.facts;
    const details = { code, listener, remoteAddress, reason: certificate.slice(0, TEXT) };
    const entry = { action: 'refused', objectType: 'session', details };
    // Whose name a certificate bears says nothing of who comes: one entry for an address.
    for (const one of handshakes.take(`${String(remoteAddress)} ${String(code)}`, entry)) audit.note(one);
  });
  events.subscribe(SESSION_REFUSED, ({ session, diagnostic: told, error, named }) => {
    // A fault of this program is told by its log.
    if (!(error instanceof PesitError)) return;
    // Whose pre-connection was refused was told NAK0, and no diagnostic.
    const diagnostic = told ?? error.diagnostic;
    const { remoteAddress, listener, server } = session.facts;
    const address = typeof remoteAddress === 'string' ? remoteAddress : undefined;
    const object = named ?? (typeof server === 'string' ? server : undefined);
    const details = { diagnostic, listener, remoteAddress: address, reason: reasonOf(error) };
    const entry = { action: 'refused', objectType: 'session', ...(object === undefined ? {} : { object }), details };
    for (const one of sessions.take(`${address ?? ''} ${object ?? ''} ${diagnostic}`, entry)) audit.note(one);
  });
};

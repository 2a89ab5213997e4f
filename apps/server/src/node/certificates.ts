import { Certificates, fetchCrls, followExpiry, LocalAuthority, ownLists } from '@pesit-node/certificates';
import type { Foundation } from '@pesit-node/license';

import type { OpenSessions } from '../admission/open-sessions.js';
import { TicketKeys } from '../certificates/ticket-keys.js';
import { TicketKeyStore } from '../certificates/ticket-key-store.js';
import type { NodeOptions } from './options.js';

/** The stores, the local CA, and what watches over them. Sessions whose certificates a changed truststore revokes are looked for. */
export const createCertificates = (
  { config, logger, health, database: { knex }, secrets, https, storeLookMs, ticketTime }: NodeOptions,
  { metrics, supervisor, periodic, cluster }: Foundation<'server'>,
  sessions: OpenSessions,
) => {
  const certificates = new Certificates({
    ...{ knex, periodic, secrets, lookMs: storeLookMs, own: ownLists(knex) },
    hints: {
      tell: () => cluster.events.tell('certificates'),
      subscribe: (listener) => cluster.events.subscribe('certificates', listener),
    },
  });
  certificates.on('changed', (kind) => {
    if (kind !== 'truststore') return;
    sessions.lookAtCertificates().catch((error: unknown) => {
      logger.warn({ err: error }, 'could not find out which sessions have certificates that were revoked');
    });
  });
  followExpiry({
    ...{ knex, logger, periodic, health, metrics, supervisor },
    files: () => https?.expiry() ?? Promise.resolve([]),
  });
  fetchCrls({
    ...{ knex, logger, periodic, metrics, supervisor, certificates },
    asLeader: (work) => cluster.asLeader(work),
    refreshMs: () => config['ssl.crl-refresh'] * 60_000,
  });
  const store = new TicketKeyStore(knex, secrets);
  const tickets = new TicketKeys({
    store: { time: ticketTime?.database ?? (() => store.time()), take: (period) => store.take(period) },
    timeout: () => config['ssl.session-timeout'],
    now: ticketTime?.pod,
  });
  const ticketLook = periodic.add(tickets.task);
  return { certificates, authority: new LocalAuthority({ knex, certificates, secrets }), tickets, ticketLook };
};

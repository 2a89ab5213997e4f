import { lookAtEach } from '@pesit-node/certificates';
import type { PesitError } from '@pesit-node/protocol';

import type { PartnerStanding } from '../partners/fields.js';
import type { PartnerStore } from '../partners/store.js';

/** A session whose partner is proven. */
export interface OpenSession {
  readonly partnerId: string;
  /** @param now the partner, read after the session was added; undefined: it no longer exists */
  readonly look: (now: PartnerStanding | undefined) => void;
  /** Ends it after the file that is running, if there is one. */
  readonly leave: (reason: PesitError) => void;
  /** Ends the session if its certificate was revoked. */
  readonly lookAtCertificate: () => Promise<void>;
}

/** The sessions of this process whose partners are proven, so that they end when those are not what they were. */
export class OpenSessions {
  readonly #partners: Pick<PartnerStore, 'standings'>;
  readonly #sessions = new Set<OpenSession>();

  constructor(partners: Pick<PartnerStore, 'standings'>) {
    this.#partners = partners;
  }

  add(session: OpenSession): void {
    this.#sessions.add(session);
  }

  remove(session: OpenSession): void {
    this.#sessions.delete(session);
  }

  /** Ends all: at once, or after the files that are running. */
  leave(reason: PesitError): void {
    for (const session of [...this.#sessions]) session.leave(reason);
  }

  /** A truststore was changed. @throws the first error, when all were looked at: of the database, or a store is missing */
  lookAtCertificates(): Promise<void> {
    return lookAtEach(this.#sessions, (session) => session.lookAtCertificate());
  }

  /** Shows every session its partner as it is now: one statement for all. @throws when the database fails */
  async look(): Promise<void> {
    // A session that comes during the statement may know its partner better than the answer does.
    const sessions = [...this.#sessions];
    if (sessions.length === 0) return;
    const partners = new Set(sessions.map(({ partnerId }) => partnerId));
    const standings = await this.#partners.standings([...partners]);
    const now = new Map(standings.map((standing) => [standing.partner_id, standing]));
    for (const session of sessions) session.look(now.get(session.partnerId));
  }
}

import type { PesitError } from '@pesit-node/protocol';

import type { PartnerStanding } from '../partners/fields.js';
import type { OpenSession } from './open-sessions.js';
import { refusal } from '../exchange/refusal.js';
import { revocationOf } from './revocation.js';
import type { Login } from './revocation.js';

/** Whether a session may stay: its partner as it was at CONNECT, compared with what it is, wherever that is read. */
export class Standing implements OpenSession {
  readonly partnerId: string;
  readonly #login: Login;
  readonly #revoke: (reason: PesitError) => void;
  #now: PartnerStanding;
  #isOver = false;
  #revoked: PesitError | undefined;

  /** @param revoke called once, when the session has to end for what has changed */
  constructor(login: Login, revoke: (reason: PesitError) => void) {
    this.partnerId = login.partner.partner_id;
    this.#login = login;
    this.#now = login.partner;
    this.#revoke = revoke;
  }

  readonly look = (now: PartnerStanding | undefined): void => {
    if (this.#isOver || this.#revoked !== undefined) return;
    if (now !== undefined) this.#now = now;
    const reason = revocationOf(this.#login, now);
    if (reason !== undefined) this.leave(reason);
  };

  /** The partner as it was read last. */
  get now(): PartnerStanding {
    return this.#now;
  }

  readonly leave = (reason: PesitError): void => {
    if (this.#isOver || this.#revoked !== undefined) return;
    this.#revoked = reason;
    this.#revoke(reason);
  };

  readonly lookAtCertificate = async (): Promise<void> => {
    const text = await this.#login.revokedSince();
    if (text === undefined) return;
    this.leave(refusal('3-304', text, 'the certificate of this session was revoked: connect with another one'));
  };

  /** @returns the partner as it is now @throws PesitError 3-304 or 3-322 when the session has to end */
  readonly check = (now: PartnerStanding | undefined): PartnerStanding => {
    this.look(now);
    if (this.#revoked !== undefined) throw this.#revoked;
    if (now === undefined) throw new Error('a session asked for its partner after its end');
    return now;
  };

  /** The session is over: nothing more can end it. */
  end(): void {
    this.#isOver = true;
  }
}

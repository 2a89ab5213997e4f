import { networkOf } from '@pesit-node/net';
import { FailureLimiter, PasswordHashError, UncheckedPasswordError } from '@pesit-node/service';
import type { PasswordVerifier } from '@pesit-node/service';

import type { PasswordRenewals, ProvenPassword } from './password-renewals.js';
import { refusal } from '../exchange/refusal.js';

/** The password that a partner shows, where it comes from, and the hash that it has to fit. */
export interface ShownPassword extends ProvenPassword {
  readonly remoteAddress: string;
  /** Whether the partner still waits. Default: it does. */
  readonly waits?: () => boolean;
}

/** Wrong passwords of one partner from one address before it has to wait, and the time in which they count. */
const WRONG = { limit: 10, windowMs: 10_000 } as const;

const LATER = 'the node cannot check this password now: try again later';

/**
 * Proves partners by their passwords, with bounds that no stranger can turn against one: wrong passwords are throttled for
 * each partner and address, a password that was right lately is let in whatever others do, and whoever is not looked at
 * is told to come again (3-322), never that it is refused.
 */
export class PartnerPasswords {
  readonly #verifier: PasswordVerifier;
  readonly #renewals: Pick<PasswordRenewals, 'offer' | 'hash'>;
  readonly #wrong: FailureLimiter;

  constructor(
    verifier: PasswordVerifier,
    renewals: Pick<PasswordRenewals, 'offer' | 'hash'>,
    wrong = new FailureLimiter(WRONG),
  ) {
    this.#verifier = verifier;
    this.#renewals = renewals;
    this.#wrong = wrong;
  }

  /** The hash of a new password. */
  hash(password: string): Promise<string> {
    return this.#renewals.hash(password);
  }

  /** @throws PesitError 3-322 when the password is not looked at for now */
  proves(shown: ShownPassword): Promise<boolean> {
    return this.#proves(shown, networkOf(shown.remoteAddress));
  }

  /** The same for a login that this node tries itself: wrong ones are throttled too, and never hold the partner back. */
  tries(shown: ShownPassword): Promise<boolean> {
    return this.#proves(shown, 'tests of this node');
  }

  /** @param from where the password comes from: what is wrong from there counts there alone */
  async #proves(shown: ShownPassword, from: string): Promise<boolean> {
    const { partnerId, column, password, stored } = shown;
    const isRight = this.#verifier.knows(password, stored) || (await this.#check(shown, from));
    if (isRight) this.#renewals.offer({ partnerId, column, password, stored });
    return isRight;
  }

  async #check({ partnerId, password, stored, waits = () => true }: ShownPassword, address: string): Promise<boolean> {
    const key = `${partnerId} ${address}`;
    const throttled = (): boolean => this.#wrong.blockedFor(key) > 0;
    // Asked again in its turn: others may have been wrong meanwhile.
    const wanted = (): boolean => waits() && !throttled();
    try {
      if (throttled()) throw new UncheckedPasswordError('it was not tried');
      const valid = await this.#verifier.verify(password, stored, { address, name: partnerId }, wanted);
      if (!valid) this.#wrong.failed(key);
      return valid;
    } catch (error) {
      if (error instanceof PasswordHashError) {
        const text = `the password of ${partnerId} was not checked:  ${error.message}; give ${partnerId} its password anew, or the node the key`;
        throw refusal('3-322', text, LATER);
      }
      if (!(error instanceof UncheckedPasswordError)) throw error;
      const wrong = `${WRONG.limit} wrong passwords of ${partnerId} came from ${address} within ${WRONG.windowMs / 1000} s: correct the password there, or find out who tries`;
      const text = throttled() ? wrong : `${error.message}: find out who connects so often`;
      throw refusal('3-322', `the password of ${partnerId} was not checked:  ${text}`, LATER);
    }
  }
}

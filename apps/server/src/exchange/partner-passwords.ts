import { networkOf } from '@pesit-node/net';
import { FailureLimiter, TooManyChecksError } from '@pesit-node/service';
import type { PasswordVerifier } from '@pesit-node/service';

import { refusal } from './refusal.js';

/** What a partner shows, and where it comes from. */
export interface ShownPassword {
  readonly partnerId: string;
  readonly remoteAddress: string;
  readonly password: string;
  /** The hash that it has to fit. */
  readonly stored: string;
}

/** Wrong passwords of one partner from one address before it has to wait, and the time in which they count. */
const WRONG = { limit: 10, windowMs: 10_000 } as const;

const LATER = 'the node cannot look at this password now: try again later';

/**
 * Proves partners by their passwords, with bounds that no stranger can turn against one: wrong passwords are throttled for
 * each partner and address, a password that was right lately is let in whatever others do, and whoever is not looked at
 * is told to come again (3-322), never that it is refused.
 */
export class PartnerPasswords {
  readonly #verifier: PasswordVerifier;
  readonly #wrong: FailureLimiter;

  constructor(verifier: PasswordVerifier, wrong = new FailureLimiter(WRONG)) {
    this.#verifier = verifier;
    this.#wrong = wrong;
  }

  /** @throws PesitError 3-322 when the password is not looked at for now */
  async proves({ partnerId, remoteAddress, password, stored }: ShownPassword): Promise<boolean> {
    if (this.#verifier.knows(password, stored)) return true;
    const address = networkOf(remoteAddress);
    const key = `${partnerId} ${address}`;
    const seconds = this.#wrong.blockedFor(key);
    if (seconds > 0) {
      throw refusal(
        '3-322',
        `${WRONG.limit} wrong passwords of ${partnerId} came from ${address}: none is looked at for ${seconds} s; correct the password there, or find out who tries`,
        LATER,
      );
    }
    const valid = await this.#check(password, stored, { address, name: partnerId });
    if (!valid) this.#wrong.failed(key);
    return valid;
  }

  async #check(...asked: Parameters<PasswordVerifier['verify']>): Promise<boolean> {
    try {
      return await this.#verifier.verify(...asked);
    } catch (error) {
      if (!(error instanceof TooManyChecksError)) throw error;
      throw refusal('3-322', `${error.message}; find out who connects so often`, LATER);
    }
  }
}

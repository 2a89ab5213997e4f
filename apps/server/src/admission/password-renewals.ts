import type { Logger, PasswordHasher, PasswordVerifier } from '@pesit-node/service';

import type { PartnerStore, PasswordColumn } from '../partners/store.js';

/** A password that was just right, and the stored hash that it fits. */
export interface ProvenPassword {
  readonly partnerId: string;
  readonly column: PasswordColumn;
  readonly password: string;
  readonly stored: string;
}

/** Most that wait: after an upgrade all partners may come at once. Who has no place is renewed at a later login. */
const MAX_WAITING = 1000;

/**
 * Makes stored hashes anew that cost too little, or hang on an older key, as soon as their passwords are known. One at a
 * time and beside the logins, so that none waits for it. It is no change of the partner: whoever is connected stays.
 */
export class PasswordRenewals {
  readonly #partners: PartnerStore;
  readonly #hasher: PasswordHasher;
  readonly #verifier: PasswordVerifier;
  readonly #logger: Logger;
  /** By their stored hash. */
  readonly #waiting = new Map<string, ProvenPassword>();
  #running: Promise<void> | undefined;
  #stopped = false;

  constructor(partners: PartnerStore, hasher: PasswordHasher, verifier: PasswordVerifier, logger: Logger) {
    this.#partners = partners;
    this.#hasher = hasher;
    this.#verifier = verifier;
    this.#logger = logger;
  }

  /** The hash of a password that a partner gives itself; its next use is answered at once. */
  async hash(password: string): Promise<string> {
    const stored = await this.#hasher.hash(password);
    this.#verifier.learned(password, stored);
    return stored;
  }

  /** Renews the hash of this password when that is due. */
  offer(proven: ProvenPassword): void {
    if (this.#stopped || this.#waiting.size >= MAX_WAITING || !this.#hasher.isStale(proven.stored)) return;
    if (this.#waiting.has(proven.stored)) return;
    this.#waiting.set(proven.stored, proven);
    this.#running ??= this.#run();
  }

  /** Resolves when the one that runs is over; the others are left to a later login. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#running;
  }

  async #run(): Promise<void> {
    for (const proven of this.#waiting.values()) {
      if (this.#stopped) break;
      await this.#renew(proven);
      this.#waiting.delete(proven.stored);
    }
    this.#running = undefined;
  }

  async #renew({ partnerId, column, password, stored }: ProvenPassword): Promise<void> {
    try {
      const renewed = await this.#hasher.hash(password);
      if (!(await this.#partners.renewHash(partnerId, column, stored, renewed))) return;
      this.#verifier.learned(password, renewed);
      this.#logger.info({ partner: partnerId, column }, 'renewed the stored hash of a password');
    } catch (error) {
      this.#logger.warn(
        { err: error, partner: partnerId, column },
        'could not renew the stored hash of a password: trying again at the next login with it',
      );
    }
  }
}

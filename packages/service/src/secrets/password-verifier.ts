import { createHmac, randomBytes } from 'node:crypto';

import { deferred } from '@pesit-node/ground';
import type { Deferred } from '@pesit-node/ground';
import { FairQueue } from './fair-queue.js';
import type { Origin } from './fair-queue.js';

/** Who wants a password checked: addresses take turns, and so do the names of one address. */
export type CheckOrigin = Origin;

export interface PasswordVerifierOptions {
  /** Verified credentials that are remembered; the least recently used gives way. Default 10,000. */
  readonly capacity?: number;
  /** How long they are remembered after their last use, in milliseconds. Default 24 hours. */
  readonly ttlMs?: number;
  /** Checks that run beside each other. Default 2 (64 MiB), half of the thread pool, which file writes share. */
  readonly maxRunning?: number;
  /** Checks that may wait. Default 256. */
  readonly maxWaiting?: number;
  /** Clock, for tests. */
  readonly now?: () => number;
  /** The slow check itself: `PasswordHasher`. */
  readonly check: (password: string, stored: string) => Promise<boolean>;
}

/** The password was not looked at: whether it is right is not known. */
export class UncheckedPasswordError extends Error {
  override readonly name = 'UncheckedPasswordError';
}

interface Check {
  readonly id: string;
  readonly password: string;
  readonly stored: string;
  readonly outcome: Deferred<boolean>;
  /** Whether each caller that has asked for it still wants it. */
  readonly wanted: (() => boolean)[];
}

/**
 * Checks passwords against stored hashes, cheaply when they were verified lately.
 *
 * A session brings its password each time, and the check is slow on purpose. Successes are remembered under an HMAC whose key
 * lives as long as the process, and stay so by their use: whoever is known is let in at once, however many strangers wait.
 * Failures are never remembered. A few checks run beside each other; the others wait in turn by where they come from
 * (`FairQueue`), and equal ones are one.
 */
export class PasswordVerifier {
  readonly #options: Required<PasswordVerifierOptions>;
  readonly #key = randomBytes(32);
  /** Until when each is remembered; the least recently used first. */
  readonly #verified = new Map<string, number>();
  /** Checks that wait or run. */
  readonly #pending = new Map<string, { readonly check: Check; readonly settled: Promise<boolean> }>();
  readonly #waiting: FairQueue<Check>;
  #running = 0;

  constructor(options: PasswordVerifierOptions) {
    this.#options = {
      ...{ capacity: 10_000, ttlMs: 86_400_000, maxRunning: 2, maxWaiting: 256, now: Date.now },
      ...options,
    };
    this.#waiting = new FairQueue(this.#options.maxWaiting);
  }

  /** Whether this password was verified lately: answered at once, and remembered longer for it. */
  knows(password: string, stored: string): boolean {
    return this.#remembers(this.#idOf(password, stored));
  }

  /** A new hash was made of a password that is known to be right: its next use is answered at once. */
  learned(password: string, stored: string): void {
    this.#remember(this.#idOf(password, stored));
  }

  /**
   * @param wanted whether somebody still waits for the answer; asked when the turn of the check comes
   * @throws what `check` does, and {UncheckedPasswordError} when it has no place among those that wait, or is no longer wanted
   */
  verify(password: string, stored: string, origin: CheckOrigin, wanted = () => true): Promise<boolean> {
    const id = this.#idOf(password, stored);
    if (this.#remembers(id)) return Promise.resolve(true);
    const pending = this.#pending.get(id);
    if (pending !== undefined) {
      pending.check.wanted.push(wanted);
      return pending.settled;
    }
    const check = { id, password, stored, outcome: deferred<boolean>(), wanted: [wanted] };
    const settled = check.outcome.promise.finally(() => this.#pending.delete(id));
    this.#pending.set(id, { check, settled });
    const loser = this.#waiting.add(check, origin);
    const { maxWaiting } = this.#options;
    loser?.outcome.reject(new UncheckedPasswordError(`${maxWaiting} password checks wait already`));
    this.#runNext();
    return settled;
  }

  #runNext(): void {
    while (this.#running < this.#options.maxRunning) {
      const next = this.#waiting.take();
      if (next === undefined) return;
      if (!next.wanted.some((isWanted) => isWanted())) {
        next.outcome.reject(new UncheckedPasswordError('nobody waits for the answer'));
        continue;
      }
      this.#running += 1;
      void this.#run(next).finally(() => {
        this.#running -= 1;
        this.#runNext();
      });
    }
  }

  async #run({ id, password, stored, outcome }: Check): Promise<void> {
    try {
      const valid = await this.#options.check(password, stored);
      if (valid) this.#remember(id);
      outcome.resolve(valid);
    } catch (error) {
      outcome.reject(error as Error);
    }
  }

  #idOf(password: string, stored: string): string {
    return createHmac('sha256', this.#key).update(stored).update('\0').update(password).digest('base64');
  }

  #remembers(id: string): boolean {
    const until = this.#verified.get(id);
    if (until === undefined) return false;
    this.#verified.delete(id);
    if (until <= this.#options.now()) return false;
    this.#remember(id);
    return true;
  }

  #remember(id: string): void {
    const { capacity, ttlMs, now } = this.#options;
    const oldest = this.#verified.keys().next();
    if (this.#verified.size >= capacity && oldest.done !== true) this.#verified.delete(oldest.value);
    this.#verified.set(id, now() + ttlMs);
  }
}

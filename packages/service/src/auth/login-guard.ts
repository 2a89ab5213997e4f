import { hash } from 'node:crypto';
import { isIPv4 } from 'node:net';

import { ipKeyGenerator } from 'express-rate-limit';

import type { EventStream } from '../events/event-stream.js';
import { LOGIN_FAILED, LOGIN_SUCCEEDED } from '../events/events.js';
import { FailureLimiter } from './failure-limiter.js';
import type { FailureLimiterOptions } from './failure-limiter.js';

/** Who tries to log in. */
export class LoginAttempt {
  readonly address: string;
  /** As it was given; '' when nothing could be read. */
  readonly user: string;
  #caller: string | undefined;

  constructor(address: string, user: string) {
    this.address = address;
    this.user = user;
  }

  /** For whom failures are counted. Bounded, whatever name is given. IPv6: one subscriber has a whole network to send from. */
  get caller(): string {
    return (this.#caller ??= keyOf(this));
  }
}

export interface LoginGuardOptions {
  readonly events: EventStream;
  readonly limits?: FailureLimiterOptions;
}

/** Characters that are kept of what a stranger chose. */
const SHOWN = 64;

/** `192.0.2.1:55044` and `[::1]:55044`, as some proxies forward addresses. */
const WITH_PORT = /^(?:([\d.]+)|\[([\da-f:.]+)\]):\d{1,5}$/i;

/** An address as it is shown and counted. */
export const withoutPort = (address: string): string => {
  const [, four, six] = WITH_PORT.exec(address) ?? [];
  return four !== undefined && isIPv4(four) ? four : (six ?? address);
};

/**
 * Decides whose login is looked at: failures are counted per address and user, so that neither locks out the other's neighbours
 * behind one proxy. Who has logged in before, since this process started, gets in with the right password however often others
 * failed in his place.
 */
export class LoginGuard {
  readonly #events: EventStream;
  readonly #limiter: FailureLimiter;

  constructor({ events, limits = {} }: LoginGuardOptions) {
    this.#events = events;
    this.#limiter = new FailureLimiter(limits);
  }

  /** Seconds for which the password of this attempt is not even looked at; 0 = look. */
  refusedFor(attempt: LoginAttempt): number {
    const seconds = this.#limiter.blockedFor(attempt.caller);
    if (seconds === 0 || this.#limiter.hasLoggedIn(attempt.caller)) return 0;
    this.#publish(attempt, 'blocked', seconds);
    return seconds;
  }

  succeeded(attempt: LoginAttempt): void {
    this.#limiter.succeeded(attempt.caller);
    this.#events.publish(LOGIN_SUCCEEDED, shown(attempt));
  }

  /** @returns seconds until the next attempt may succeed, when there were too many already; else 0 */
  failed(attempt: LoginAttempt): number {
    const { caller } = attempt;
    const before = this.#limiter.blockedFor(caller);
    if (before === 0) this.#limiter.failed(caller);
    this.#publish(attempt, before > 0 ? 'blocked' : 'wrong', this.#limiter.blockedFor(caller));
    return before;
  }

  #publish(attempt: LoginAttempt, result: 'wrong' | 'blocked', blockedSeconds: number): void {
    this.#events.publish(LOGIN_FAILED, { ...shown(attempt), result, blockedSeconds });
  }
}

const shown = ({ address, user }: LoginAttempt) => ({
  address: withoutPort(address).slice(0, SHOWN),
  user: user.slice(0, SHOWN),
});

const keyOf = ({ address, user }: LoginAttempt): string =>
  `${ipKeyGenerator(withoutPort(address).slice(0, SHOWN))} ${hash('sha256', user.normalize('NFC'), 'base64')}`;

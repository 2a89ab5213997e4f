import { createHash } from 'node:crypto';
import { isIPv4 } from 'node:net';

import { ipKeyGenerator } from 'express-rate-limit';

import { LogBudget } from '../log-budget.js';
import type { Logger } from '../logging.js';
import type { Metrics } from '../metrics/metrics.js';
import { FailureLimiter } from './failure-limiter.js';
import type { FailureLimiterOptions } from './failure-limiter.js';

/** Who tries to log in. */
export interface LoginAttempt {
  readonly address: string;
  /** As it was given; '' when nothing could be read. */
  readonly user: string;
}

export interface LoginGuardOptions {
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly limits?: FailureLimiterOptions;
}

/** What a log line shows of a name that a stranger chose. */
const SHOWN = 64;

/** `192.0.2.1:55044` and `[::1]:55044`, as some proxies forward addresses. */
const WITH_PORT = /^(?:([\d.]+)|\[([\da-f:.]+)\]):\d{1,5}$/i;

const withoutPort = (address: string): string => {
  const [, four, six] = WITH_PORT.exec(address) ?? [];
  return four !== undefined && isIPv4(four) ? four : (six ?? address);
};

/**
 * Decides whose login is looked at: failures are counted per address and user, so that neither locks out the other's neighbours
 * behind one proxy. Who has logged in before, since this process started, gets in with the right password however often others
 * failed in his place.
 */
export class LoginGuard {
  readonly #logger: Logger;
  readonly #metrics: Metrics;
  readonly #limiter: FailureLimiter;
  readonly #budget: LogBudget;

  constructor({ logger, metrics, limits = {} }: LoginGuardOptions) {
    this.#logger = logger;
    this.#metrics = metrics;
    this.#limiter = new FailureLimiter(limits);
    this.#budget = new LogBudget(limits.now === undefined ? {} : { now: limits.now });
  }

  /** Seconds for which the password of this attempt is not even looked at; 0 = look. */
  refusedFor(attempt: LoginAttempt): number {
    const key = keyOf(attempt);
    const seconds = this.#limiter.blockedFor(key);
    if (seconds === 0 || this.#limiter.hasLoggedIn(key)) return 0;
    this.#metrics.add('pesit_login_failures_total', { result: 'blocked' });
    return seconds;
  }

  succeeded(attempt: LoginAttempt): void {
    this.#limiter.succeeded(keyOf(attempt));
  }

  /** Says and counts it. @returns seconds until the next attempt may succeed, when there were too many already; else 0 */
  failed(attempt: LoginAttempt): number {
    const key = keyOf(attempt);
    const before = this.#limiter.blockedFor(key);
    this.#metrics.add('pesit_login_failures_total', { result: before > 0 ? 'blocked' : 'wrong' });
    if (before > 0) return before;
    this.#limiter.failed(key);
    this.#say(attempt, this.#limiter.blockedFor(key));
    return 0;
  }

  #say(attempt: LoginAttempt, blockedSeconds: number): void {
    const address = withoutPort(attempt.address).slice(0, SHOWN);
    const notLogged = this.#budget.take(address);
    if (notLogged === undefined) return;
    const bindings = {
      address,
      user: attempt.user.slice(0, SHOWN),
      ...(blockedSeconds > 0 ? { blockedSeconds } : {}),
      ...(notLogged > 0 ? { notLogged } : {}),
    };
    this.#logger.warn(bindings, 'login failed');
  }
}

/** Bounded, whatever name is given. IPv6: one subscriber has a whole network to send from. */
const keyOf = ({ address, user }: LoginAttempt): string => {
  const digest = createHash('sha256').update(user.normalize('NFC')).digest('base64');
  return `${ipKeyGenerator(withoutPort(address).slice(0, SHOWN))} ${digest}`;
};

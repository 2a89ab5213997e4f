import { LogBudget } from '../log-budget.js';
import type { LogBudgetOptions } from '../log-budget.js';
import type { Logger } from '../logging.js';
import type { Metrics } from '../metrics/metrics.js';
import type { EventStream } from './event-stream.js';
import { CONFIGURATION_CHANGED, LOGIN_FAILED, LOGIN_SUCCEEDED } from './events.js';

/** Each request is a login: a user has a line an hour for each address. */
const LOGINS: LogBudgetOptions = { perKey: 1, total: 1000, windowMs: 3_600_000 };

/** The log lines of what was configured, and of logins; strangers can make those that fail: so many an address and minute. */
export const logService = (events: EventStream, logger: Logger, bound: LogBudgetOptions = {}): void => {
  const budget = new LogBudget(bound);
  events.subscribe(CONFIGURATION_CHANGED, ({ what, action, facts, by }) => {
    logger.info({ ...facts, ...(by === undefined ? {} : { actor: by.actor }) }, `${what} ${action}`);
  });
  const logins = new LogBudget({ ...LOGINS, ...(bound.now === undefined ? {} : { now: bound.now }) });
  events.subscribe(LOGIN_SUCCEEDED, ({ address, user }) => {
    if (logins.take(`${address} ${user}`) !== undefined) logger.info({ address, user }, 'login');
  });
  events.subscribe(LOGIN_FAILED, ({ address, user, result, blockedSeconds }) => {
    // The line of the last wrong one says for how long the next are not looked at.
    if (result === 'blocked') return;
    const notLogged = budget.take(address);
    if (notLogged === undefined) return;
    const more = { ...(blockedSeconds > 0 ? { blockedSeconds } : {}), ...(notLogged > 0 ? { notLogged } : {}) };
    logger.warn({ address, user, ...more }, 'login failed');
  });
};

export const meterLogins = (events: EventStream, metrics: Metrics): void => {
  events.subscribe(LOGIN_FAILED, ({ result }) => {
    metrics.add('pesit_login_failures_total', { result });
  });
};

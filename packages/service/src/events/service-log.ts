import { LogBudget } from '../log-budget.js';
import type { LogBudgetOptions } from '../log-budget.js';
import type { Logger } from '../logging.js';
import type { Metrics } from '../metrics/metrics.js';
import type { EventStream } from './event-stream.js';
import { CONFIGURATION_CHANGED, LOGIN_FAILED } from './events.js';

/** The log lines of what was configured, and of failed logins, which strangers can cause: so many an address and minute. */
export const logService = (events: EventStream, logger: Logger, bound: LogBudgetOptions = {}): void => {
  const budget = new LogBudget(bound);
  events.subscribe(CONFIGURATION_CHANGED, ({ what, action, facts, by }) => {
    logger.info({ ...facts, ...(by === undefined ? {} : { actor: by.actor }) }, `${what} ${action}`);
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

import { Collapse } from '@pesit-node/service';
import type { Audit, DatabaseSupervisor, EventStream, Logger, Metrics } from '@pesit-node/service';

import type { DeliveryStore } from './delivery-store.js';
import { HOOK_ATTEMPTED, HOOK_DISABLED } from './events.js';

export interface HookObservers {
  readonly events: EventStream;
  readonly logger: Logger;
  readonly audit: Pick<Audit, 'note' | 'include'>;
  /** `audit.transfers`; asked each time. */
  readonly which: () => 'all' | 'failures' | 'none';
  readonly metrics: Metrics;
  readonly supervisor: Pick<DatabaseSupervisor, 'ready'>;
  readonly store: Pick<DeliveryStore, 'waiting'>;
  readonly now?: (() => number) | undefined;
}

/** Entries in an hour that deliveries which were given up may make each. */
const FAILURES_PER_HOUR = 600;

/** Log lines, audit entries and figures of hooks, from their events. */
export const followHooks = (options: HookObservers): void => {
  const { events, logger, audit, which, metrics, supervisor, store, now = () => performance.now() } = options;
  const failures = new Collapse({ perHour: FAILURES_PER_HOUR, now });
  audit.include(() => failures.due());

  events.subscribe(HOOK_ATTEMPTED, ({ outcome, cause, by, ...facts }) => {
    const { hook, delivery, transfer, event, attempt, reason } = facts;
    if (by !== undefined)
      metrics.add('pesit_hook_attempts_total', { by, outcome: outcome === 'given up' ? 'given_up' : outcome });
    if (cause !== undefined) metrics.add('pesit_hook_given_up_total', { cause });
    if (outcome === 'delivered') logger.debug(facts, 'hook delivered');
    else if (outcome === 'given up') logger.error(facts, 'hook given up: nobody was told of the transfer');
    // One line for a receiver that is away for long: the delivery says how often it was tried.
    else if (attempt === 1) logger.warn(facts, `hook ${outcome}: it is tried again`);
    else logger.debug(facts, `hook ${outcome} again`);

    if (which() === 'none') return;
    const details = { hook, by, event, transfer, attempt, reason };
    const entry = { action: outcome, objectType: 'hook delivery', object: delivery, details };
    if (outcome === 'given up') for (const one of failures.take(delivery, entry)) audit.note(one);
    else if (outcome === 'delivered' && which() === 'all') audit.note(entry);
  });
  events.subscribe(HOOK_DISABLED, ({ hook, reason }) => {
    logger.error({ hook, reason }, 'hook disabled: correct it, and enable it again');
    audit.note({ action: 'disabled', objectType: 'hook', object: hook, details: { reason } });
  });
  metrics.gauges(['pesit_hook_deliveries_waiting', 'pesit_hook_oldest_seconds'], async () => {
    if (!supervisor.ready) return {};
    const { total, oldest } = await store.waiting();
    return { pesit_hook_deliveries_waiting: total, pesit_hook_oldest_seconds: oldest };
  });
};

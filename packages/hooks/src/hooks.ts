import { TRANSFER_ENDED, TRANSFER_REFUSED } from '@pesit-node/transfers';
import type { Knex } from 'knex';

import { HookDeliverer } from './deliverer.js';
import type { DelivererOptions } from './deliverer.js';
import { deliveryStore } from './delivery-store.js';
import { followHooks } from './observers.js';
import type { HookObservers } from './observers.js';
import type { HookRoutes } from './routes.js';
import { HookStore } from './store.js';

export interface HooksOptions
  extends
    Omit<DelivererOptions, 'store'>,
    Omit<HookObservers, 'store' | 'audit'>,
    Pick<HookRoutes, 'requireTruststore'> {
  readonly knex: Knex;
  readonly audit: HookObservers['audit'] & HookRoutes['audit'];
}

/** The hooks of an app: what is told to others after the outcome of a transfer (docs/hooks.md). */
export interface Hooks {
  readonly store: HookStore;
  readonly deliverer: HookDeliverer;
  /** For `hookRoutes`. */
  readonly rest: HookRoutes;
}

export const createHooks = (options: HooksOptions): Hooks => {
  const { knex, secrets, config, events, audit, requireTruststore } = options;
  const deliveries = deliveryStore(knex);
  const deliverer = new HookDeliverer({ ...options, store: deliveries });
  const changed = (): void => deliverer.changed();
  const store = new HookStore(knex, secrets, config, changed);
  followHooks({ ...options, store: deliveries });
  events.subscribe(TRANSFER_ENDED, ({ status }) => {
    if (status !== undefined) deliverer.wake();
  });
  events.subscribe(TRANSFER_REFUSED, ({ counted }) => {
    if (!counted) deliverer.wake();
  });
  return { store, deliverer, rest: { knex, store, events, audit, requireTruststore, wake: changed } };
};

import { randomUUID } from 'node:crypto';

import { afterEach } from '@jest/globals';
import { PeriodicWork } from '@pesit-node/service';
import type { Database } from '@pesit-node/service';
import { captureLog } from '@pesit-node/service/testing';
import type { CapturedLog } from '@pesit-node/service/testing';

import { DAY_MS } from '../../src/claims.js';
import { LicenseKeeper } from '../../src/keeper.js';
import type { LicenseKeeperOptions } from '../../src/keeper.js';
import { KnexLicenseStore } from '../../src/store.js';
import type { LicenseClock } from '../../src/timekeeper.js';
import { VENDOR_KEY } from './vendor.js';

/** A clock that goes when told. `set` is what somebody does to it; the monotonic clock does not notice. */
export class VirtualClock implements LicenseClock {
  #now: number;
  #monotonic = 0;

  constructor(start: string) {
    this.#now = Date.parse(start);
  }

  now = (): number => this.#now;
  monotonic = (): number => this.#monotonic;

  pass(ms: number): this {
    this.#now += ms;
    this.#monotonic += ms;
    return this;
  }

  days(count: number): this {
    return this.pass(count * DAY_MS);
  }

  set(to: string): this {
    this.#now = Date.parse(to);
    return this;
  }
}

export interface Pod {
  readonly keeper: LicenseKeeper;
  readonly log: CapturedLog;
  readonly store: KnexLicenseStore;
}

const running: PeriodicWork[] = [];
afterEach(async () => {
  for (const periodic of running.splice(0)) await periodic.stop();
});

/** A keeper that has read the store once; it looks by itself when it is started, until the end of the test. */
export const startPod = async (
  database: Pick<Database, 'knex'>,
  clock: LicenseClock,
  options: Partial<LicenseKeeperOptions> = {},
): Promise<Pod> => {
  const log = captureLog();
  const store = new KnexLicenseStore(database.knex);
  const periodic = new PeriodicWork({ logger: log.logger });
  periodic.start();
  running.push(periodic);
  const keeper = new LicenseKeeper({
    store,
    key: VENDOR_KEY,
    evaluationDays: 30,
    periodic,
    logger: log.logger,
    node: 'pod-1',
    clock,
    ...options,
  });
  await keeper.refresh();
  return { keeper, log, store };
};

/**
 * So many living pods besides those that run, and older than they: `other-1`, `other-2` … They are rows alone, with a lease of
 * an hour.
 */
export const olderPods = async ({ knex }: Pick<Database, 'knex'>, app: 'server' | 'client', count: number) => {
  for (let number = 1; number <= count; number += 1) {
    await knex('pesit_common.cluster_pods').insert({
      ...{ instance: randomUUID(), app, cluster: 'pesit', namespace: 'default', pod: `other-${number}` },
      seen_at: knex.raw("now() + interval '1 hour'"),
    });
  }
  await knex('pesit_common.cluster_pods')
    .whereNot('pod', 'like', 'other-%')
    .update({ position: knex.raw('default') });
  return {
    /** One of them ends. */
    leaves: async (number: number): Promise<void> => {
      await knex('pesit_common.cluster_pods')
        .where({ pod: `other-${number}` })
        .delete();
    },
  };
};

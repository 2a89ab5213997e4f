import { expect } from '@jest/globals';
import { EventStream, PeriodicWork } from '@pesit-node/service';
import type { MigrationSet, NewAuditEntry, SecretBox } from '@pesit-node/service';
import { captureLog, testConfig, testMetrics } from '@pesit-node/service/testing';
import type { TestDatabase } from '@pesit-node/service/testing';

import { createHooks, createHookTables, HOOK_ATTEMPTED } from '../../src/index.js';

/** A table of transfers as small as the trigger allows. */
export const MIGRATIONS: MigrationSet = {
  schema: 'pesit_server',
  migrations: [
    {
      name: '0001-hooks',
      up: async (knex) => {
        await knex.raw(`create table transfers (
          id bigint primary key generated always as identity, status text not null, direction text not null default 'RECEIVE',
          partner_id text not null default 'ACME', virtual_file_id text, restartable boolean not null default false,
          size bigint, end_time timestamptz, message bytea)`);
        const of = { peer: 'partner_id', virtualFile: 'virtual_file_id', restartable: 'restartable' };
        await createHookTables(knex, { ...of, without: ['message'] });
      },
    },
  ],
};

const HOUR = 3_600_000;

interface Row {
  readonly id: number;
  readonly status: string;
  readonly size: number | null;
  readonly end_time: Date | null;
  readonly message?: Buffer | null;
}

export interface PodOptions {
  /** Between two attempts, milliseconds. Default: the next comes at once. */
  readonly delay?: number;
  readonly settings?: object;
  readonly leaseMarginMs?: number;
}

interface Whole extends PodOptions {
  readonly knex: TestDatabase['knex'];
  readonly directory: string;
  readonly secrets: SecretBox;
  readonly node: string;
}

export type Pod = ReturnType<typeof startHooks>;

/** The hooks of one pod, which look every 10 ms; what they audit and tell is kept. */
export const startHooks = ({ knex, directory, secrets, node, delay = 0, settings, leaseMarginMs }: Whole) => {
  const log = captureLog();
  const own = {
    'hooks.webhooks': true,
    'hooks.directory': directory,
    'hooks.allow-http': true,
    'hooks.webhook-timeout': 300,
  };
  const config = testConfig('server', { 'data.directory': directory, ...own, ...settings });
  const events = new EventStream({ app: 'server', node, failed: (error) => expect(error).toBeUndefined() });
  const periodic = new PeriodicWork({ logger: log.logger });
  const audited: NewAuditEntry[] = [];
  const metrics = testMetrics('server');
  const ends: string[] = [];
  const heard = new Set<() => void>();
  events.subscribe(HOOK_ATTEMPTED, ({ outcome, attempt, reason }) => {
    ends.push([outcome, attempt, ...(reason === undefined ? [] : [reason])].join(' '));
    for (const one of heard) one();
  });
  const hooks = createHooks({
    ...{ knex, secrets, config, periodic, events, node, metrics, logger: log.logger, app: 'server', lookMs: 10 },
    ...{ supervisor: { ready: true }, asLeader: (work) => work(knex), which: () => 'all' as const },
    audit: {
      note: (entry) => audited.push(entry),
      include: () => undefined,
      entry: () => () => Promise.resolve(),
      change: () => () => Promise.resolve(),
    },
    retry: { initialDelay: delay, maxDelay: HOUR, multiplier: 1, jitter: 0 },
    ...(leaseMarginMs === undefined ? {} : { leaseMarginMs }),
    killGraceMs: 100,
    recordOf: ({ id, status, size, end_time: end, message }: Row) => ({ id, status, size, end, message }),
    casOf: () => Promise.resolve(undefined),
    requireTruststore: () => Promise.resolve(),
  });
  periodic.start();
  hooks.deliverer.start();
  let isStopped = false;
  const stop = async (drainMs = 0): Promise<void> => {
    if (isStopped) return;
    isStopped = true;
    await hooks.deliverer.stop(drainMs);
    await periodic.stop();
    events.close();
  };
  /** Resolves when so many attempts have ended. */
  const ended = async (count: number): Promise<readonly string[]> => {
    while (ends.length < count) {
      await new Promise<void>((resolve) => {
        heard.add(resolve);
      });
    }
    return ends;
  };
  return { ...hooks, ...{ knex, ended, ends, audited, log, metrics, stop } };
};

/**
 * The ground under both apps, made in one order: migrated database, periodic work, cluster, license. It is in this package because
 * no other one may import cluster and service; `runService` of service makes what lies below it, and imports neither.
 */
import { networkInterfaces } from 'node:os';

import { CLUSTER_MIGRATIONS, createCluster } from '@pesit-node/cluster';
import type { Cluster } from '@pesit-node/cluster';
import {
  Audit,
  databaseMetrics,
  DatabaseSupervisor,
  eventStream,
  Metrics,
  PeriodicWork,
  reasonsOf,
} from '@pesit-node/service';
import type {
  AppName,
  CommonConfig,
  EventStream,
  LifecycleStep,
  MigrationSet,
  ServiceGround,
  SupervisorOptions,
} from '@pesit-node/service';

import type { Admission } from './admission.js';
import { licenseHealth } from './gate.js';
import { licenseInCluster } from './in-cluster.js';
import type { LicenseKeeper, LicenseKeeperOptions } from './keeper.js';
import { licenseMetrics } from './metrics.js';
import { LICENSE_MIGRATIONS } from './migrations/index.js';
import type { VendorKey } from './public-key.js';
import { KnexLicenseStore } from './store.js';
import { historyWitness } from './witness.js';

export interface FoundationOptions<A extends AppName> extends Omit<ServiceGround<A>, 'config' | 'namespace'> {
  readonly config: CommonConfig;
  /** Namespace of the pod. Default `default`. */
  readonly namespace?: string | undefined;
  readonly app: A;
  /** PeSIT sessions that this pod has open, for the status of the cluster. */
  readonly sessions: () => number;
  /** Whether this pod can do the work of a leader now. Default: it can. */
  readonly isFit?: () => boolean;
  /** Migrations of the app; they run after those of license and cluster. */
  readonly migrations: MigrationSet;
  /** The key that licenses are verified with. */
  readonly licenseKey: VendorKey;
  /** Default: the clock of the machine, and every 5 seconds. */
  readonly licenseTimes?: Pick<LicenseKeeperOptions, 'clock' | 'refreshEveryMs'>;
  /** See `SupervisorOptions`. */
  readonly checkEveryMs?: SupervisorOptions['checkEveryMs'];
}

const restAddress = (config: CommonConfig): string => {
  const host = config['server.host'];
  const own = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  const outside =
    own.find(({ internal, family }) => !internal && family === 'IPv4') ?? own.find(({ internal }) => !internal);
  const shown = ['0.0.0.0', '::', ''].includes(host) ? (outside?.address ?? 'localhost') : host;
  return `${shown.includes(':') ? `[${shown}]` : shown}:${String(config['server.port'])}`;
};

export interface Foundation<A extends AppName> {
  readonly metrics: Metrics<A>;
  readonly events: EventStream;
  /** Follows the database; says when it is ready. */
  readonly supervisor: DatabaseSupervisor;
  /** Runs from the start of `step` to its stop. */
  readonly periodic: PeriodicWork;
  /** The app stands for election (`leader.start`) when it can do the leader's work. */
  readonly cluster: Cluster;
  readonly license: LicenseKeeper;
  /** The audit log of the app. */
  readonly audit: Audit;
  /** Whether this pod takes work. */
  readonly admission: Admission;
  /** Starts and stops all of this: the first step to start, and the last to stop. */
  readonly step: LifecycleStep;
  /** The configuration was read again: the license is looked for where it says now. */
  readonly reloaded: () => void;
}

/** Begins to connect to Redis, where there is one, and asks nothing of the database before `step` is started. */
export const createFoundation = <A extends AppName>(options: FoundationOptions<A>): Foundation<A> => {
  const { app, config, logger, health, info, database, secrets, node, checkEveryMs } = options;
  const { knex } = database;
  const metrics = new Metrics({ app, version: info.version, logger });
  const events = eventStream({ app, node }, logger);
  const supervisor = new DatabaseSupervisor({
    database,
    migrations: [LICENSE_MIGRATIONS, CLUSTER_MIGRATIONS, options.migrations],
    logger,
    ...(checkEveryMs === undefined ? {} : { checkEveryMs }),
  });
  const periodic: PeriodicWork = new PeriodicWork({ logger, isLeader: () => cluster.leader.isLeader });
  const cluster = createCluster({
    ...{ config, database, periodic, logger },
    ...{ app, name: node, namespace: options.namespace, isFit: options.isFit },
    facts: async () => {
      const readiness = await health.readiness();
      return {
        ...{ address: restAddress(config), version: info.version, sessions: options.sessions() },
        ...{ ready: readiness.status === 'UP', notReadyReason: reasonsOf(readiness) },
      };
    },
  });
  const sources = () => ({ file: config['license.file'], content: config['license.content'] });
  const { license, admission } = licenseInCluster(cluster, {
    store: new KnexLicenseStore(knex),
    key: options.licenseKey,
    evaluationDays: config['license.evaluation-days'],
    ...sources(),
    witnesses: [historyWitness(knex)],
    ...{ secrets, periodic, logger, node },
    ...options.licenseTimes,
  });
  databaseMetrics(metrics, { knex, supervisor });
  const audit = new Audit({
    ...{ knex, asLeader: cluster.asLeader, node, config, periodic, logger },
    count: (outcome, entries) => {
      metrics.add('pesit_audit_entries_total', { outcome }, entries);
    },
  });
  licenseMetrics(metrics, { license, admission, cluster });
  health.register('database', () => supervisor.health(), { readiness: true });
  health.register('license', () => licenseHealth(license), { readiness: true });
  health.register('cluster', () => admission.health(), { readiness: true });
  supervisor.on('ready', () => {
    cluster.members.start();
    license.start();
    audit.start();
  });
  cluster.leader.on('gain', () => periodic.lead());
  const step: LifecycleStep = {
    name: 'database',
    start: () => {
      periodic.start();
      supervisor.start();
    },
    stop: async () => {
      await license.stop();
      await audit.stop();
      await cluster.stop();
      await periodic.stop();
      await supervisor.stop();
      events.close();
    },
  };
  const reloaded = (): void => license.useSources(sources());
  return { metrics, events, supervisor, periodic, cluster, license, audit, admission, step, reloaded };
};

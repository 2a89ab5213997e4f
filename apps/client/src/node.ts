import { CLUSTER_MIGRATIONS, createCluster } from '@pesit-node/cluster';
import {
  historyWitness,
  KnexLicenseStore,
  LICENSE_MIGRATIONS,
  licenseHealth,
  licenseInCluster,
  licenseMetrics,
} from '@pesit-node/license';
import type { LicenseKeeperOptions, VendorKey } from '@pesit-node/license';
import {
  DatabaseSupervisor,
  DataDirectoryError,
  eventStream,
  Metrics,
  PeriodicWork,
  Traces,
} from '@pesit-node/service';
import type {
  Config,
  Database,
  HealthRegistry,
  LifecycleStep,
  Logger,
  SecretBox,
  ServiceInfo,
} from '@pesit-node/service';
import { ProcessDirectory, SpaceReserve } from '@pesit-node/storage';
import { storageHealth } from '@pesit-node/transfers';

import { createApp } from './app.js';
import { createExchange } from './exchange/exchange.js';
import type { ExchangeOptions } from './exchange/exchange.js';
import { ReceivedTree } from './exchange/received-tree.js';
import { exchangeSettings } from './exchange/settings.js';
import type { ExchangeSettings } from './exchange/settings.js';
import { clientMetrics } from './metrics.js';
import { CLIENT_MIGRATIONS } from './migrations/index.js';
import { placeStore } from './remote-servers/place-store.js';
import { remoteServerStore } from './remote-servers/store.js';
import { SendTree } from './transfers/send-tree.js';
import { transferStore } from './transfers/store.js';

/** Time beyond the drain for interrupting the last transfers and releasing the sessions. */
const STOP_MARGIN_MS = 20_000;
const START_AGAIN_MS = 5000;

export interface NodeOptions extends Pick<
  ExchangeOptions,
  'node' | 'pollMs' | 'progressMs' | 'leaseMs' | 'placeLookMs'
> {
  readonly config: Config<'client'>;
  /** Namespace of the pod. Default `default`. */
  readonly namespace?: string | undefined;
  /** Default: those of the configuration. */
  readonly settings?: ExchangeSettings;
  /** Bytes that are free on the volume of a directory. Default: as the operating system says. */
  readonly freeSpace?: (directory: string) => Promise<number>;
  readonly logger: Logger;
  readonly health: HealthRegistry;
  readonly info: ServiceInfo;
  readonly database: Database;
  readonly secrets: SecretBox;
  /** The key that licenses are verified with. */
  readonly licenseKey: VendorKey;
  /** Default: the clock of the machine, and every 5 seconds. */
  readonly licenseTimes?: Pick<LicenseKeeperOptions, 'clock' | 'refreshEveryMs'>;
}

/** @throws {DataDirectoryError} */
const prepareUploads = async (uploads: ProcessDirectory, retentionMs: number, logger: Logger): Promise<void> => {
  try {
    const removed = await uploads.prepare(retentionMs);
    if (removed.length > 0) logger.info({ removed }, 'removed uploads that dead processes left');
  } catch (cause) {
    throw new DataDirectoryError(
      `data.temp-directory ${uploads.root} cannot be used: ${(cause as Error).message}. Expected a directory that the service may ` +
        'read and write: give it the rights, or choose another with --data.temp-directory',
      { cause },
    );
  }
};

/** The client app over an open database: its REST interface, and what starts and stops, in order: database, files, exchange. */
export const createNode = (options: NodeOptions) => {
  const { config, logger, health, info, database, secrets } = options;
  const { settings = exchangeSettings(config) } = options;
  const events = eventStream({ app: 'client', node: options.node }, logger);
  const metrics = new Metrics({ app: 'client', version: info.version, logger });
  const supervisor = new DatabaseSupervisor({
    database,
    migrations: [LICENSE_MIGRATIONS, CLUSTER_MIGRATIONS, CLIENT_MIGRATIONS],
    logger,
  });
  health.register('database', () => supervisor.health(), { readiness: true });

  const periodic = new PeriodicWork({ logger });
  const cluster = createCluster({
    ...{ config, database, periodic, logger },
    ...{ app: 'client', name: options.node, namespace: options.namespace },
  });
  const { license, admission } = licenseInCluster(cluster, {
    store: new KnexLicenseStore(database.knex),
    key: options.licenseKey,
    secrets,
    evaluationDays: config['license.evaluation-days'],
    file: config['license.file'],
    content: config['license.content'],
    witnesses: [historyWitness(database.knex)],
    periodic,
    logger,
    node: options.node,
    ...options.licenseTimes,
  });
  licenseMetrics(metrics, { license, admission, cluster });
  health.register('license', () => licenseHealth(license), { readiness: true });
  health.register('cluster', () => admission.health(), { readiness: true });
  supervisor.on('ready', () => {
    cluster.members.start();
    license.start();
  });

  const servers = remoteServerStore(database.knex, secrets);
  const places = placeStore(database.knex, { node: options.node, instance: cluster.pod.instance });
  const transfers = transferStore(database.knex);
  const reserve = new SpaceReserve({
    bytes: () => config['storage.reserve'],
    ...(options.freeSpace === undefined ? {} : { free: options.freeSpace }),
  });
  const uploads = new ProcessDirectory(config['data.temp-directory']);
  const sendTree = new SendTree(config['data.directory'], uploads, reserve);
  const receivedTree = new ReceivedTree(config['data.directory'], reserve);
  const space = () => reserve.fullest([receivedTree.root, sendTree.root, uploads.root]);
  health.register('storage', async () => storageHealth(await space()));
  const traces = new Traces({
    knex: database.knex,
    owners: { table: 'remote_servers', key: 'id' },
    node: options.node,
    retentionDays: config['trace.retention-days'],
    periodic,
    logger,
  });
  const exchange = createExchange({
    ...{ ...options, settings, transfers, servers, receivedTree, sendTree, traces, metrics },
    ...{ places, periodic, events, clusterEvents: cluster.events },
    mayRun: () => admission.refusal === undefined,
  });
  admission.on('change', () => {
    exchange.queue.wake();
  });
  health.register('queue', () => ({ status: 'UP', details: { running: exchange.queue.running } }));
  clientMetrics(metrics, { knex: database.knex, secrets, supervisor, exchange, space });
  const app = createApp({
    ...{ config, info, logger, health, metrics, events, database: supervisor, periodic, license },
    ...{ servers, transfers, sendTree, receivedTree, exchange, traces },
  });

  let stopped = false;
  const begin = (): void => {
    exchange.start().catch((error: unknown) => {
      logger.error({ err: error }, 'the queue could not be started, trying again');
      // The database may be there all the while, and say `ready` no more: a statement was too slow, or lost a deadlock.
      setTimeout(() => {
        if (supervisor.ready && !stopped) begin();
      }, options.pollMs ?? START_AGAIN_MS).unref();
    });
  };
  const startDatabase = (): void => {
    periodic.start();
    supervisor.start();
  };
  const stopDatabase = async (): Promise<void> => {
    await license.stop();
    await cluster.stop();
    await periodic.stop();
    await supervisor.stop();
    events.close();
  };
  const drainMs = config['shutdown.drain-timeout'] * 1000;
  const steps = {
    database: { name: 'database', start: startDatabase, stop: stopDatabase },
    files: {
      name: 'files',
      start: async () => {
        await sendTree.prepare();
        await receivedTree.prepare();
        await prepareUploads(uploads, settings.stagingRetention, logger);
      },
      stop: () => uploads.remove(),
    },
    exchange: {
      name: 'exchange',
      start: () => {
        // The service answers its probes while the database is still away; the queue begins when it is there.
        supervisor.on('ready', begin);
        if (supervisor.ready) begin();
      },
      stop: async () => {
        // Its place goes to the next pod now: what still runs here ends, and nothing new begins.
        void cluster.members.leave();
        stopped = true;
        await exchange.stop(drainMs);
      },
      stopTimeoutMs: drainMs + STOP_MARGIN_MS,
    },
  } satisfies Record<string, LifecycleStep>;
  return { app, license, cluster, metrics, exchange, supervisor, servers, transfers, settings, steps };
};

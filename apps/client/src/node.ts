import { Certificates, fetchCrls, followExpiry } from '@pesit-node/certificates';
import { settledWithin, unlessAborted, untilDone } from '@pesit-node/ground';
import { createHooks } from '@pesit-node/hooks';
import { createFoundation } from '@pesit-node/license';
import type { FoundationOptions } from '@pesit-node/license';
import {
  DataDirectoryError,
  DeclaredObjects,
  HistoryRetention,
  HistorySums,
  retentionDays,
  Traces,
} from '@pesit-node/service';
import type { Config, LifecycleStep, Logger } from '@pesit-node/service';
import { ProcessDirectory, SpaceReserve, useSynchronousIo } from '@pesit-node/storage';
import type { FileOperations } from '@pesit-node/storage';
import {
  auditTransfers,
  LiveTransfers,
  oneAtATime,
  spansStep,
  storageHealth,
  watchVolumes,
} from '@pesit-node/transfers';

import { RemoteTls } from './certificates/remote-tls.js';
import { createApp } from './app.js';
import { declaredResources } from './declared.js';
import { TRANSFER_OVER } from './exchange/events.js';
import { createExchange } from './exchange/exchange.js';
import type { Exchange, ExchangeOptions } from './exchange/exchange.js';
import { ReceivedTree } from './exchange/received-tree.js';
import { auditCircuits } from './sessions/circuits.js';
import { exchangeSettings } from './exchange/settings.js';
import type { ExchangeSettings } from './exchange/settings.js';
import { clientMetrics } from './metrics.js';
import { CLIENT_MIGRATIONS } from './migrations/index.js';
import { placeStore } from './remote-servers/place-store.js';
import { remoteServerStore } from './remote-servers/store.js';
import { createServices } from './services.js';
import { HISTORY, SUMMED } from './transfers/history.js';
import { liveSource } from './transfers/live-source.js';
import { toPageRecord } from './transfers/record.js';
import { SendTree } from './transfers/send-tree.js';
import { transferStore } from './transfers/store.js';

/** Time beyond the drain for interrupting the last transfers and releasing the sessions. */
const STOP_MARGIN_MS = 20_000;
const START_AGAIN_MS = 5000;
/** How long the start waits for the trees of files. */
const PREPARE_MS = 5000;

export interface NodeOptions
  extends
    Omit<FoundationOptions<'client'>, 'app' | 'migrations' | 'sessions'>,
    Pick<ExchangeOptions, 'pollMs' | 'progressMs' | 'leaseMs' | 'placeLookMs'> {
  readonly config: Config<'client'>;
  /** See `CertificatesOptions.lookMs`. */
  readonly storeLookMs?: number;
  /** See `DeclaredObjectsOptions.retryMs`. */
  readonly declaredRetryMs?: number;
  /** See `DelivererOptions.lookMs`. */
  readonly hookLookMs?: number;
  /** See `LiveTransfersOptions`. */
  readonly liveTickMs?: number;
  readonly heartbeatMs?: number;
  /** Default: those of the configuration. */
  readonly settings?: ExchangeSettings;
  /** Between two looks at the volumes, milliseconds. Default 5000. */
  readonly volumeLookMs?: number;
  /** By which files the volumes are looked at. Default: the real file system. */
  readonly volumeFiles?: FileOperations;
  /** Bytes that are free on the volume of a directory. Default: as the operating system says. */
  readonly freeSpace?: (directory: string) => Promise<number>;
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
  const foundation = createFoundation({
    ...options,
    ...{ app: 'client', migrations: CLIENT_MIGRATIONS },
    sessions: () => exchange.pool.open,
    isFit: () => volumes.fault === undefined,
  });
  const { metrics, events, supervisor, periodic, cluster, license, audit, admission } = foundation;
  const { watch: volumes, looks: volumeLooks } = watchVolumes({
    ...{ app: 'client', config, node: options.node, supervisor, periodic, health, logger },
    ...{ marks: cluster.volumeMarks, lookMs: options.volumeLookMs, files: options.volumeFiles },
  });
  const servers = remoteServerStore(database.knex, secrets);
  const certificates = new Certificates({
    ...{ knex: database.knex, secrets, periodic, lookMs: options.storeLookMs },
    hints: {
      tell: () => cluster.events.tell('certificates'),
      subscribe: (listener) => cluster.events.subscribe('certificates', listener),
    },
  });
  followExpiry({
    ...{ knex: database.knex, logger, periodic, health, metrics, supervisor },
    files: () => options.https?.expiry() ?? Promise.resolve([]),
  });
  fetchCrls({
    ...{ knex: database.knex, logger, periodic, metrics, supervisor, certificates },
    asLeader: (work) => cluster.asLeader(work),
    refreshMs: () => config['ssl.crl-refresh'] * 60_000,
  });
  const places = placeStore(database.knex, { node: options.node, instance: cluster.pod.instance });
  const transfers = transferStore(database.knex, () => exchange.queue.running);
  useSynchronousIo(config['storage.synchronous-io']);
  const reserve = new SpaceReserve({
    bytes: () => config['storage.reserve'],
    fault: () => volumes.fault,
    ...(options.freeSpace === undefined ? {} : { free: options.freeSpace }),
  });
  const uploads = new ProcessDirectory(config['data.temp-directory']);
  const sendTree = new SendTree(config['data.directory'], uploads, reserve);
  const receivedTree = new ReceivedTree(config['data.directory'], reserve);
  const space = oneAtATime(() => reserve.fullest([receivedTree.root, sendTree.root, uploads.root]));
  health.register('storage', async () => storageHealth(await space()));
  const traces = new Traces({
    knex: database.knex,
    asLeader: cluster.asLeader,
    owners: { table: 'remote_servers', key: 'id' },
    node: options.node,
    retentionDays: config['trace.retention-days'],
    periodic,
    logger,
  });
  auditCircuits(events, audit);
  auditTransfers(events, audit, () => config['audit.transfers']);
  const hooks = createHooks({
    ...{
      knex: database.knex,
      secrets,
      config,
      periodic,
      events,
      node: options.node,
      supervisor,
      metrics,
      logger,
      audit,
    },
    ...{
      app: 'client',
      asLeader: cluster.asLeader,
      which: () => config['audit.transfers'],
      lookMs: options.hookLookMs,
    },
    recordOf: (row) => toPageRecord(row),
    casOf: async (truststore) => {
      const name = truststore ?? config['ssl.truststore-name'];
      return name === '' ? undefined : (await certificates.trust(name)).certificates;
    },
    requireTruststore: (truststoreName) => certificates.require({ truststoreName }),
  });
  supervisor.on('ready', () => hooks.deliverer.start());
  const exchange: Exchange = createExchange({
    ...{ ...options, knex: database.knex, settings, transfers, servers, receivedTree, sendTree, traces, metrics },
    tls: new RemoteTls(certificates, config, events),
    ...{ places, periodic, events, clusterEvents: cluster.events, asLeader: cluster.asLeader },
    // Before the first look it is not known whether this is the volume of the cluster.
    mayRun: () => admission.refusal === undefined && volumes.fault === undefined,
    mayRenew: () => volumes.fault?.kind !== 'silent',
  });
  certificates.on('changed', (kind) => {
    if (kind !== 'truststore') return;
    exchange.trustChanged().catch((error: unknown) => {
      logger.warn({ err: error }, 'could not find out which sessions have certificates that were revoked');
    });
  });
  admission.on('change', () => {
    exchange.queue.wake();
  });
  volumes.on('change', (fault) => {
    void cluster.leader.refresh();
    if (fault === undefined) exchange.queue.wake();
    else exchange.queue.handOver();
  });
  health.register('queue', () => ({ status: 'UP', details: { running: exchange.queue.running } }));
  clientMetrics(metrics, { knex: database.knex, secrets, supervisor, exchange, volumes, space });
  const live = new LiveTransfers({
    ...{ events, periodic },
    source: liveSource(database.knex, transfers, (id) => exchange.queue.progressOf(id)),
    hints: {
      tell: () => cluster.events.tell('transfers'),
      subscribe: (listener) => cluster.events.subscribe('transfers', listener),
    },
    mostConnections: () => config['http.max-connections'],
    ...{ tickMs: options.liveTickMs, heartbeatMs: options.heartbeatMs },
  });
  events.subscribe(TRANSFER_OVER, ({ row }) => live.changed(row.id));
  const services = createServices({
    ...{ certificates, servers, transfers, sendTree, receivedTree, exchange, settings, events, audit },
  });
  const declared = new DeclaredObjects({
    ...{ app: 'client', config, file: options.configFile ?? '', database, secrets, supervisor },
    ...{ periodic, health, metrics, logger, retryMs: options.declaredRetryMs },
    resources: declaredResources({ ...services, servers, secrets }),
  });
  const app = createApp({
    ...{ config, info, logger, health, metrics, events, database: supervisor, periodic, license, audit, cluster },
    ...{ ...services, certificates, servers, traces, live, hooks },
  });

  const sums = new HistorySums({
    ...{ knex: database.knex, asLeader: cluster.asLeader, table: SUMMED },
    ...{ periodic, logger },
  });
  const retention = new HistoryRetention({
    ...{ knex: database.knex, asLeader: cluster.asLeader, table: HISTORY },
    ...{ days: retentionDays(config), periodic, logger },
  });
  const stop = new AbortController();
  const isStopped = (): boolean => stop.signal.aborted;
  const trees = async (): Promise<void> => {
    await sendTree.prepare();
    await receivedTree.prepare();
    await prepareUploads(uploads, settings.stagingRetention, logger);
  };
  // A volume may answer late, and then with an error that passes: each attempt to begin asks again.
  const prepare = untilDone(() => unlessAborted(trees(), stop.signal));
  const begin = (): void => {
    prepare()
      .then(() => volumeLooks.runNow())
      .then(exchange.start)
      .then(
        () => {
          if (!isStopped()) retention.start();
          if (!isStopped()) sums.start();
          cluster.leader.start();
          // Behind the queue: transfers go with the servers that are there, whatever the file says.
          if (!isStopped()) void declared.start();
        },
        (error: unknown) => {
          if (isStopped()) return;
          logger.error({ err: error }, 'could not start the queue: trying again');
          // The database may be there all the while, and say `ready` no more: a statement was too slow, or lost a deadlock.
          setTimeout(() => {
            if (supervisor.ready && !isStopped()) begin();
          }, options.pollMs ?? START_AGAIN_MS).unref();
        },
      );
  };
  const drainMs = config['shutdown.drain-timeout'] * 1000;
  const steps = {
    database: foundation.step,
    spans: spansStep({ config, app: 'client', version: options.info.version, node: options.node, events }),
    files: {
      name: 'files',
      start: async () => {
        // A volume that does not answer is waited for later: the service runs meanwhile, and says why it is not ready.
        const prepared = await settledWithin(prepare(), PREPARE_MS);
        if (prepared.kind === 'failed') throw prepared.error;
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
        void cluster.leave();
        stop.abort();
        await declared.stop();
        await live.close();
        await retention.stop();
        await sums.stop();
        // Beside the last transfers: what these order is left to the next pod, or to the next start.
        await Promise.all([exchange.stop(drainMs), hooks.deliverer.stop(drainMs)]);
        await certificates.stop();
      },
      stopTimeoutMs: drainMs + STOP_MARGIN_MS,
    },
  } satisfies Record<string, LifecycleStep>;
  return {
    ...{ app, license, cluster, metrics, certificates, exchange, supervisor },
    reloaded: () => {
      foundation.reloaded();
      declared.reload();
    },
    ...{ servers, transfers, settings, steps },
  };
};

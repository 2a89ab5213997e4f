import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';

import {
  Certificates,
  fetchCrls,
  followExpiry,
  LocalAuthority,
  ownLists,
  renewManaged,
} from '@pesit-node/certificates';
import type { Cluster } from '@pesit-node/cluster';
import { settledWithin, unlessAborted } from '@pesit-node/ground';
import { createFoundation } from '@pesit-node/license';
import type { FoundationOptions, LicenseKeeper } from '@pesit-node/license';
import { HistoryRetention, PasswordHasher, PasswordVerifier, retentionDays, Traces } from '@pesit-node/service';
import type { Config, DatabaseSupervisor, LifecycleStep, Metrics } from '@pesit-node/service';
import { LocalFileStores, SpaceReserve, useSynchronousIo } from '@pesit-node/storage';
import type { FileOperations, FileStores } from '@pesit-node/storage';
import {
  auditTransfers,
  LiveTransfers,
  meterTransfers,
  oneAtATime,
  storageHealth,
  watchVolumes,
} from '@pesit-node/transfers';
import type { Express } from 'express';

import { createApp } from './app.js';
import { ListenerTls } from './certificates/listener-tls.js';
import { Directories } from './files/directories.js';
import { ConnectionTimes } from './observers/connection-times.js';
import { Exchange } from './exchange/exchange.js';
import { logExchange } from './observers/exchange-log.js';
import { Housekeeping } from './recovery/housekeeping.js';
import { OpenSessions } from './admission/open-sessions.js';
import { PartnerPasswords } from './admission/partner-passwords.js';
import { SessionPlaces } from './admission/session-places.js';
import { PasswordRenewals } from './admission/password-renewals.js';
import { ProgressReporter } from './observers/progress-reporter.js';
import { Quotas } from './admission/quotas.js';
import { Recovery } from './recovery/recovery.js';
import { Restarts } from './recovery/restarts.js';
import { RunningTransfers } from './recovery/running-transfers.js';
import { UnansweredRequests } from './recovery/unanswered.js';
import { ListenersHere } from './listeners/listeners-here.js';
import { PodLines } from './listeners/pod-lines.js';
import { ListenerService } from './listeners/service.js';
import { ListenerStore } from './listeners/store.js';
import { serverMetrics } from './metrics.js';
import { MIGRATIONS } from './migrations/index.js';
import { PartnerStore } from './partners/store.js';
import { listenerLook, servingTasks } from './serving-tasks.js';
import { Startup } from './startup.js';
import { sessionEnd, sessionRefusal } from './admission/volume-refusal.js';
import { PartnerTraces } from './traces/partner-traces.js';
import { TransferContexts } from './transfers/contexts.js';
import { Instances } from './transfers/instances.js';
import { HISTORY } from './transfers/history.js';
import { liveSource } from './transfers/live-source.js';
import { TransferJournal } from './transfers/journal.js';
import { SentPoints } from './transfers/sent-points.js';
import { TransferStore } from './transfers/store.js';
import { Turns } from './turns.js';
import { WaitingFiles } from './transfers/waiting-files.js';
import { VirtualFileStore } from './virtual-files/store.js';

export interface NodeOptions extends Omit<FoundationOptions<'server'>, 'app' | 'migrations' | 'sessions'> {
  readonly config: Config<'server'>;
  /** Makes the hashes of partners' passwords. Default: under `secrets`, at the cost of today. */
  readonly passwords?: PasswordHasher;
  /** Default: one of its own, over `passwords`. */
  readonly verifier?: PasswordVerifier;
  /** See `JournalOptions`. */
  readonly patienceMs?: number;
  /** Between two writes of the figures of running transfers, milliseconds. Default 2000. */
  readonly progressMs?: number;
  /** See `TracesOptions.gatherMs`. */
  readonly traceGatherMs?: number;
  /** How long running transfers may continue when a listener stops, milliseconds. Default: `shutdown.drain-timeout`. */
  readonly drainMs?: number;
  /** See `ListenersHereOptions`. Default 3000 with `cluster.enabled`, else 0. */
  readonly answerMs?: number;
  /** Bytes that are free on the volume of a directory. Default: as the operating system says. */
  readonly freeSpace?: (directory: string) => Promise<number>;
  /** See `LiveTransfersOptions`. */
  readonly liveTickMs?: number;
  readonly heartbeatMs?: number;
  /** Between two looks at listeners that failed, milliseconds. Default 1000. */
  readonly listenerRetryMs?: number;
  /** Between two looks at the places of sessions that other pods want, milliseconds. Default 5000. */
  readonly placeLookMs?: number;
  /** Between two looks at what is wanted of the listeners, milliseconds. Default 5000. */
  readonly listenerLookMs?: number;
  /** Between two looks at the partners of open sessions, milliseconds. Default 5000. */
  readonly partnerLookMs?: number;
  /** See `CertificatesOptions.lookMs`. */
  readonly storeLookMs?: number;
  /** See `InstancesOptions`. */
  readonly leaseMs?: number;
  /** Between two looks at the volumes, milliseconds. Default 5000. */
  readonly volumeLookMs?: number;
  /** By which files the volumes are looked at. Default: the real file system. */
  readonly volumeFiles?: FileOperations;
  /** See `RestartsOptions`. Default: a fifth longer than a lease. */
  readonly restartWaitMs?: number;
  /** Where files lie that are sent and received. Default: the local disk. */
  readonly stores?: FileStores;
}

export interface ServerNode {
  readonly app: Express;
  readonly license: LicenseKeeper;
  readonly cluster: Cluster;
  readonly metrics: Metrics<'server'>;
  /** See `Foundation`. */
  readonly reloaded: () => void;
  readonly certificates: Certificates;
  readonly listeners: ListenersHere;
  readonly supervisor: DatabaseSupervisor;
  readonly housekeeping: Housekeeping;
  /** Step of the foundation. To be started first, and stopped last. */
  readonly databaseStep: LifecycleStep;
  /** Recovery, and the listeners with `autoStart`, as soon as the database is there. To be stopped first. */
  readonly exchangeStep: LifecycleStep;
  /** Resolves when `exchangeStep`, once started, has done all that, or was stopped. */
  readonly whenBegun: () => Promise<void>;
}

/** How long a balancer may take to see that a pod is no longer ready: until then partners are still sent to it. */
const BALANCER_MS = 3000;
/** How long the start waits for the default directories. */
const PREPARE_MS = 5000;
/** Between two attempts to begin, when the database fails in between. */
const RETRY_MS = 1000;
/** Between two looks at the partners of open sessions: another pod may have changed them, and its word may be lost. */
const PARTNER_LOOK_MS = 5000;
/** How long writing what is left may take after the last session. */
const LAST_RECORDS_MS = 5000;

/** Everything of the server app that is not the process itself. */
export const createNode = (options: NodeOptions): ServerNode => {
  const { config, logger, health, info, database, node } = options;
  const { passwords = new PasswordHasher(options.secrets) } = options;
  const { verifier = new PasswordVerifier({ check: (password, stored) => passwords.verify(password, stored) }) } =
    options;
  const { knex } = database;
  const foundation = createFoundation({
    ...options,
    ...{ app: 'server', migrations: MIGRATIONS },
    sessions: () => listenersHere.activeConnections,
    isFit: () => volumes.fault === undefined,
  });
  const { metrics, events, supervisor, periodic, cluster, license, audit, admission, reloaded } = foundation;
  const instance = randomUUID();
  const running = new RunningTransfers();
  const journal = new TransferJournal({
    ...{ knex, events, node, instance },
    underWay: () => running.count,
    database: supervisor,
    ...(options.patienceMs === undefined ? {} : { patienceMs: options.patienceMs }),
  });
  const { watch: volumes, looks: volumeLooks } = watchVolumes({
    ...{ app: 'server', config, node, supervisor, periodic, health, logger },
    ...{ marks: cluster.volumeMarks, mayShare: config['cluster.listeners'] === 'all' },
    ...{ lookMs: options.volumeLookMs, files: options.volumeFiles },
  });
  const directories = new Directories(config);
  const partners: PartnerStore = new PartnerStore(knex, () => {
    cluster.events.tell('partners');
    return partnerLook.runNow();
  });
  const sessions = new OpenSessions(partners);
  const partnerLook = periodic.add({
    name: 'look at the partners of open sessions',
    intervalMs: options.partnerLookMs ?? PARTNER_LOOK_MS,
    jitter: 0.1,
    first: 'after an interval',
    run: () => sessions.look(),
  });
  cluster.events.subscribe('partners', () => partnerLook.runNow());
  const certificates = new Certificates({
    ...{ knex, periodic, secrets: options.secrets, lookMs: options.storeLookMs, own: ownLists(knex) },
    hints: {
      tell: () => cluster.events.tell('certificates'),
      subscribe: (listener) => cluster.events.subscribe('certificates', listener),
    },
  });
  certificates.on('changed', (kind) => {
    if (kind !== 'truststore') return;
    sessions.lookAtCertificates().catch((error: unknown) => {
      logger.warn({ err: error }, 'could not find out which sessions have certificates that were revoked');
    });
  });
  const authority = new LocalAuthority({ knex, certificates, secrets: options.secrets });
  followExpiry({
    ...{ knex, logger, periodic, health, metrics, supervisor },
    files: () => options.https?.expiry() ?? Promise.resolve([]),
  });
  fetchCrls({
    ...{ knex, logger, periodic, metrics, supervisor, certificates },
    asLeader: (work) => cluster.asLeader(work),
    refreshMs: () => config['ssl.crl-refresh'] * 60_000,
  });
  const virtualFiles = new VirtualFileStore(knex);
  const listenerStore = new ListenerStore(knex);
  const stagingDays = config['transfer.staging-retention'];
  const sentPoints = new SentPoints(knex);
  const stores = options.stores ?? new LocalFileStores();
  const waitingFiles = new WaitingFiles(knex, stores);
  const contexts = new TransferContexts({ knex, node, instance, retentionDays: stagingDays });
  const instances = new Instances({
    ...{ knex, periodic, logger, instance, node },
    exclusive: database.mode === 'embedded',
    mayRenew: () => volumes.fault?.kind !== 'silent',
    ...(options.leaseMs === undefined ? {} : { leaseMs: options.leaseMs }),
  });
  const recovery = new Recovery({ config, contexts, journal, instances, events });
  volumes.on('change', (fault) => {
    void cluster.leader.refresh();
    if (fault === undefined) return;
    sessions.leave(sessionEnd(fault));
    // Nothing moves in them, and their partners can continue on another pod.
    if (fault.kind === 'silent') running.abortAll(sessionEnd(fault));
  });
  instances.on('again', () => {
    running.endLost(contexts).catch((error: unknown) => {
      // Each asks again before it delivers anything.
      logger.debug({ err: error }, 'could not ask whether the transfers of this process are still its own');
    });
  });
  const restarts = new Restarts({
    contexts,
    recovery,
    running,
    events,
    waitMs: options.restartWaitMs ?? instances.leaseMs * 1.2,
  });
  const receiveDirectories = async (): Promise<readonly string[]> => {
    const rows = [...(await virtualFiles.list()), ...(await listenerStore.list())];
    const configured = rows.map(({ receive_directory: path }) => path).filter((path) => path !== null);
    return [...new Set([directories.received, ...configured.map((path) => directories.resolve(path))])];
  };
  useSynchronousIo(config['storage.synchronous-io']);
  const reserve = new SpaceReserve({
    bytes: () => config['storage.reserve'],
    fault: () => volumes.fault,
    ...(options.freeSpace === undefined ? {} : { free: options.freeSpace }),
  });
  const space = oneAtATime(async () =>
    reserve.fullest(supervisor.ready ? await receiveDirectories() : [directories.received]),
  );
  const housekeeping = new Housekeeping({
    ...{ contexts, sentPoints, instances, recovery, receiveDirectories, retentionDays: stagingDays },
    asLeader: cluster.asLeader,
    ...{ periodic, events, logger },
  });
  const retention = new HistoryRetention({
    ...{ knex, asLeader: cluster.asLeader, table: HISTORY, periodic, logger },
    // So long a restart of a completed transfer is recognised.
    days: retentionDays(config, stagingDays),
  });
  const traces = new Traces({
    ...{ knex, asLeader: cluster.asLeader, node, periodic, logger },
    owners: { table: 'partners', key: 'partner_id' },
    retentionDays: config['trace.retention-days'],
    ...(options.traceGatherMs === undefined ? {} : { gatherMs: options.traceGatherMs }),
  });
  const renewals = new PasswordRenewals(partners, passwords, verifier, logger);
  logExchange(events, logger);
  meterTransfers(events, metrics);
  auditTransfers(events, audit, () => config['audit.transfers']);
  periodic.add(new ProgressReporter(events, journal, options.progressMs).task);
  const places = new SessionPlaces({
    ...{ knex, logger, instance: cluster.pod.instance, exclusive: database.mode === 'embedded' },
    living: () => (cluster.members.view?.pods ?? []).map((pod) => pod.instance),
    events: cluster.events,
    lookMs: options.placeLookMs,
  });
  const times = new ConnectionTimes(events, partners, logger);
  const exchange = new Exchange(
    {
      config,
      tls: new ListenerTls(certificates, config, events),
      admitting: {
        config,
        partners,
        passwords: new PartnerPasswords(verifier, renewals),
        admission: {
          get refusal() {
            return admission.refusal ?? (volumes.fault && sessionRefusal(volumes.fault));
          },
        },
        places,
        sessions,
      },
      records: {
        journal,
        contexts,
        lease: instances,
        sentPoints,
        restarts,
        running,
        unanswered: new UnansweredRequests(),
      },
      files: {
        config,
        virtualFiles,
        directories,
        stores,
        reserve,
        volumes,
        quotas: new Quotas(waitingFiles),
        outgoing: new Set(),
        looks: new Turns(),
      },
      observing: { events, traces: new PartnerTraces(traces, events) },
    },
    times,
  );
  const drainMs = options.drainMs ?? config['shutdown.drain-timeout'] * 1000;
  const listenersHere: ListenersHere = new ListenersHere({
    ...{ store: listenerStore, bind: exchange.bind, logger, drainMs, now: Date.now },
    answerMs: options.answerMs ?? (config['cluster.enabled'] ? BALANCER_MS : 0),
    isChosen: () => config['cluster.listeners'] === 'all' || cluster.leader.isLeader,
    changed: () => void listeners.report(),
  });
  const listeners = new ListenerService({
    ...{ store: listenerStore, here: listenersHere, events, audit, logger },
    lines: new PodLines(knex, cluster.pod.instance),
    pod: cluster.pod,
    living: () => cluster.members.view?.pods ?? [],
    tell: () => cluster.events.tell('listeners'),
  });
  const transfers = new TransferStore(knex);
  const live = new LiveTransfers({
    ...{ events, periodic, source: liveSource(knex, transfers) },
    hints: {
      tell: () => cluster.events.tell('transfers'),
      subscribe: (listener) => cluster.events.subscribe('transfers', listener),
    },
    mostConnections: () => config['http.max-connections'],
    ...{ tickMs: options.liveTickMs, heartbeatMs: options.heartbeatMs },
  });
  const app = createApp({
    config,
    info,
    logger,
    health,
    metrics,
    events,
    database: supervisor,
    periodic,
    license,
    audit,
    cluster,
    certificates,
    authority,
    knex,
    partners,
    passwords,
    virtualFiles,
    listeners,
    transfers,
    live,
    traces,
    directories,
  });
  serverMetrics(metrics, { knex, secrets: options.secrets, supervisor, listenerStore, listenersHere, volumes, space });
  health.register('startup', () => startup.health(), { readiness: true });
  health.register('listeners', () => listenersHere.health(), { readiness: true });
  health.register('storage', async () => storageHealth(await space()));
  const startup = new Startup();
  /** Tasks that end when the node begins to stop; leases are renewed, and figures written, as long as transfers run. */
  const whileServing = [partnerLook];
  const serve = (): void => {
    const { listenerRetryMs, listenerLookMs } = options;
    const tasks = servingTasks({ listenersHere, journal, waitingFiles, listenerRetryMs });
    const renewal = renewManaged({
      ...{ authority, events, days: () => config['pesit.cert-rotation-days'] },
      asLeader: (work) => cluster.asLeader(work),
    });
    whileServing.push(periodic.add(renewal));
    whileServing.push(...tasks.map((task) => periodic.add(task)));
    const look = periodic.add(listenerLook(listeners, listenerLookMs));
    const lookAtPlaces = periodic.add(places.task);
    whileServing.push(look, lookAtPlaces);
    cluster.events.subscribe('sessions', () => lookAtPlaces.runNow());
    cluster.events.subscribe('listeners', () => look.runNow());
    // With `cluster.listeners: leader` they follow the leader.
    cluster.leader.on('gain', () => void look.runNow());
    cluster.leader.on('loss', () => void look.runNow());
    housekeeping.start();
    retention.start();
    traces.start();
    cluster.leader.start();
  };

  const stop = new AbortController();
  let preparing: Promise<void> = Promise.resolve();
  const volumesAreWell = async (): Promise<void> => {
    while (volumes.fault !== undefined) {
      startup.failed(volumes.fault.reason);
      await once(volumes, 'change', { signal: stop.signal });
    }
  };
  const begin = async (): Promise<void> => {
    const isOver = (): boolean => stop.signal.aborted;
    while (!isOver()) {
      try {
        startup.waitFor('database');
        await supervisor.whenReady(stop.signal);
        startup.waitFor('volumes');
        await preparing;
        await volumeLooks.runNow();
        await volumesAreWell();
        startup.waitFor('recovery');
        await instances.start();
        await recovery.run();
        startup.waitFor('license');
        // Before the first partner: it must not be sent away only because these were not read yet.
        await cluster.members.refresh();
        await license.refresh();
        startup.waitFor('listeners');
        await listeners.look();
        startup.done();
        serve();
        return;
      } catch (error) {
        if (isOver()) return;
        startup.failed((error as Error).message);
        logger.error({ err: error }, 'could not start the listeners yet: trying again');
        await delay(RETRY_MS, undefined, { signal: stop.signal }).catch(() => undefined);
      }
    }
  };
  let beginning: Promise<void> = Promise.resolve();

  return {
    app,
    license,
    cluster,
    metrics,
    reloaded,
    certificates,
    listeners: listenersHere,
    supervisor,
    housekeeping,
    databaseStep: foundation.step,
    exchangeStep: {
      name: 'listeners',
      start: async () => {
        preparing = unlessAborted(directories.prepare(), stop.signal);
        // One that does not answer is waited for later: the service runs meanwhile, and says why it is not ready.
        const prepared = await settledWithin(preparing, PREPARE_MS);
        if (prepared.kind === 'failed') throw prepared.error;
        // The database may come later: the service runs meanwhile, and says why it is not ready.
        beginning = begin();
      },
      stop: async () => {
        stop.abort();
        await live.close();
        await beginning;
        await Promise.all(whileServing.map((task) => task.remove()));
        // Its place goes to the next pod now: what still runs here ends, and nothing new begins.
        void cluster.leave();
        await listenersHere.close();
        await listeners.report();
        await exchange.settled();
        await places.close();
        await renewals.stop();
        await traces.stop();
        await housekeeping.stop();
        await retention.stop();
        await journal.settled(LAST_RECORDS_MS);
        await certificates.stop();
        await instances.stop();
      },
      stopTimeoutMs: BALANCER_MS + drainMs + 2 * LAST_RECORDS_MS,
    },
    whenBegun: () => beginning,
  };
};

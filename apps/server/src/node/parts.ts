import { createHooks } from '@pesit-node/hooks';
import { createFoundation } from '@pesit-node/license';
import { Rates } from '@pesit-node/net';
import {
  DeclaredObjects,
  HistoryRetention,
  HistorySums,
  PasswordHasher,
  PasswordVerifier,
  retentionDays,
  Traces,
} from '@pesit-node/service';
import { auditTransfers, LiveTransfers, meterTransfers, storageHealth, watchVolumes } from '@pesit-node/transfers';

import { OpenSessions } from '../admission/open-sessions.js';
import { PartnerPasswords } from '../admission/partner-passwords.js';
import { PasswordRenewals } from '../admission/password-renewals.js';
import { Quotas } from '../admission/quotas.js';
import { SessionPlaces } from '../admission/session-places.js';
import { sessionEnd, sessionRefusal } from '../admission/volume-refusal.js';
import { createApp } from '../app.js';
import { ListenerTls } from '../certificates/listener-tls.js';
import { Exchange } from '../exchange/exchange.js';
import { availableFiles } from '../files/available.js';
import { listenerRequests } from '../listeners/requests.js';
import { ListenersHere } from '../listeners/listeners-here.js';
import { PodLines } from '../listeners/pod-lines.js';
import { ListenerService } from '../listeners/service.js';
import { ListenerStore } from '../listeners/store.js';
import { declaredResources } from '../declared.js';
import { serverMetrics } from '../metrics.js';
import { MIGRATIONS } from '../migrations/index.js';
import { ConnectionTimes } from '../observers/connection-times.js';
import { logExchange } from '../observers/exchange-log.js';
import { ProgressReporter } from '../observers/progress-reporter.js';
import { partnerService } from '../partners/service.js';
import { PartnerStore } from '../partners/store.js';
import { Housekeeping } from '../recovery/housekeeping.js';
import { UnansweredRequests } from '../recovery/unanswered.js';
import { PartnerTraces } from '../traces/partner-traces.js';
import { HISTORY, SUMMED } from '../transfers/history.js';
import { SessionService } from '../sessions/service.js';
import { SessionsHere } from '../sessions/sessions-here.js';
import { toTransfer } from '../transfers/answers.js';
import { cancelling } from '../transfers/cancel.js';
import { transferContent } from '../transfers/content.js';
import { liveSource } from '../transfers/live-source.js';
import { TransferStore } from '../transfers/store.js';
import { WaitingFiles } from '../transfers/waiting-files.js';
import { partnerTests } from '../trials/partner-tests.js';
import { Trials } from '../trials/trials.js';
import { Turns } from '../turns.js';
import { virtualFileService } from '../virtual-files/service.js';
import { VirtualFileStore } from '../virtual-files/store.js';
import { createCertificates } from './certificates.js';
import { createFiles } from './files.js';
import type { NodeOptions } from './options.js';
import { createRecords } from './records.js';

/** How long a balancer may take to see that a pod is no longer ready: until then partners are still sent to it. */
export const BALANCER_MS = 3000;
/** Between two looks at the partners of open sessions: another pod may have changed them, and its word may be lost. */
const PARTNER_LOOK_MS = 5000;

/** The parts of the server app, tied to each other. None of them has begun: that is the business of `order.ts`. */
export const createParts = (options: NodeOptions) => {
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
  const { metrics, events, supervisor, periodic, cluster, license, audit, admission } = foundation;
  const { watch: volumes, looks: volumeLooks } = watchVolumes({
    ...{ app: 'server', config, node, supervisor, periodic, health, logger },
    ...{ marks: cluster.volumeMarks, mayShare: config['cluster.listeners'] === 'all' },
    ...{ lookMs: options.volumeLookMs, files: options.volumeFiles },
  });
  const records = createRecords(options, foundation, volumes);
  const { running, journal, contexts, instances, recovery, completed, restarts, sentPoints } = records;
  const underWay = () => running.count;
  const changed = () => {
    cluster.events.tell('partners');
    return partnerLook.runNow();
  };
  const partners: PartnerStore = new PartnerStore(knex, changed, underWay);
  const sessions = new OpenSessions(partners);
  const partnerLook = periodic.add({
    name: 'look at the partners of open sessions',
    intervalMs: options.partnerLookMs ?? PARTNER_LOOK_MS,
    jitter: 0.1,
    first: 'after an interval',
    run: () => sessions.look(),
  });
  cluster.events.subscribe('partners', () => partnerLook.runNow());
  const { certificates, authority, tickets, ticketLook } = createCertificates(options, foundation, sessions);
  const virtualFiles = new VirtualFileStore(knex, underWay);
  const listenerStore = new ListenerStore(knex);
  volumes.on('change', (fault) => {
    void cluster.leader.refresh();
    if (fault === undefined) return;
    sessions.leave(sessionEnd(fault));
    // Nothing moves in them, and their partners can continue on another pod.
    if (fault.kind === 'silent') running.abortAll(sessionEnd(fault));
  });
  const configured = { virtualFiles, listeners: listenerStore };
  const files = createFiles(options, configured, supervisor, volumes);
  const { directories, stores, receiveDirectories, reserve, space } = files;
  const waitingFiles = new WaitingFiles(knex, stores);
  const stagingDays = config['transfer.staging-retention'];
  const housekeeping = new Housekeeping({
    ...{ contexts, sentPoints, instances, recovery, completed, receiveDirectories, retentionDays: stagingDays },
    asLeader: cluster.asLeader,
    ...{ periodic, events, logger },
  });
  const sums = new HistorySums({ ...{ knex, asLeader: cluster.asLeader, table: SUMMED }, ...{ periodic, logger } });
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
  const hooks = createHooks({
    ...{ knex, secrets: options.secrets, config, periodic, events, node, supervisor, metrics, logger, audit },
    ...{
      app: 'server',
      asLeader: cluster.asLeader,
      which: () => config['audit.transfers'],
      lookMs: options.hookLookMs,
    },
    recordOf: toTransfer,
    casOf: async (truststore) => {
      const name = truststore ?? config['ssl.truststore-name'];
      return name === '' ? undefined : (await certificates.trust(name)).certificates;
    },
    requireTruststore: (truststoreName) => certificates.require({ truststoreName }),
  });
  supervisor.on('ready', () => hooks.deliverer.start());
  periodic.add(new ProgressReporter(events, journal, options.progressMs).task);
  const places = new SessionPlaces({
    ...{ knex, logger, instance: cluster.pod.instance, exclusive: database.mode === 'embedded' },
    living: () => (cluster.members.view?.pods ?? []).map((pod) => pod.instance),
    events: cluster.events,
    lookMs: options.placeLookMs,
  });
  const sessionsHere = new SessionsHere(events, cluster.pod.name);
  const times = new ConnectionTimes(events, partners, logger);
  const fileParts = {
    ...{ config, virtualFiles, directories, stores, reserve, volumes },
    quotas: new Quotas(waitingFiles),
    rates: new Rates(),
    outgoing: new Set<string>(),
    looks: new Turns(),
  };
  const trials = new Trials();
  const tls = new ListenerTls(certificates, config, events, tickets);
  const exchange = new Exchange(
    {
      config,
      tls,
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
        trials,
        audit,
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
      files: fileParts,
      observing: { events, traces: new PartnerTraces(traces, events), sessions: sessionsHere },
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
  const sessionService = new SessionService({
    here: sessionsHere,
    requests: cluster.requests,
    listeners: listenerStore,
  });
  const asked = {
    partners: partnerService({ config, partners, passwords, events, audit }),
    virtualFiles: virtualFileService({ virtualFiles, directories, events, audit }),
    listenerRequests: listenerRequests({ listeners, directories, certificates }),
  };
  const declared = new DeclaredObjects({
    ...{ app: 'server', config, file: options.configFile ?? '', database, secrets: options.secrets, supervisor },
    ...{ periodic, health, metrics, logger, retryMs: options.declaredRetryMs },
    resources: declaredResources({ ...asked, listeners: asked.listenerRequests, listenerStore, passwords }),
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
    ...asked,
    listeners,
    transfers,
    live,
    cancel: cancelling({ store: transfers, running, requests: cluster.requests }),
    available: availableFiles({ files: fileParts, config, journal, partners, listeners: listenerStore }),
    testPartner: partnerTests({
      ...{ config, partners, virtualFiles, listeners, listenersHere, tls, trials, events },
    }),
    openContent: transferContent({ config, transfers, directories, stores, volumes, audit }),
    sessions: sessionService,
    traces,
    hooks,
  });
  serverMetrics(metrics, { knex, secrets: options.secrets, supervisor, listenerStore, listenersHere, volumes, space });
  health.register('listeners', () => listenersHere.health(), { readiness: true });
  health.register('storage', async () => storageHealth(await space()));
  return {
    ...{
      foundation,
      app,
      certificates,
      authority,
      declared,
      directories,
      drainMs,
      exchange,
      hooks,
      housekeeping,
      instances,
    },
    ...{ journal, listeners, listenersHere, live, partnerLook, places, recovery, renewals, retention, sums },
    ...{ ticketLook, traces, volumes, volumeLooks, waitingFiles },
  };
};

export type NodeParts = ReturnType<typeof createParts>;

import type { AppName, AppScope } from '../config/keys.js';

export type MetricType = 'counter' | 'gauge' | 'histogram';

/** Label → its values, or in words what bounds them: nothing that a peer may choose freely becomes a label. */
export type MetricLabels = Readonly<Record<string, readonly string[] | string>>;

/** One row of the table: all that the registry, the code that counts and the documentation need to know of a metric. */
export interface Metric {
  readonly type: MetricType;
  readonly apps: AppScope;
  readonly labels: MetricLabels;
  readonly help: string;
  /** Upper bounds of a histogram. */
  readonly buckets?: readonly number[];
}

const row = <const T extends MetricType, const A extends AppScope, const L extends MetricLabels>(
  type: T,
  apps: A,
  labels: L,
  help: string,
) => ({ type, apps, labels, help });

/** Which side of PeSIT the app is; filled in by the registry. */
const kind = ['inbound', 'outbound'] as const;
/** As this node sees it: RECEIVE = a file came here. */
const direction = ['SEND', 'RECEIVE'] as const;
const status = ['COMPLETED', 'FAILED', 'CANCELLED'] as const;
const diagnostic = 'PeSIT diagnostic, `other` for one that is not in docs/diagnostics.md';

/** From a file of a few bytes to hours: of a giant, or in the queue for a partner that is away. */
const TRANSFER_SECONDS = [0.01, 0.05, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 14_400];
/** From what a good disk takes to what ends a session. */
const STORAGE_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 20];

/**
 * The table of metrics (design §4, Metrics): add a row here and it is registered, typed and documented. Counters and
 * histograms count what happened in this process since its start; gauges are read at each scrape.
 */
export const METRICS = {
  service_build_info: row('gauge', 'both', { version: 'of the app' }, 'Always 1.'),
  service_transfers_total: row(
    'counter',
    'both',
    { kind, direction, status },
    'Transfers and messages that ended. Server app: each attempt of a partner; client app: when no further attempt follows.',
  ),
  service_bytes_transferred_total: row(
    'counter',
    'both',
    { kind, direction },
    'Bytes of article data, as PI 27 counts them; what a restart does not send again does not count again.',
  ),
  pesit_transfers_started_total: row(
    'counter',
    'both',
    { direction },
    'Transfers and messages that began: server app, accepted ones; client app, attempts.',
  ),
  pesit_transfers_running: row('gauge', 'both', { direction }, 'Transfers that this process has now.'),
  pesit_transfer_duration_seconds: {
    ...row(
      'histogram',
      'both',
      { direction },
      'From the begin of the last attempt to the end, of COMPLETED transfers.',
    ),
    buckets: TRANSFER_SECONDS,
  },
  pesit_flush_duration_seconds: {
    ...row('histogram', 'both', {}, 'Flushes of received data and their points to stable storage.'),
    buckets: STORAGE_SECONDS,
  },
  pesit_acknowledgement_seconds: {
    ...row(
      'histogram',
      'both',
      { of: ['SYN', 'TRANS.END'] },
      'From a SYN of a file that is received, or a TRANS.END of a partner, to the acknowledgement.',
    ),
    buckets: STORAGE_SECONDS,
  },
  pesit_transfer_errors_total: row(
    'counter',
    'both',
    { direction, diagnostic },
    'Transfers and messages that were refused, interrupted or failed, each attempt of its own.',
  ),
  pesit_peer_transfers_total: row(
    'counter',
    'both',
    {
      peer: 'identifier of a configured partner (server app), name of a remote server (client app)',
      direction,
      status,
    },
    'The same as service_transfers_total, by peer.',
  ),
  pesit_transfer_restarts_total: row(
    'counter',
    'both',
    { direction },
    'Transfers that continued from a sync point instead of from the start.',
  ),
  pesit_sync_points_total: row(
    'counter',
    'both',
    { direction },
    'Sync points: RECEIVE, stored and acknowledged; SEND, sent.',
  ),
  pesit_sessions_open: row('gauge', 'both', {}, 'PeSIT sessions that are open; client app: idle ones included.'),
  pesit_sessions_total: row('counter', 'both', {}, 'PeSIT sessions that were opened.'),
  pesit_sessions_refused_total: row(
    'counter',
    'both',
    { diagnostic: `${diagnostic}; \`none\` when there was no CONNECT` },
    'Sessions that were refused: server app, connections of partners; client app, by remote servers, or not to be opened.',
  ),
  pesit_login_failures_total: row(
    'counter',
    'both',
    { result: ['wrong', 'blocked'] },
    'Failed logins of the REST interface: `wrong` = answered 401, `blocked` = answered 429, after too many of the same user from the same address.',
  ),
  pesit_audit_entries_total: row(
    'counter',
    'both',
    { outcome: ['written', 'lost', 'pruned'] },
    'Entries of the audit log: written by this process, lost because too many waited for the database, removed as the oldest.',
  ),
  pesit_hook_attempts_total: row(
    'counter',
    'both',
    { by: ['webhook', 'executable'], outcome: ['delivered', 'failed', 'given_up', 'interrupted'] },
    'Attempts of hooks: `failed` = another one follows, `given_up` = none does, `interrupted` = this process stopped, and another one tries again.',
  ),
  pesit_hook_given_up_total: row(
    'counter',
    'both',
    { cause: ['failed', 'not_tried', 'too_many'] },
    'Deliveries of hooks that were given up, so that nobody was told: `failed` = their attempts did, `not_tried` = their hook is deleted, disabled or switched off, `too_many` = more than `hooks.max-deliveries` waited.',
  ),
  pesit_hook_deliveries_waiting: row(
    'gauge',
    'both',
    {},
    'Deliveries of hooks that are not delivered yet. The same on all pods.',
  ),
  pesit_hook_oldest_seconds: row(
    'gauge',
    'both',
    {},
    'How long the oldest of these has waited; 0 when there is none. The same on all pods.',
  ),
  pesit_database_up: row('gauge', 'both', {}, '1 while the database answers and is migrated, else 0.'),
  pesit_database_connections: row(
    'gauge',
    'both',
    { state: ['used', 'idle'] },
    'Connections of this process to PostgreSQL; at most `database.pool-max`.',
  ),
  pesit_database_waiting: row('gauge', 'both', {}, 'Statements that wait for a connection to PostgreSQL.'),
  pesit_storage_free_bytes: row(
    'gauge',
    'both',
    {},
    'Bytes that are free on the fullest volume that files are received on.',
  ),
  pesit_storage_reserve_bytes: row(
    'gauge',
    'both',
    {},
    'Bytes of these that must stay free (`storage.reserve`): with less nothing new is received.',
  ),
  pesit_volumes_up: row(
    'gauge',
    'both',
    {},
    '1 while the volumes of this pod can be used, else 0: it takes no files (health component `volumes`).',
  ),
  pesit_volumes_answer_seconds: row(
    'gauge',
    'both',
    {},
    'How long the last look at the volumes took: a small file written, flushed and removed on each (`storage.answer-timeout`).',
  ),
  pesit_license_days_remaining: row('gauge', 'both', {}, 'Days until the license or the evaluation ends; 0 = blocked.'),
  pesit_license_blocked: row('gauge', 'both', {}, '1 while a license is required, else 0.'),
  pesit_cluster_pods: row('gauge', 'both', {}, 'Living pods of this app in its cluster. The same on all pods.'),
  pesit_cluster_leader: row(
    'gauge',
    'both',
    {},
    '1 while this pod leads the pods of its app in the cluster, else 0. Their sum is 1, and 0 for a few seconds while the leader changes.',
  ),
  pesit_pod_admitted: row(
    'gauge',
    'both',
    {},
    '1 while this pod may take sessions and transfers, else 0: the license is blocked, or has no place for it.',
  ),
  pesit_redis_up: row('gauge', 'both', {}, '1 while Redis is connected, else 0; absent where there is none.'),
  service_listeners: row('gauge', 'server', {}, 'Listeners that are configured.'),
  service_listeners_up: row('gauge', 'server', {}, 'Listeners that are RUNNING in this process.'),
  pesit_listeners: row(
    'gauge',
    'server',
    { status: ['STOPPED', 'STARTING', 'RUNNING', 'STOPPING', 'FAILED'] },
    'Listeners by their status in this process.',
  ),
  service_partners: row('gauge', 'server', {}, 'Partners that are configured.'),
  service_virtual_files: row('gauge', 'server', {}, 'Virtual files that are configured.'),
  pesit_declared_objects: row(
    'gauge',
    'both',
    { outcome: ['applied', 'refused'] },
    'Items of the lists in the configuration file: applied by this process, and refused, with the reasons in the log and at `/actuator/health`. None while the lists are empty.',
  ),
  pesit_secrets_under_older_keys: row(
    'gauge',
    'both',
    { column: 'table and column of the database' },
    'Stored passwords that need an older key of `secrets.key` than its first: none are left when it can be removed.',
  ),
  pesit_certificate_expiry_timestamp_seconds: row(
    'gauge',
    'both',
    { store: '`keystore/` or `truststore/` and its name; `file/` and the key of the configuration' },
    'When the first certificate of a keystore expires, the next one of a truststore, or the one of the REST interface in a file; seconds since 1970. The same on all pods that have the same files.',
  ),
  pesit_crl_next_update_timestamp_seconds: row(
    'gauge',
    'both',
    { store: 'name of the truststore' },
    'When the first of the CRLs that were fetched for a truststore has to be replaced; seconds since 1970. The same on all pods.',
  ),
  pesit_crl_failing_urls: row(
    'gauge',
    'both',
    { store: 'name of the truststore' },
    'URLs of a truststore whose CRL could not be fetched the last time. The same on all pods.',
  ),
  pesit_remote_servers: row(
    'gauge',
    'client',
    { status: ['UNKNOWN', 'CONNECTED', 'UNREACHABLE', 'REFUSED'] },
    'Remote servers by the outcome of the last contact.',
  ),
  pesit_remote_servers_circuit_open: row(
    'gauge',
    'client',
    {},
    'Remote servers whose circuit is open: their transfers wait, and one at a time tries them. The same on all pods.',
  ),
  pesit_queue_depth: row(
    'gauge',
    'client',
    { state: ['due', 'delayed', 'held'] },
    'PENDING transfers: `due` wait for a slot, `delayed` for the time of their next attempt, `held` for a disabled remote server to be enabled. The same on all pods.',
  ),
  pesit_queue_oldest_seconds: row(
    'gauge',
    'client',
    {},
    'How long the transfer that is due longest has waited; 0 when none is due. Those of a disabled remote server are not. The same on all pods.',
  ),
  pesit_queue_wait_seconds: {
    ...row(
      'histogram',
      'client',
      {},
      'From when a transfer was due (its request, `notBefore`, the time of its next attempt) to the begin of the attempt.',
    ),
    buckets: TRANSFER_SECONDS,
  },
  pesit_transfer_retries_total: row(
    'counter',
    'client',
    { reason: ['failed', 'postponed', 'interrupted'] },
    'Attempts that another one follows by itself: `postponed` = the partner asked to come again later, `interrupted` = this service was stopped or lost its lease.',
  ),
} as const satisfies Record<string, Metric>;

export type MetricName = keyof typeof METRICS;

type Row<N extends MetricName> = (typeof METRICS)[N];

/** The metrics of one type that an app has. */
export type MetricOf<A extends AppName, T extends MetricType> = {
  [N in MetricName]: Row<N>['apps'] extends 'both' | A ? (Row<N>['type'] extends T ? N : never) : never;
}[MetricName];

/** Labels of a metric that the counting code gives: `kind` is the app's. */
export type LabelsOf<N extends MetricName> = {
  readonly [L in Exclude<keyof Row<N>['labels'], 'kind'>]: Row<N>['labels'][L] extends readonly (infer V)[]
    ? V & string
    : string;
};

/** The rows of an app, loosely typed, for code that walks the table. */
export const metricRows = (app?: AppName): readonly (readonly [MetricName, Metric])[] =>
  (Object.entries(METRICS) as [MetricName, Metric][]).filter(
    ([, { apps }]) => app === undefined || apps === 'both' || apps === app,
  );

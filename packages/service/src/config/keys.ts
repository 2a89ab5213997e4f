import { AUDIT_KEYS } from './audit-keys.js';
import { CONSOLE_KEYS } from './console-keys.js';
import { DATABASE_SSL_KEYS } from './database-ssl-keys.js';
import { DECLARED_KEYS } from './declared-keys.js';
import { FLOW_KEYS } from './flow-keys.js';
import { HISTORY_KEYS } from './history-keys.js';
import { HOOK_KEYS } from './hook-keys.js';
import { decimal, flag, integer, label, list, networks, oneOf, requiredText, size, text } from './kinds.js';
import { LOGIN_KEYS } from './login-keys.js';
import { OTEL_KEYS } from './otel-keys.js';
import { POD_KEYS } from './pod-keys.js';
import { REDIS_KEYS } from './redis-keys.js';
import { key } from './row.js';
import type { AppName, ConfigKey } from './row.js';
import { SERVER_SSL_KEYS } from './server-ssl-keys.js';
import { SSL_KEYS } from './ssl-keys.js';
import { KEYS_WITHOUT_EFFECT } from './without-effect.js';

const MEBIBYTE = 1_048_576;

/**
 * The table of configuration keys (design, Configuration): add a row here and it is loaded, checked, typed and documented.
 * Units are in the row; sizes and times are plain integers in that unit.
 */
export const CONFIG_KEYS = {
  'server.port': key('both', {
    type: integer(0, 65535),
    default: 8080,
    description: 'TCP port of the REST interface; 0 lets the system choose.',
  }),
  'server.host': key('both', {
    type: text('an address or a host name'),
    default: '',
    description:
      'Address that the REST interface listens on. Empty = every IPv4 address of the machine (`0.0.0.0`), or `127.0.0.1` alone while `admin.password` is the default; together with the default password any other than a loopback address is refused.',
  }),
  ...SERVER_SSL_KEYS,
  ...CONSOLE_KEYS,
  'http.trusted-proxies': key('both', {
    type: networks(),
    default: [],
    reload: true,
    description:
      'Addresses and CIDR ranges of the proxies in front of the REST interface: their `X-Forwarded-For` says who calls, and their `X-Forwarded-Host` under which name. From anybody else both are ignored.',
  }),
  'http.max-body': key('both', {
    type: integer(1024, 1024 * MEBIBYTE),
    default: MEBIBYTE,
    defaultFor: { client: 64 * MEBIBYTE },
    unit: 'bytes',
    reload: true,
    description:
      'Largest JSON body; more is answered 413. The client app takes file contents in base64, hence its larger default.',
  }),
  'http.max-connections': key('both', {
    type: integer(16, 60_000),
    default: 256,
    reload: true,
    description:
      'Connections to the REST interface at a time, so that they leave descriptors to the PeSIT sessions. Beyond it connections without a request are closed; of those with a login 8 fewer are served at a time, the rest is answered 503.',
  }),
  'admin.username': key('both', {
    type: requiredText(),
    default: 'admin',
    reload: true,
    description: 'User of HTTP Basic.',
  }),
  'admin.password': key('both', {
    type: requiredText(),
    default: 'admin',
    secret: true,
    reload: true,
    description:
      'Password of HTTP Basic. With the default the REST interface listens on the loopback address alone; when `NODE_ENV=production` it is refused, and so is one of fewer than 8 characters.',
  }),
  ...LOGIN_KEYS,
  'data.directory': key('both', {
    type: requiredText('a directory'),
    default: './data',
    description: 'Where the service keeps its files; relative to the working directory.',
  }),
  'data.temp-directory': key('both', {
    type: text('a directory'),
    default: '',
    description:
      'Where the client app keeps uploads until they are complete, in a directory of each process (mode 0700); the server app lets no partner in. Best on the volume of `data.directory`: from another one each upload is copied. Empty = `temp` in `data.directory`.',
  }),
  'storage.roots': key('both', {
    type: list(),
    default: [],
    reload: true,
    description: 'Directories that configured paths must lie in. Empty means `data.directory` alone.',
  }),
  'storage.reserve': key('both', {
    type: size(),
    default: 256 * 1024 * 1024,
    unit: 'bytes',
    reload: true,
    description:
      'Space that received files and uploads leave free on their volumes, so that a database, logs and journals that lie there keep working. With less, nothing new is taken (2-201: come again later; an upload: 503), and what runs is interrupted with 2-219 and can be restarted later. 0 = none.',
  }),
  'storage.answer-timeout': key('both', {
    type: integer(1, 3600),
    default: 20,
    unit: 'seconds',
    reload: true,
    description:
      'How long the volumes of `data.directory` and `storage.roots` may take to write and flush a small file. A pod on which one takes longer, fails, or is read-only takes no files (partners: 3-322 and 2-201, come again later; the queue waits), is not ready, and says why until the volume is well again.',
  }),
  'storage.shared': key('both', {
    type: flag(),
    default: true,
    description:
      'Whether the pods of a cluster share `data.directory` and `storage.roots`. They mark them with a file (`.pesit-server-volume`, `.pesit-client-volume`) then, and a pod that does not find the mark, because the volume is not mounted there, takes no files. Without `cluster.enabled`, and with `cluster.listeners: leader` for the server app, nothing is marked.',
  }),
  'storage.synchronous-io': key('both', {
    type: oneOf(['auto', 'looks', 'never']),
    default: 'auto',
    description:
      'Whether the service makes calls of the file system itself while they take less than a millisecond, which spares processor time. `auto`: on file systems of this machine alone (ext4, XFS, Btrfs, ZFS, tmpfs …), never on NFS, CIFS, FUSE, Ceph, Lustre and the like, and never to flush a disk. `looks`: of these only those that change nothing (facts of a file, paths, free space). `never`: each call goes through the thread pool. Say `never` where the disk itself is reached over a network (iSCSI, RBD, EBS) and may stop answering.',
  }),
  'database.url': key('both', {
    type: text('postgresql://user:password@host:port/database, or nothing for the embedded database'),
    default: '',
    secret: true,
    description:
      'PostgreSQL 14 or newer. Empty = the embedded database, a PostgreSQL that the service runs itself: for single nodes.',
  }),
  'database.username': key('both', {
    type: text(),
    default: '',
    description: 'User of `database.url`, in place of the one in it. Empty = that one.',
  }),
  'database.password': key('both', {
    type: text(),
    default: '',
    secret: true,
    description: 'Password of `database.url`, in place of the one in it. Empty = that one.',
  }),
  'database.directory': key('both', {
    type: text('a directory'),
    default: '',
    description:
      'Where the embedded database lies, a directory of its own. Empty = `database` in `data.directory`. A server app and a client app that name the same one share one PostgreSQL.',
  }),
  ...DATABASE_SSL_KEYS,
  'database.pool-max': key('both', {
    type: integer(2, 200),
    default: 10,
    description: 'Most connections to PostgreSQL at a time; to the embedded database at most 40.',
  }),
  'secrets.key': key('both', {
    type: text('32 bytes in base64, or the path of a file that holds them'),
    default: '',
    secret: true,
    description:
      'Key that protects stored passwords: 32 bytes in base64, or the path of a file with them; several, separated by commas or lines: the first protects new ones, all of them read stored ones. Generated into `data.directory` when the database is embedded, required otherwise; the same for all pods.',
  }),
  'log.level': key('both', {
    type: oneOf(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']),
    default: 'info',
    reload: true,
    description:
      'Least severe log line that is written. At `info` each transfer has one on each side. Lines below `warn` wait for others, 250 ms at most.',
  }),
  'metrics.public': key('both', {
    type: flag(),
    default: false,
    description:
      'Answer /metrics, /actuator/prometheus and /actuator/info without login, and also while a license is required.',
  }),
  ...OTEL_KEYS,
  'shutdown.drain-timeout': key('both', {
    type: integer(0, 86_400),
    default: 60,
    unit: 'seconds',
    description: 'How long running transfers may continue after SIGTERM.',
  }),
  ...SSL_KEYS,
  'listener.host': key('server', {
    type: requiredText('an address or a host name'),
    default: '0.0.0.0',
    description:
      'Address that the PeSIT listeners take their ports on: `0.0.0.0` = every IPv4 address of the machine, `::` = every address.',
  }),
  'access.default': key('server', {
    type: oneOf(['all', 'none']),
    default: 'all',
    reload: true,
    description:
      'Access that no grant names (`allowedFiles` and `allowedListeners` of a partner, `allowedPartners` of a virtual file): `all` = allowed, `none` = refused. `none` is for production.',
  }),
  'password.min-length': key('server', {
    type: integer(1, 8),
    default: 1,
    unit: 'characters',
    reload: true,
    description:
      'Least length of a new password of a partner. PI 5 and the pre-connection hold 8, and many partners dictate a shorter one, so any is taken unless configured; set 8 in production. Stored passwords stay valid.',
  }),
  'partner.max-connections': key('server', {
    type: integer(1, 10_000),
    default: 32,
    description:
      'Sessions that a partner without a `maxConnections` of its own may have at a time, on all pods together, so that no partner takes all places of a listener.',
  }),
  'transfer.max-entity-size': key('both', {
    type: integer(256, 65_535),
    default: 32_768,
    unit: 'bytes',
    reload: true,
    description: 'Largest entity (FPDU) proposed or accepted in PI 25; a session uses the smaller of both sides.',
  }),
  'transfer.sync-points-enabled': key('both', {
    type: flag(),
    default: true,
    reload: true,
    description: 'Whether sync points are negotiated (PI 7).',
  }),
  'transfer.sync-point-interval': key('both', {
    type: integer(1, 65_534),
    default: 256,
    unit: 'KB',
    reload: true,
    description: 'Data between two sync points (PI 7).',
  }),
  'transfer.sync-window': key('both', {
    type: integer(0, 255),
    default: 4,
    reload: true,
    description: 'Sync points that may wait for their acknowledgement (PI 7); 0 = they are not acknowledged.',
  }),
  'transfer.read-timeout': key('both', {
    type: integer(1000, 86_400_000),
    default: 120_000,
    unit: 'milliseconds',
    reload: true,
    description: 'How long a silent peer is waited for.',
  }),
  'transfer.connection-timeout': key('client', {
    type: integer(100, 3_600_000),
    default: 30_000,
    unit: 'milliseconds',
    reload: true,
    description:
      'How long opening a connection to a remote server may take; so long it is waited first for one of its maxConnections.',
  }),
  'transfer.checksum': key('both', {
    type: oneOf(['sha256', 'none']),
    default: 'sha256',
    description:
      'Hash computed on the way and kept in the record. `none` saves processor time; a file that was damaged on the disk is then not noticed, and a received file that is restarted continues from flushed points alone.',
  }),
  'transfer.durability': key('both', {
    type: oneOf(['checkpoint', 'end', 'none']),
    default: 'checkpoint',
    description:
      'When received data reach stable storage; a process that is killed loses nothing with any of them, only a power cut tells them apart. `checkpoint` = before each sync point is acknowledged, and at the end: loses nothing. `end` = at the end alone: a power cut may take back points that the partner counts as stored, so the file continues from an older one or from the start. `none` = never: a power cut soon after the end may lose a file that was acknowledged and recorded; only for files that can be fetched or sent again.',
  }),
  'transfer.staging-retention': key('both', {
    type: integer(1, 3650),
    default: 7,
    unit: 'days',
    description:
      'How long what an interrupted transfer has received is kept for its restart, and how long the restart of a completed transfer is recognised.',
  }),
  'transfer.retry.attempts': key('client', {
    type: integer(1, 1000),
    default: 5,
    reload: true,
    description:
      'Attempts of a transfer before it is FAILED; those that a partner answers with *come again later* (2-201, 2-207, 3-300, 3-303, 3-309, 3-322) do not count. 1 = no attempt but the first.',
  }),
  'transfer.retry.initial-delay': key('client', {
    type: integer(0, 86_400_000),
    default: 5000,
    unit: 'milliseconds',
    reload: true,
    description: 'Before the second attempt of a transfer.',
  }),
  'transfer.retry.max-delay': key('client', {
    type: integer(0, 86_400_000),
    default: 300_000,
    unit: 'milliseconds',
    reload: true,
    description: 'Longest delay before an attempt, jitter aside.',
  }),
  'transfer.retry.multiplier': key('client', {
    type: decimal(1, 100),
    default: 3,
    reload: true,
    description: 'Factor by which each delay is longer than the one before.',
  }),
  'transfer.retry.jitter': key('client', {
    type: decimal(0, 1),
    default: 0.2,
    reload: true,
    description: 'Share of each delay that chance adds or takes away, so that transfers do not come back all at once.',
  }),
  'spool.retention': key('client', {
    type: integer(0, 3650),
    default: 0,
    reload: true,
    unit: 'days',
    description:
      'How long a content that came with a request is kept when its transfer is COMPLETED; 0 = it is removed at once. Without it the transfer cannot be replayed.',
  }),
  'spool.retention-failed': key('client', {
    type: integer(0, 3650),
    default: 7,
    reload: true,
    unit: 'days',
    description:
      'The same for a transfer that is FAILED or CANCELLED; without its content it can be neither retried nor replayed.',
  }),
  ...HISTORY_KEYS,
  ...HOOK_KEYS,
  ...AUDIT_KEYS,
  'trace.retention-days': key('both', {
    type: integer(1, 3650),
    default: 7,
    unit: 'days',
    description: 'How long recorded traces of sessions are kept.',
  }),
  'license.evaluation-days': key('both', {
    type: integer(0, 365),
    default: 30,
    unit: 'days',
    description: 'Evaluation from the first start; 0 = blocked until licensed.',
  }),
  'license.public-key': key('both', {
    type: text('PEM text, or the path of a PEM file'),
    default: '',
    description:
      "The vendor's public key, RSA of at least 2048 bits, in evaluation builds alone: a build for customers has one inside. Empty = the key of evaluation builds.",
  }),
  'license.file': key('both', {
    type: text('a file'),
    default: '',
    reload: true,
    description: 'File with the license text; read again when it changes.',
  }),
  'license.content': key('both', {
    type: text('the license text'),
    default: '',
    secret: true,
    reload: true,
    description: 'The license text itself.',
  }),
  'pesit.cert-rotation-days': key('server', {
    type: integer(0, 3650),
    default: 30,
    unit: 'days',
    reload: true,
    description:
      'How long before its end a keystore that the local CA manages is issued anew, by the leader; 0 = when it has ended.',
  }),
  'cluster.enabled': key('both', {
    type: flag(),
    default: false,
    alias: 'PESIT_CLUSTER_ENABLED',
    description:
      'Whether several pods of this app work side by side: they tell each other of changes, through Redis or, without `redis.url`, through PostgreSQL, which is needed. Otherwise they learn of them by looking at the database every few seconds.',
  }),
  'cluster.name': key('both', {
    type: label(),
    default: 'pesit',
    description:
      'Name of the cluster: the same for all its pods, of both apps. Several clusters on one database are told apart by it.',
  }),
  'cluster.listeners': key('server', {
    type: oneOf(['all', 'leader']),
    default: 'all',
    description:
      'Which pods run the listeners: `all`, or the `leader` alone, for storage that the pods do not share; the others are not ready, and take over when it ends. While no pod leads, none runs them: without `redis.url` the lease of the leader is in PostgreSQL, which is needed anyway.',
  }),
  ...POD_KEYS,
  ...REDIS_KEYS,
  'transfer.executor.core-pool-size': key('client', {
    type: integer(1, 1000),
    default: 4,
    reload: true,
    description: 'Transfers that run at a time before the queue is used.',
  }),
  'transfer.executor.max-pool-size': key('client', {
    type: integer(1, 1000),
    default: 20,
    reload: true,
    description: 'Transfers that run at a time when the queue is full, or while others wait for a slow remote server.',
  }),
  'transfer.executor.queue-capacity': key('client', {
    type: integer(0, 1_000_000),
    default: 100,
    reload: true,
    description:
      'Transfers that wait, for a place or for their next attempt; one more is answered 503 with Retry-After. Those of a remote server whose circuit is open take no place of the others: each such server may have so many by itself.',
  }),
  'transfer.circuit.failures': key('client', {
    type: integer(0, 1000),
    default: 5,
    reload: true,
    description:
      'Contacts with a remote server that fail one after the other, on any pod, until its circuit opens: its transfers wait without an attempt, and one at a time tries it. Counted are a server that cannot be reached or does not answer, TLS, and refusals that ask to come again; 0 = never.',
  }),
  'transfer.circuit.initial-delay': key('client', {
    type: integer(1, 86_400_000),
    default: 10_000,
    unit: 'milliseconds',
    reload: true,
    description: 'From the opening of a circuit to the first try; each one that fails doubles it.',
  }),
  'transfer.circuit.max-delay': key('client', {
    type: integer(1, 86_400_000),
    default: 300_000,
    unit: 'milliseconds',
    reload: true,
    description: 'Between two tries of a remote server whose circuit is open, at most.',
  }),
  'transfer.ordered.after-failure': key('client', {
    type: oneOf(['hold', 'pass']),
    default: 'hold',
    reload: true,
    description:
      'What a transfer of an order (`ordered`) that is FAILED means for those behind it: `hold`, they wait until it is retried, or released by POST /api/v1/transfers/{id}/release; `pass`, they go. Counts for the transfers that are asked for from then on.',
  }),
  'transfer.connection.pool.max-connections-per-host': key('client', {
    type: integer(1, 1000),
    default: 10,
    reload: true,
    description: 'Sessions with one remote server at a time; its own maxConnections may lower it.',
  }),
  'transfer.connection.pool.idle-timeout': key('client', {
    type: integer(0, 86_400_000),
    default: 300_000,
    unit: 'milliseconds',
    description: 'How long a session without a transfer is kept for the next one; 0 = not at all.',
  }),
  ...FLOW_KEYS,
  ...DECLARED_KEYS,
  ...KEYS_WITHOUT_EFFECT,
} as const satisfies Record<string, ConfigKey>;

export type { AppName, AppScope, ConfigKey } from './row.js';

export type ConfigKeyName = keyof typeof CONFIG_KEYS;

type Row<K extends ConfigKeyName> = (typeof CONFIG_KEYS)[K];
type KeysOf<A extends AppName> = {
  [K in ConfigKeyName]: Row<K>['apps'] extends 'both' | A ? K : never;
}[ConfigKeyName];

/**
 * The configuration of one app: `config['server.port']` and so on, frozen.
 * `data.directory` and `storage.roots` are absolute, and `storage.roots` is never empty.
 */
export type Config<A extends AppName = AppName> = {
  readonly [K in KeysOf<A>]: Row<K>['default'];
};

/** The keys that both apps have: what this package itself asks for. */
export type CommonConfig = {
  readonly [K in ConfigKeyName as Row<K>['apps'] extends 'both' ? K : never]: Row<K>['default'];
};

/** Every row with its name, loosely typed, for code that walks the table. */
export const configRows = (): readonly (readonly [ConfigKeyName, ConfigKey])[] =>
  Object.entries(CONFIG_KEYS) as [ConfigKeyName, ConfigKey][];

/** `license.evaluation-days` → `LICENSE_EVALUATION_DAYS`. */
export const environmentName = (name: string): string => name.toUpperCase().replace(/[.-]/g, '_');

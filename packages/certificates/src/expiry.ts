import { X509Certificate } from 'node:crypto';

import type {
  DatabaseSupervisor,
  HealthComponent,
  HealthRegistry,
  Logger,
  Metrics,
  PeriodicWork,
} from '@pesit-node/service';
import type { Knex } from 'knex';

import { endOf } from './inspect.js';
import type { StoreKind } from './ports.js';
import { readPem } from './read/pem.js';

/** The end of the time in which a store is of use. */
export interface StoreExpiry {
  /** `file`: a certificate in files of the configuration. */
  readonly kind: StoreKind | 'file';
  readonly name: string;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
}

export interface ExpiryWatchOptions {
  readonly knex: Knex;
  readonly logger: Logger;
  /** Certificates in files, by what names them in the configuration. Default: none. */
  readonly files?: (() => Promise<readonly Omit<StoreExpiry, 'kind'>[]>) | undefined;
  /** Default: the clock of the machine. */
  readonly now?: (() => number) | undefined;
}

interface Version {
  readonly kind: StoreKind;
  readonly name: string;
  readonly version: number;
}

/** Days before the end at which the log says so, once each. */
const THRESHOLDS = [1, 7, 14, 30] as const;
const DAY_MS = 86_400_000;
const LOOK_MS = 60_000;
/** Warnings of what has ended so long ago are forgotten. */
const FORGOTTEN_MS = 400 * DAY_MS;

const VERSIONS = `
  select 'keystore' as kind, name, version from keystores
  union all select 'truststore', name, version from truststores order by kind, name`;

const COLUMNS = { keystore: 'certificate', truststore: 'certificates' } as const satisfies Record<StoreKind, string>;

/**
 * The end of a keystore is the first one in its chain. CAs of a truststore do not need each other: its end is the next of those
 * that are still valid, or that of the last one.
 */
const endIn = (kind: StoreKind, ends: readonly number[], now: number): number => {
  if (kind === 'keystore') return Math.min(...ends);
  const valid = ends.filter((end) => end > now);
  return valid.length > 0 ? Math.min(...valid) : Math.max(...ends);
};

/** Days that have begun, counted whole; 0 when it is over. */
export const daysLeft = (expiresAt: number, now: number): number => Math.max(0, Math.ceil((expiresAt - now) / DAY_MS));

/** Follows when stores expire: for the metric, for health, and for the log. */
export class ExpiryWatch {
  readonly #knex: Knex;
  readonly #logger: Logger;
  readonly #files: NonNullable<ExpiryWatchOptions['files']>;
  readonly #now: () => number;
  /** Ends of the certificates of each version of a store that was read. */
  #read: ReadonlyMap<string, readonly number[]> = new Map();
  #last: readonly StoreExpiry[] = [];

  constructor({ knex, logger, files = () => Promise.resolve([]), now = Date.now }: ExpiryWatchOptions) {
    this.#knex = knex;
    this.#logger = logger;
    this.#files = files;
    this.#now = now;
  }

  /** Looks at all stores. @throws errors of the database */
  async look(): Promise<readonly StoreExpiry[]> {
    const { rows } = await this.#knex.raw<{ rows: Version[] }>(VERSIONS);
    const read = new Map<string, readonly number[]>();
    const found: StoreExpiry[] = [];
    for (const { kind, name, version } of rows) {
      const key = `${version} ${kind} ${name}`;
      const ends = this.#read.get(key) ?? (await this.#endsOf(kind, name));
      if (ends.length === 0) continue;
      read.set(key, ends);
      found.push({ kind, name, expiresAt: endIn(kind, ends, this.#now()) });
    }
    for (const file of await this.#files()) found.push({ ...file, kind: 'file' });
    this.#read = read;
    this.#last = found;
    return found;
  }

  /** Component `certificates`: what has expired or does within 30 days, as the last look found it. */
  health(): HealthComponent {
    const now = this.#now();
    const expiring = this.#last
      .filter(({ expiresAt }) => daysLeft(expiresAt, now) <= THRESHOLDS[3])
      .map(({ kind, name, expiresAt }) => ({
        ...{ store: `${kind}/${name}`, notAfter: new Date(expiresAt).toISOString() },
        daysRemaining: daysLeft(expiresAt, now),
      }));
    return { status: 'UP', details: { stores: this.#last.length, expiring } };
  }

  /** Says what comes closer to its end, each threshold once for all pods. */
  async warn(): Promise<void> {
    const now = this.#now();
    for (const { kind, name, expiresAt } of this.#last) {
      const days = daysLeft(expiresAt, now);
      const threshold = THRESHOLDS.find((one) => days <= one);
      if (threshold === undefined) continue;
      const about = { kind, name, expires_at: new Date(expiresAt), threshold: days === 0 ? 0 : threshold };
      const rows: readonly unknown[] = await this.#knex('expiry_warnings')
        .insert(about)
        .onConflict(['kind', 'name', 'expires_at', 'threshold'])
        .ignore()
        .returning('name');
      if (rows.length === 0) continue;
      const facts = { [kind]: name, notAfter: about.expires_at.toISOString(), daysRemaining: days };
      const what = kind === 'file' ? 'certificate in a file' : kind;
      if (days === 0)
        this.#logger.error(facts, `${what} has expired: connections that use it fail until it is renewed`);
      else this.#logger.warn(facts, `${what} expires: renew it in time`);
    }
    await this.#knex('expiry_warnings')
      .where('expires_at', '<', new Date(now - FORGOTTEN_MS))
      .delete();
  }

  async #endsOf(kind: StoreKind, name: string): Promise<readonly number[]> {
    const column = COLUMNS[kind];
    const row = await this.#knex(`${kind}s`).where({ name }).first<Record<string, string> | undefined>(column);
    return readPem(row?.[column] ?? '', 'certificates').map(({ der }) => endOf(new X509Certificate(der)));
  }
}

export interface FollowExpiryOptions extends ExpiryWatchOptions {
  readonly periodic: Pick<PeriodicWork, 'add'>;
  readonly health: Pick<HealthRegistry, 'register'>;
  readonly metrics: Metrics;
  readonly supervisor: Pick<DatabaseSupervisor, 'ready' | 'on'>;
}

/** Shows when stores expire, in health and metrics, and says it in the log, from when the database is there. */
export const followExpiry = ({ periodic, health, metrics, supervisor, ...options }: FollowExpiryOptions): void => {
  const watch = new ExpiryWatch(options);
  // Every pod looks, for its health; what is said once for all is decided by the database.
  const task = periodic.add({
    ...{ name: 'look at certificates that expire', intervalMs: LOOK_MS, jitter: 0.1, first: 'after an interval' },
    run: async () => {
      await watch.look();
      await watch.warn();
    },
  });
  supervisor.on('ready', () => void task.runNow());
  health.register('certificates', () => watch.health());
  metrics.gauge('pesit_certificate_expiry_timestamp_seconds', async () => {
    if (!supervisor.ready) return undefined;
    const stores = await watch.look();
    return stores.map(({ kind, name, expiresAt }) => ({
      labels: { store: `${kind}/${name}` },
      value: expiresAt / 1000,
    }));
  });
};

/**
 * The leader fetches the CRLs of truststores from their URLs.
 *
 * Each URL is asked again after `ssl.crl-refresh`, or half of the time until its CRL has to be replaced, whichever comes first; one
 * that failed after a minute, then twice as long each time. A server that knows conditions (ETag, Last-Modified) sends a CRL once.
 * A CRL that came is judged (`judgeCrl`) and written with a new version of the truststore: every pod looks for those. A CRL that could not be
 * replaced stays, and counts as long as it says.
 */
import { X509Certificate } from 'node:crypto';

import type { DatabaseSupervisor, Logger, Metrics, PeriodicWork } from '@pesit-node/service';
import type { Knex } from 'knex';

import type { RunInTransaction } from '../authority/authority.js';
import { BOUNDS } from '../bounds.js';
import type { Certificates } from '../certificates.js';
import type { CrlFetch } from '../fields.js';
import { readPem } from '../read/pem.js';
import { fetchBounded, FetchError } from './fetch.js';
import { judgeCrl } from './judge.js';

export interface CrlFetchingOptions {
  readonly knex: Knex;
  readonly certificates: Pick<Certificates, 'changed'>;
  readonly logger: Logger;
  /** A transaction that a leader who is late is refused. */
  readonly asLeader: RunInTransaction;
  /** Milliseconds after which a CRL is asked for again. */
  readonly refreshMs: () => number;
  /** Default: the clock of the machine. */
  readonly now?: (() => number) | undefined;
}

const LOOK_MS = 30_000;
const FETCH_MS = 30_000;
const FIRST_RETRY_MS = 60_000;
/** URLs that are asked at a time. */
const AT_A_TIME = 4;
/** Log lines of truststores bear no longer reasons. */
const MAX_ERROR = 500;

/** All but the first two null: it was not tried yet. */
type Due = { readonly truststore: string; readonly url: string } & {
  readonly [K in Exclude<keyof CrlFetch, 'url'>]: CrlFetch[K] | null;
};

const DUE = `
  select t.name as truststore, u.url, f.fetched_at, f.this_update, f.next_update, f.number, f.entries, f.bytes,
         f.etag, f.last_modified, f.failures, f.error, f.next_try
    from truststores t
    cross join lateral unnest(t.crl_urls) as u (url)
    left join fetched_crls f on f.truststore = t.name and f.url = u.url
   where f.next_try is null or f.next_try <= ?
   order by f.next_try nulls first, t.name, u.url`;

/** A condition for the next request, unless it is longer than any is. */
const condition = (text: string | undefined): string | null => (text === undefined || text.length > 200 ? null : text);

export class CrlFetching {
  readonly #options: CrlFetchingOptions;
  readonly #now: () => number;

  constructor(options: CrlFetchingOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
  }

  /** Asks every URL whose time has come. @throws errors of the database */
  async run(signal: AbortSignal): Promise<void> {
    const { rows } = await this.#options.knex.raw<{ rows: Due[] }>(DUE, [new Date(this.#now())]);
    let isNew = false;
    for (let from = 0; from < rows.length && !signal.aborted; from += AT_A_TIME) {
      const some = rows.slice(from, from + AT_A_TIME);
      const news = await Promise.all(some.map((due) => this.#fetch(due, signal)));
      isNew ||= news.includes(true);
    }
    if (isNew) await this.#options.certificates.changed();
  }

  /** @returns whether another CRL came */
  async #fetch(due: Due, signal: AbortSignal): Promise<boolean> {
    const { url, truststore } = due;
    const { logger } = this.#options;
    try {
      const headers = {
        ...(due.etag === null ? {} : { 'If-None-Match': due.etag }),
        ...(due.last_modified === null ? {} : { 'If-Modified-Since': due.last_modified }),
      };
      const bounds = { timeoutMs: FETCH_MS, maxBytes: BOUNDS.crlBytes };
      const { status, etag, lastModified, body } = await fetchBounded(url, { headers, signal, ...bounds });
      if (status === 304) return await this.#unchanged(due);
      const { crl, entries } = await judgeCrl(body, await this.#cas(truststore), due, this.#now());
      await this.#requireRoom(due, crl.der.length);
      const until = crl.nextUpdate === undefined ? null : new Date(crl.nextUpdate);
      const kept = {
        ...{ crl: crl.der, bytes: crl.der.length, entries, number: crl.number?.toString() ?? null },
        ...{ this_update: new Date(crl.thisUpdate), next_update: until },
        ...{ etag: condition(etag), last_modified: condition(lastModified) },
        ...this.#good(until),
      };
      const isNew = await this.#write(due, kept, true);
      const facts = { truststore, url, entries, number: kept.number, nextUpdate: until?.toISOString() };
      if (isNew) logger.info(facts, 'CRL fetched: it counts from the next handshake on');
      else this.#recovered(due);
      return isNew;
    } catch (error) {
      if (!(error instanceof FetchError)) throw error;
      if (!signal.aborted) await this.#failed(due, error.message.slice(0, MAX_ERROR));
      return false;
    }
  }

  async #unchanged(due: Due): Promise<boolean> {
    const { next_update: until } = due;
    if (until !== null && until.getTime() <= this.#now()) {
      throw new FetchError(
        `the server has none newer than the one that should have been replaced by ${until.toISOString()}`,
      );
    }
    await this.#write(due, this.#good(until), false);
    this.#recovered(due);
    return false;
  }

  #good(until: Date | null) {
    const now = this.#now();
    const half = until === null ? Infinity : (until.getTime() - now) / 2;
    const next = Math.max(FIRST_RETRY_MS, Math.min(this.#options.refreshMs(), half));
    return { fetched_at: new Date(now), failures: 0, error: null, next_try: new Date(now + next) };
  }

  #recovered({ truststore, url, error }: Due): void {
    if (error !== null) this.#options.logger.info({ truststore, url }, 'the CRL can be fetched again');
  }

  async #failed(due: Due, error: string): Promise<void> {
    const { truststore, url, next_update: until } = due;
    const failures = due.failures ?? 0;
    const wait = Math.min(this.#options.refreshMs(), FIRST_RETRY_MS * 2 ** Math.min(failures, 20));
    const next = new Date(this.#now() + Math.max(FIRST_RETRY_MS, wait));
    await this.#write(due, { error, failures: failures + 1, next_try: next }, false);
    const facts = { truststore, url, reason: error, nextUpdate: until?.toISOString(), nextFetchAt: next.toISOString() };
    const text = 'could not fetch a CRL: the one before counts as long as it says';
    if (due.error === error) this.#options.logger.debug(facts, text);
    else this.#options.logger.warn(facts, text);
  }

  /** @param brings `values` has a CRL @returns whether it is another one than before; false also when the truststore no longer names the URL */
  #write({ truststore, url }: Due, values: object, brings: boolean): Promise<boolean> {
    return this.#options.asLeader(async (trx) => {
      const named = trx('truststores').where({ name: truststore }).whereRaw('? = any(crl_urls)', [url]);
      // It keeps an administrator from removing the URL meanwhile.
      if ((await named.forUpdate().first('name')) === undefined) return false;
      const where = { truststore, url };
      const isSame = !brings || (await this.#isStored(trx, where, (values as { readonly crl: Buffer }).crl));
      await trx('fetched_crls')
        .insert({ ...where, ...values })
        .onConflict(['truststore', 'url'])
        .merge();
      if (isSame) return false;
      await trx('truststores')
        .where({ name: truststore })
        .update({ version: trx.raw("nextval('store_versions')") });
      return true;
    });
  }

  async #isStored(trx: Knex, where: object, crl: Buffer): Promise<boolean> {
    return (await trx('fetched_crls').where(where).where({ crl }).first('url')) !== undefined;
  }

  async #requireRoom({ truststore, url }: Due, bytes: number): Promise<void> {
    const others = this.#options.knex('fetched_crls').where({ truststore }).whereNot({ url });
    const [sum] = (await others.sum({ bytes: 'bytes' })) as [{ readonly bytes: string | null }];
    if (Number(sum.bytes ?? 0) + bytes <= BOUNDS.fetchedBytes) return;
    throw new FetchError(
      `the CRLs of one truststore may have ${BOUNDS.fetchedBytes} bytes together: spread its CAs over several`,
    );
  }

  async #cas(truststore: string): Promise<readonly X509Certificate[]> {
    const row = await this.#options
      .knex('truststores')
      .where({ name: truststore })
      .first<{ readonly certificates: string } | undefined>('certificates');
    return readPem(row?.certificates ?? '', 'certificates').map(({ der }) => new X509Certificate(der));
  }
}

interface Standing {
  readonly truststore: string;
  /** Seconds since 1970; null: none of its CRLs says. */
  readonly until: number | null;
  readonly failing: number;
}

const STANDINGS = `
  select truststore, extract(epoch from min(next_update))::float8 as until, count(error)::int as failing
    from fetched_crls group by truststore`;

export interface FetchCrlsOptions extends CrlFetchingOptions {
  readonly certificates: Pick<Certificates, 'changed' | 'on'>;
  readonly periodic: Pick<PeriodicWork, 'add'>;
  readonly metrics: Pick<Metrics, 'gauge'>;
  readonly supervisor: Pick<DatabaseSupervisor, 'ready' | 'on'>;
}

/** Adds the task, which begins when the database is there, and the metrics of what it keeps. */
export const fetchCrls = (options: FetchCrlsOptions): void => {
  const { knex, certificates, periodic, metrics, supervisor } = options;
  const fetching = new CrlFetching(options);
  const task = periodic.add({
    ...{ name: 'fetching of CRLs', intervalMs: LOOK_MS, jitter: 0.1, runsOn: 'leader', first: 'after an interval' },
    run: (signal) => fetching.run(signal),
  });
  supervisor.on('ready', () => void task.runNow());
  certificates.on('changed', (kind) => {
    if (kind === 'truststore') void task.runNow();
  });
  const gauge = (name: Parameters<Metrics['gauge']>[0], value: (standing: Standing) => number | null): void => {
    metrics.gauge(name, async () => {
      if (!supervisor.ready) return undefined;
      const { rows } = await knex.raw<{ rows: Standing[] }>(STANDINGS);
      return rows.flatMap((standing) => {
        const shown = value(standing);
        return shown === null ? [] : [{ labels: { store: standing.truststore }, value: shown }];
      });
    });
  };
  gauge('pesit_crl_next_update_timestamp_seconds', ({ until }) => until);
  gauge('pesit_crl_failing_urls', ({ failing }) => failing);
};

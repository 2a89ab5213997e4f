import { setTimeout as delay } from 'node:timers/promises';

import type { Knex } from 'knex';

import type { Caller } from '../audit/entry.js';
import type { Database } from '../database/types.js';
import { isDatabaseUnavailable } from '../database/faults.js';
import { ApiError } from '../errors.js';
import type { HealthRegistry } from '../health/registry.js';
import type { Logger } from '../logging.js';
import type { Metrics } from '../metrics/metrics.js';
import type { PeriodicHandle, PeriodicWork } from '../periodic/periodic-work.js';
import type { SecretBox } from '../secrets/secret-box.js';
import { AppliedSecrets } from './applied-secrets.js';
import { applyItem } from './apply-item.js';
import { refusalOf } from './declared-list.js';
import type { DeclaredItem, ListName } from './declared-list.js';
import { healthOf, logRefused, Outcome } from './outcome.js';
import type { Refused } from './outcome.js';
import type { DeclaredResource } from './resource.js';

export interface DeclaredObjectsOptions {
  readonly app: string;
  /** The lists as the configuration has them now. */
  readonly config: Readonly<Partial<Record<ListName, readonly unknown[]>>>;
  /** The file that `PESIT_CONFIG` names, as the log and the audit call it. */
  readonly file: string;
  /** Relative paths of secrets start here. Default: the working directory. */
  readonly cwd?: string | undefined;
  /** In the order in which they are applied: what others name comes first. */
  readonly resources: readonly DeclaredResource[];
  readonly database: Pick<Database, 'knex' | 'withUnlimitedConnection'>;
  readonly secrets: Pick<SecretBox, 'keysFor'>;
  readonly supervisor: { on(event: 'ready', listener: () => void): unknown };
  readonly periodic: Pick<PeriodicWork, 'add'>;
  readonly health: Pick<HealthRegistry, 'register'>;
  readonly metrics: Pick<Metrics, 'gauge'>;
  readonly logger: Logger;
  /** Between two attempts with what was refused, milliseconds. Default 30 seconds. */
  readonly retryMs?: number | undefined;
}

/** Who did it, in the audit. */
export const CONFIGURATION_FILE = 'configuration file';

const RETRY_MS = 30_000;
/** Items that are tried again at a time: each may cost a slow hash. */
const MOST_RETRIED = 50;
/** Items whose rows are read with one statement. */
const BATCH = 200;
/**
 * Items with secrets that are applied beside each other, each with a slow hash in the thread pool of four: logins take two of them, and file
 * writes share it. Before the app is ready few need it.
 */
const BESIDE = { atStart: 2, later: 1 } as const;
const PROGRESS_MS = 5000;
const LOCK_LOOK_MS = 250;

interface Part {
  readonly resource: DeclaredResource;
  readonly items: readonly DeclaredItem[];
}

/**
 * Keeps what the configuration file declares: applies its lists when the node has begun, at SIGHUP, and, as long as something was refused
 * that may be possible later (a keystore that nobody has made yet), every 30 seconds what was refused. One pod at a time applies its
 * file: those that start together with the same file find everything done.
 *
 * An item that is refused is logged, counted and shown in the health of the app; the others are applied. Each is one transaction.
 */
export class DeclaredObjects {
  readonly #options: DeclaredObjectsOptions;
  readonly #applied: AppliedSecrets;
  readonly #by: Caller;
  #handle: PeriodicHandle | undefined;
  /** The whole file is to be applied. */
  #isDue = true;
  #waits = true;
  #failure: string | undefined;
  #appliedCount = 0;
  /** Objects that were refused, with what is tried again. */
  #refused: readonly (Refused & { readonly part: Part })[] = [];
  #isShown = false;

  constructor(options: DeclaredObjectsOptions) {
    this.#options = options;
    this.#applied = new AppliedSecrets(options.database.knex, options.secrets);
    this.#by = { actor: CONFIGURATION_FILE, address: options.file };
    options.metrics.gauge('pesit_declared_objects', () =>
      this.#isShown
        ? [
            { labels: { outcome: 'applied' as const }, value: this.#appliedCount },
            { labels: { outcome: 'refused' as const }, value: this.#refused.length },
          ]
        : undefined,
    );
    if (this.#parts().length > 0) this.#show();
  }

  /** Applies the file; resolves when that is done, or is to be tried again later. Never rejects. */
  async start(): Promise<void> {
    if (this.#handle === undefined) {
      this.#handle = this.#options.periodic.add({
        name: 'application of the configuration file',
        intervalMs: this.#options.retryMs ?? RETRY_MS,
        jitter: 0.1,
        first: 'after an interval',
        run: (signal) => this.#run(signal),
      });
      // It may have failed because the database was away.
      this.#options.supervisor.on('ready', () => void this.#handle?.runNow());
    }
    await this.#handle.runNow();
  }

  /** The file was read again. */
  reload(): void {
    this.#isDue = true;
    void this.#handle?.runNow();
  }

  async stop(): Promise<void> {
    await this.#handle?.remove();
  }

  #parts(): readonly Part[] {
    const { resources, config } = this.#options;
    return resources
      .map((resource) => ({ resource, items: resource.list.read(config[resource.list.list] ?? []).items }))
      .filter(({ items }) => items.length > 0);
  }

  #show(): void {
    if (this.#isShown) return;
    this.#isShown = true;
    const check = () =>
      healthOf({
        ...{ waits: this.#waits, failure: this.#failure },
        ...{ applied: this.#appliedCount, refused: this.#refused },
      });
    this.#options.health.register('configurationFile', check, { readiness: true });
  }

  async #run(signal: AbortSignal): Promise<void> {
    if (!this.#isDue) return this.#retry(signal);
    this.#isDue = false;
    try {
      const parts = this.#parts();
      if (parts.length > 0) await this.#whole(parts, signal);
      else [this.#appliedCount, this.#refused] = [0, []];
      this.#failure = undefined;
    } catch (error) {
      this.#isDue = true;
      this.#failure = isDatabaseUnavailable(error) ? 'the database is not there' : 'see the log';
      // A fault that does not pass by itself keeps no node from serving what it has.
      if (!isDatabaseUnavailable(error)) this.#waits = false;
      throw error;
    }
    this.#waits = signal.aborted;
  }

  async #whole(parts: readonly Part[], signal: AbortSignal): Promise<void> {
    const { logger, file } = this.#options;
    this.#show();
    const outcome = new Outcome();
    const refused = await this.#alone(signal, () => this.#apply(parts, outcome, signal));
    if (refused === undefined || signal.aborted) return;
    for (const resource of this.#options.resources) {
      const ids = parts.filter((part) => part.resource === resource).flatMap(({ items }) => items.map(({ id }) => id));
      await this.#applied.keepOnly(resource.list.fields.table, ids);
    }
    this.#refused = refused;
    this.#appliedCount = outcome.applied;
    outcome.log(logger, file);
  }

  /** Tries again what was refused; says what has changed. */
  async #retry(signal: AbortSignal): Promise<void> {
    const tried = this.#refused.slice(0, MOST_RETRIED);
    if (tried.length === 0) return;
    const { logger, file } = this.#options;
    const outcome = new Outcome();
    const parts = tried.map(({ part }) => part);
    const refused = await this.#alone(signal, () => this.#apply(parts, outcome, signal));
    if (refused === undefined || signal.aborted) return;
    // The others come first the next time.
    this.#refused = [...this.#refused.slice(MOST_RETRIED), ...refused];
    this.#appliedCount += outcome.applied;
    const before = new Set(tried.map(({ reasons }) => reasons.join()));
    const news = refused.filter(({ reasons }) => !before.has(reasons.join()));
    if (outcome.applied > 0)
      logger.info({ file, applied: outcome.applied }, 'what was refused of the configuration file is applied now');
    logRefused(logger, file, news);
  }

  /**
   * Runs `work` while no other pod of the app applies its file.
   * @returns undefined when the node stops before its turn
   */
  #alone<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T | undefined> {
    const { app, database, logger } = this.#options;
    return database.withUnlimitedConnection((knex) =>
      knex.transaction(async (trx) => {
        for (let looks = 0; !(await isOurs(trx, `pesit ${app} configuration file`)); looks++) {
          if (looks === 0) logger.info('another pod applies its configuration file: waiting for it');
          await delay(LOCK_LOOK_MS, undefined, { signal }).catch(() => undefined);
          if (signal.aborted) return undefined;
        }
        return work();
      }),
    );
  }

  async #apply(parts: readonly Part[], outcome: Outcome, signal: AbortSignal) {
    const total = parts.reduce((sum, { items }) => sum + items.length, 0);
    const refused: (Refused & { readonly part: Part })[] = [];
    let done = 0;
    let said = performance.now();
    for (const part of parts) {
      for (let from = 0; from < part.items.length && !signal.aborted; from += BATCH) {
        const batch = { ...part, items: part.items.slice(from, from + BATCH) };
        await this.#batch(batch, outcome, refused, signal, () => {
          done += 1;
          if (performance.now() - said < PROGRESS_MS) return;
          said = performance.now();
          this.#options.logger.info({ done, of: total }, 'the configuration file is being applied');
        });
      }
    }
    return refused;
  }

  async #batch(
    { resource, items }: Part,
    outcome: Outcome,
    refused: (Refused & { readonly part: Part })[],
    signal: AbortSignal,
    progress: () => void,
  ): Promise<void> {
    const { cwd = '', logger } = this.#options;
    const { list, fields } = resource.list;
    const ids = items.map(({ id }) => id);
    const rows = new Map(await resource.existing(ids));
    const marks = await this.#applied.of(fields.table, ids);
    const one = async (item: DeclaredItem): Promise<void> => {
      const { id, place } = item;
      try {
        const applying = { resource, item, row: rows.get(id), marks, applied: this.#applied, by: this.#by, cwd };
        outcome.add(list, fields.noun, id, await applyItem(applying));
      } catch (error) {
        if (isDatabaseUnavailable(error)) throw error;
        const isExplained = error instanceof ApiError;
        if (!isExplained) logger.error({ err: error, object: id }, `${fields.noun} of the configuration file failed`);
        const reasons = isExplained ? refusalOf(place, error) : [`${place}: failed, the log says how`];
        const facts = { list, noun: fields.noun, id, reasons };
        outcome.refuse(facts);
        refused.push({ ...facts, part: { resource, items: [item] } });
      }
      progress();
    };
    const waiting = items.values();
    const work = async (): Promise<void> => {
      for (const item of waiting) {
        if (signal.aborted) return;
        await one(item);
      }
    };
    const hashes = this.#waits ? BESIDE.atStart : BESIDE.later;
    const beside = items.some(({ secrets }) => secrets.length > 0) ? hashes : 1;
    const ended = await Promise.allSettled(Array.from({ length: beside }, work));
    const failed = ended.find((end) => end.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  }
}

const isOurs = async (trx: Knex, name: string): Promise<boolean> => {
  const { rows } = await trx.raw<{ rows: { ours: boolean }[] }>(
    'select pg_try_advisory_xact_lock(hashtextextended(?, 0)) as ours',
    [name],
  );
  return rows[0]?.ours === true;
};

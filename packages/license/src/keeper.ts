import { EventEmitter } from 'node:events';

import type { ClusterUsage } from '@pesit-node/cluster';
import type { AuditWrite, PeriodicHandle, PeriodicWork } from '@pesit-node/service';

import { BUILD } from './build.js';
import type { ClockRecord } from './clock.js';
import { ExtensionCapError, LicenseRefusedError, LicenseTooSmallError } from './errors.js';
import type { VendorKey } from './public-key.js';
import { LicenseFile } from './source-file.js';
import { decide, evaluationPeriod, WARNING_DAYS } from './state.js';
import type { Extension, LicenseStatus } from './state.js';
import type { LicenseSource, LicenseStore } from './store.js';
import { exceeds, lessGenerous } from './limits.js';
import { SharedRecord } from './shared-record.js';
import type { SharedRecordOptions } from './shared-record.js';
import { SYSTEM_CLOCK, Timekeeper } from './timekeeper.js';
import type { LicenseClock } from './timekeeper.js';
import { checkLicense, timeFault, verifyLicense } from './verify.js';
import type { License, Verification } from './verify.js';
import type { LicenseWitness } from './witness.js';

/** The part of a logger that the keeper needs; pino's fits. */
export interface LicenseLog {
  info(bindings: object, message: string): void;
  warn(bindings: object, message: string): void;
  error(bindings: object, message: string): void;
}

export interface LicenseKeeperOptions {
  readonly store: LicenseStore;
  readonly key: VendorKey;
  /** `license.evaluation-days`. */
  readonly evaluationDays: number;
  /** Most days that all extensions together add. Default: that of the build. */
  readonly maxExtensionDays?: number | undefined;
  /** `license.file`; '' = none. */
  readonly file?: string;
  /** `license.content`; '' = none. */
  readonly content?: string;
  /** Runs the looks at the store. */
  readonly periodic: Pick<PeriodicWork, 'add'>;
  readonly logger: LicenseLog;
  /** Remembers the times besides the store. */
  readonly witnesses?: readonly LicenseWitness[];
  /** Redis, where there is one: remembers the times when the database is restored from an older copy. */
  readonly shared?: Pick<SharedRecordOptions, 'memory' | 'secrets'> | undefined;
  /** Number of running clusters, and pods of the largest one. Default: this pod alone. */
  readonly usage?: () => Promise<ClusterUsage>;
  /** Who acts when nobody does: name of the node, for the audit. */
  readonly node: string;
  readonly clock?: LicenseClock;
  /** Between two looks at the store, milliseconds: what another pod installed is known after that at the latest. Default 5000. */
  readonly refreshEveryMs?: number;
}

interface KeeperEvents {
  /** The mode, the limits or the license changed. */
  change: [LicenseStatus];
  /** This process wrote something that the other pods should look at now (`refresh`). */
  written: [];
}

interface Loaded {
  readonly licenses: readonly License[];
  readonly extensions: readonly Extension[];
}

/**
 * Knows the state of the license at any time, without waiting: `status`. It reads the store every few seconds, counts the
 * time, loads `license.file` and `license.content`, and installs. While the store is out of reach it keeps deciding by what it
 * knows; before it was read for the first time, `status` is undefined.
 */
export class LicenseKeeper extends EventEmitter<KeeperEvents> {
  readonly #options: LicenseKeeperOptions;
  readonly #time: Timekeeper;
  #file: LicenseFile | undefined;
  readonly #verified = new Map<string, Verification>();
  /** Not loaded yet. */
  #content: string | undefined;
  #givenContent: string;
  #loaded: Loaded = { licenses: [], extensions: [] };
  #status: LicenseStatus | undefined;
  #work: Promise<void> = Promise.resolve();
  /** Undefined before the start and after the stop. */
  #looks: PeriodicHandle | undefined;
  #warned: number | undefined;

  constructor(options: LicenseKeeperOptions) {
    super();
    this.#options = options;
    const { store, witnesses = [], clock = SYSTEM_CLOCK, node, logger } = options;
    const forged = (): void => {
      logger.warn({}, 'the clock record in Redis is not signed with secrets.key: ignored, and written over');
    };
    const shared = options.shared === undefined ? undefined : new SharedRecord({ ...options.shared, forged });
    this.#time = new Timekeeper({ store, witnesses, shared, clock, node });
    this.#file = options.file ? new LicenseFile(options.file) : undefined;
    this.#content = options.content || undefined;
    this.#givenContent = options.content ?? '';
  }

  /** The license object; undefined until the store was read once. */
  get status(): LicenseStatus | undefined {
    return this.#status;
  }

  /** Begins to look at the store; returns at once, and may be called again. */
  start(): void {
    this.#looks ??= this.#options.periodic.add({
      name: 'look at the license',
      intervalMs: this.#options.refreshEveryMs ?? 5000,
      jitter: 0.1,
      run: () => this.#look(),
    });
  }

  /** Writes the time a last time, as far as the store can be reached. */
  async stop(): Promise<void> {
    const looks = this.#looks;
    this.#looks = undefined;
    await looks?.remove();
    await this.#work;
    await this.#time.flush().catch(() => undefined);
  }

  /** Looks at the store now: after an event of another pod, and when the database has come. Never rejects. */
  async refresh(): Promise<void> {
    // The next look of its own fails as well, and is told of.
    await this.#look().catch(() => undefined);
  }

  /** `license.file` and `license.content` as they are now: both are read again, and what is wrong with them is said again. */
  useSources({ file, content }: { readonly file: string; readonly content: string }): void {
    this.#file = file === '' ? undefined : new LicenseFile(file);
    if (content !== this.#givenContent) this.#content = content || undefined;
    this.#givenContent = content;
    // Before it runs there is nothing to correct, and perhaps no table to look at.
    if (this.#looks !== undefined) void this.refresh();
  }

  /**
   * Installs a license text.
   * @param options.force replace all installed ones, even by one that is expired or smaller than what runs.
   * @throws {LicenseRefusedError} not valid, {LicenseTooSmallError} smaller than what runs; nothing is stored then.
   */
  async install(
    text: string,
    { actor, force, audited }: { readonly actor: string; readonly force: boolean; readonly audited?: AuditWrite },
  ): Promise<LicenseStatus> {
    return this.#serially(async () => {
      await this.#refresh();
      const license = await this.#installable(text, force);
      const { store, logger } = this.#options;
      const installation = { source: 'API', actor, at: this.#time.now, replace: force } as const;
      await store.install(license, installation, audited);
      logger.info({ licenseId: license.licenseId, customer: license.customer, actor, force }, 'license installed');
      this.emit('written');
      return this.#refresh();
    });
  }

  /** The key that licenses are verified with. */
  get publicKey(): VendorKey {
    return this.#options.key;
  }

  /** Most days that all extensions together add; undefined: any. */
  get maxExtensionDays(): number | undefined {
    return this.#options.maxExtensionDays ?? BUILD.maxExtensionDays;
  }

  /** Adds days to what remains of the evaluation. @throws {ExtensionCapError} more than the build allows */
  async extendEvaluation(days: number, actor: string, audited?: AuditWrite): Promise<LicenseStatus> {
    return this.#serially(async () => {
      await this.#refresh();
      const clock = this.#time.record as ClockRecord;
      const { store, logger, evaluationDays } = this.#options;
      const { maxExtensionDays = Infinity } = this;
      const used = this.#loaded.extensions.reduce((sum, extension) => sum + extension.days, 0);
      if (used + days > maxExtensionDays) throw new ExtensionCapError(maxExtensionDays, used, days);
      const { now } = evaluationPeriod({ clock, evaluationDays, ...this.#loaded }, this.#time.now);
      await store.extend({ days, at: now, counted: clock.counted }, actor, audited);
      logger.info({ days, actor }, 'evaluation extended');
      this.emit('written');
      return this.#refresh();
    });
  }

  #serially<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#work.then(work);
    this.#work = result.then(
      () => undefined,
      () => undefined,
    );
    return result;
  }

  async #look(): Promise<void> {
    try {
      await this.#serially(() => this.#refresh());
    } catch (error) {
      this.#lookAtClock();
      throw error;
    }
  }

  async #refresh(): Promise<LicenseStatus> {
    const { store } = this.#options;
    await this.#time.sync();
    await this.#loadSources();
    this.#loaded = {
      licenses: (await store.licenses()).flatMap((text) => this.#trusted(text)),
      extensions: await store.extensions(),
    };
    return this.#decide();
  }

  async #loadSources(): Promise<void> {
    const content = this.#content;
    if (content !== undefined) {
      await this.#load(content, 'CONTENT');
      // Another one may have been given meanwhile.
      if (this.#content === content) this.#content = undefined;
    }
    const file = this.#file;
    if (file === undefined) return;
    let text: string | undefined;
    try {
      text = await file.changed();
    } catch (error) {
      this.#options.logger.warn(
        { path: file.path, reason: (error as Error).message },
        'could not read license.file: ignoring it',
      );
    }
    if (text === undefined) return;
    try {
      await this.#load(text, 'FILE');
    } catch (error) {
      file.forget();
      throw error;
    }
  }

  async #load(text: string, source: LicenseSource): Promise<void> {
    const { store, key, logger, node } = this.#options;
    const result = checkLicense(text, key, this.#time.paidTime);
    if (!result.ok) {
      const { fault, message } = result.refusal;
      logger.warn({ source, fault, reason: message }, 'ignoring a license of the configuration that is not valid');
      return;
    }
    const installation = { source, actor: node, at: this.#time.now, replace: false };
    if (!(await store.install(result.license, installation))) return;
    logger.info({ source, licenseId: result.license.licenseId }, 'license installed');
    this.emit('written');
  }

  /** Only what is verified counts, wherever it comes from; each text is verified once. */
  #trusted(text: string): readonly License[] {
    let result = this.#verified.get(text);
    if (result === undefined) {
      result = verifyLicense(text, this.#options.key);
      this.#verified.set(text, result);
      if (!result.ok) {
        this.#options.logger.warn({ reason: result.refusal.message }, 'ignoring a stored license that is not valid');
      }
    }
    return result.ok ? [result.license] : [];
  }

  async #installable(text: string, force: boolean): Promise<License> {
    const result = verifyLicense(text, this.#options.key);
    if (!result.ok) throw new LicenseRefusedError(result.refusal);
    const { license } = result;
    const replaces = this.#loaded.licenses.length > 0;
    const refusal = timeFault(license, this.#time.paidTime);
    if (refusal !== undefined && !(force && replaces && refusal.fault === 'expired')) {
      throw new LicenseRefusedError(refusal);
    }
    if (force || !replaces) return license;
    const before = this.#status as LicenseStatus;
    const after = this.#decided([...this.#loaded.licenses, license]);
    const usage = (await this.#options.usage?.()) ?? { clusters: 1, podsPerCluster: 1 };
    if (exceeds(usage, after) && lessGenerous(after, before)) throw new LicenseTooSmallError(license, usage);
    return license;
  }

  #decided(licenses: readonly License[]): LicenseStatus {
    const { evaluationDays } = this.#options;
    const { extensions } = this.#loaded;
    const clock = this.#time.record as ClockRecord;
    return decide(
      { licenses, extensions, clock, evaluationDays, maxExtensionDays: this.maxExtensionDays },
      this.#time.now,
    );
  }

  #decide(): LicenseStatus {
    const before = this.#status;
    const status = this.#decided(this.#loaded.licenses);
    this.#status = status;
    this.#warn(status);
    if (before === undefined || changed(before, status)) {
      const { message, type, daysUntilExpiration } = status;
      const bindings = { type, daysUntilExpiration, reason: message };
      if (status.blocked) this.#options.logger.error(bindings, 'blocked: a license is required');
      else this.#options.logger.info(bindings, 'license state determined');
      this.emit('change', status);
    }
    return status;
  }

  /** Once a day in the last two weeks. */
  #warn({ blocked, daysUntilExpiration: left, message }: LicenseStatus): void {
    if (blocked || left > WARNING_DAYS || left === this.#warned) return;
    this.#warned = left;
    this.#options.logger.warn({ daysUntilExpiration: left, reason: message }, 'the license ends soon');
  }

  /** Time passes although the store is away. */
  #lookAtClock(): void {
    this.#time.look();
    if (this.#status !== undefined) this.#decide();
  }
}

const changed = (one: LicenseStatus, other: LicenseStatus): boolean =>
  (['valid', 'evaluation', 'blocked', 'licenseId', 'expirationDate', 'maxClusters', 'maxPodsPerCluster'] as const).some(
    (field) => one[field] !== other[field],
  );

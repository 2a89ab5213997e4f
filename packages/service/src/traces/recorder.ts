import type { Knex } from 'knex';

import { isDatabaseUnavailable } from '../database/faults.js';
import type { Logger } from '../logging.js';
import type { AsLeader } from '../periodic/as-leader.js';
import type { PeriodicHandle, PeriodicWork } from '../periodic/periodic-work.js';
import { reasonOf } from '@pesit-node/ground';
import { TRACE_LIMITS } from './limits.js';
import { SessionRecording } from './recording.js';
import type { RecordingStart } from './recording.js';
import { TraceStore } from './store.js';
import type { TraceOwners } from './store.js';

export interface TracesOptions {
  readonly knex: Knex;
  /** Makes the removals. */
  readonly asLeader: AsLeader;
  readonly owners: TraceOwners;
  /** Name of this machine or pod. */
  readonly node: string;
  /** `trace.retention-days`. */
  readonly retentionDays: number;
  /** Runs the removal of what is old. */
  readonly periodic: Pick<PeriodicWork, 'add'>;
  readonly logger: Logger;
  /** How long lines wait for others before they are written, milliseconds. Default 500. */
  readonly gatherMs?: number;
}

export interface NewRecording extends Omit<RecordingStart, 'startedAt' | 'until'> {
  /** `trace_until` of the owner. */
  readonly until: Date | null;
}

const HOUR_MS = 3_600_000;
/** After a write that failed. */
const AGAIN_MS = 5000;

/**
 * Traces of sessions: the switch is a column of the owner, read with it when a session begins, so that a session of an
 * owner without costs nothing. The lines of those that are recorded gather in memory and go to the database together, some
 * times a second and beside the data; the same statement finds that the switch was turned off, on whichever pod.
 */
export class Traces {
  readonly store: TraceStore;
  readonly #options: TracesOptions;
  readonly #gatherMs: number;
  /** Those that are not over, or not in the database. */
  readonly #recordings = new Map<string, SessionRecording>();
  readonly #changed = new Set<SessionRecording>();
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();
  #sweeper: PeriodicHandle | undefined;

  constructor(options: TracesOptions) {
    this.#options = options;
    this.#gatherMs = options.gatherMs ?? 500;
    this.store = new TraceStore(options.knex, options.owners);
  }

  /** @returns undefined when the owner is not traced now, or too many sessions are */
  begin({ until, ...start }: NewRecording): SessionRecording | undefined {
    const startedAt = Date.now();
    if (until === null || until.getTime() <= startedAt) return undefined;
    if (this.#recordings.size >= TRACE_LIMITS.sessionsAtATime) {
      const { logger } = this.#options;
      logger.warn(
        { session: start.id, atATime: TRACE_LIMITS.sessionsAtATime },
        'session not traced: too many sessions are traced already',
      );
      return undefined;
    }
    const recording = new SessionRecording({ ...start, startedAt, until: until.getTime() }, (changed) => {
      this.#changed.add(changed);
      this.#timer ??= setTimeout(() => void this.#write(), this.#gatherMs).unref();
    });
    this.#recordings.set(start.id, recording);
    return recording;
  }

  /** Begins to remove what is old, now and every hour; to be called when the database is there, and may be called again. */
  start(): void {
    if (this.#sweeper !== undefined) {
      void this.#sweeper.runNow();
      return;
    }
    this.#sweeper = this.#options.periodic.add({
      name: 'removal of old traces',
      intervalMs: HOUR_MS,
      jitter: 0.1,
      runsOn: 'leader',
      run: () => this.#sweep(),
    });
  }

  /** Writes what is left. */
  async stop(): Promise<void> {
    await this.#sweeper?.remove();
    await this.settled();
  }

  /** Resolves when everything so far is written, or could not be. */
  async settled(): Promise<void> {
    await this.#write();
  }

  #write(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#writing = this.#writing.then(() => this.#writeChanged());
    return this.#writing;
  }

  async #writeChanged(): Promise<void> {
    const changed = [...this.#changed].map((recording) => ({ recording, change: recording.change() }));
    if (changed.length === 0) return;
    this.#changed.clear();
    try {
      const until = await this.store.write(
        changed.map(({ change }) => change),
        this.#options.node,
      );
      for (const { recording, change } of changed) {
        recording.written(change);
        this.#goOn(recording, until.get(recording.start.id));
      }
    } catch (error) {
      const { logger } = this.#options;
      const facts = { sessions: changed.length, reason: reasonOf(error) };
      if (isDatabaseUnavailable(error)) logger.debug(facts, 'could not write traces yet: trying again');
      else logger.warn(facts, 'could not write traces yet: trying again');
      for (const { recording } of changed) this.#changed.add(recording);
      this.#timer ??= setTimeout(() => void this.#write(), AGAIN_MS).unref();
    }
  }

  #goOn(recording: SessionRecording, until: Date | undefined): void {
    if (until === undefined) {
      // The owner, the session, or the wish is gone.
      recording.stop('it was switched off');
      this.#changed.delete(recording);
    } else recording.extend(until.getTime());
    if (recording.isOver && (until === undefined || recording.isWritten)) this.#recordings.delete(recording.start.id);
  }

  async #sweep(): Promise<void> {
    const { asLeader, retentionDays, logger } = this.#options;
    const sessions = await asLeader((transaction) => this.store.removeOlder(retentionDays, transaction));
    if (sessions > 0) logger.info({ sessions, retentionDays }, 'removed old traces');
  }
}

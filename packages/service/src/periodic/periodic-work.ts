import { randomInt } from 'node:crypto';

import { isDatabaseAway } from '../database/faults.js';
import type { Logger } from '../logging.js';
import { reasonOf } from '@pesit-node/ground';

/** One piece of work that is done again and again. */
export interface PeriodicTask {
  /** For log lines and status: a noun, `removal of old traces`. Unique within one runner. */
  readonly name: string;
  /** From the beginning of one run to the beginning of the next, milliseconds; a run that takes longer delays the next. */
  readonly intervalMs: number;
  /** Spreads each interval at random by up to this share of it, either way, so that pods do not act in step. 0 to 1, default 0. */
  readonly jitter?: number;
  /** `leader`: skipped on every pod but the leader. Default `every pod`. */
  readonly runsOn?: 'every pod' | 'leader';
  /** When the first run begins: with `start`, or one interval later. Default `at once`. */
  readonly first?: 'at once' | 'after an interval';
  /** @param signal aborted when the runner stops or the task is removed: long work looks at it between two steps. */
  readonly run: (signal: AbortSignal) => void | Promise<void>;
}

/** How one task has fared, for health and `/actuator/info`. */
export interface PeriodicStatus {
  readonly name: string;
  readonly running: boolean;
  /** Undefined before the first run ended. */
  readonly lastEnd: Date | undefined;
  /** Why the last run failed; undefined when it did not. */
  readonly failure: string | undefined;
  /** Runs that failed in a row. */
  readonly failures: number;
}

/** Handle of a task for its owner. */
export interface PeriodicHandle {
  /**
   * Runs the task now, and resolves when that run has ended, failed or not. Asked during a run, the task runs once more
   * afterwards: whoever asked knows that the run began after the call. Does nothing once stopped or removed.
   */
  readonly runNow: () => Promise<void>;
  /** Ends the task; resolves when its last run has ended. */
  readonly remove: () => Promise<void>;
}

export interface PeriodicWorkOptions {
  readonly logger: Logger;
  /** Whether this pod is the leader, asked before each run of a leader's task. Default: it is, a single node. */
  readonly isLeader?: () => boolean;
  /** 0 (included) to 1 (excluded). Default: of `node:crypto`. */
  readonly random?: () => number;
}

const chance = (): number => randomInt(1_000_000) / 1_000_000;

/**
 * The one runner of everything that a service does periodically (design §2). Never two runs of a task at a time; a run that
 * fails is logged once for each reason, tried again at the next interval, and said to work again afterwards; of a database that
 * is away the supervisor tells, once for all tasks. `stop` waits for what runs. Timers keep no process alive.
 */
export class PeriodicWork {
  readonly #options: Required<PeriodicWorkOptions>;
  readonly #tasks = new Map<string, RunningTask>();
  #state: 'idle' | 'started' | 'stopped' = 'idle';

  constructor(options: PeriodicWorkOptions) {
    this.#options = { isLeader: () => true, random: chance, ...options };
  }

  /** How every task fares, in the order in which they were added. */
  get status(): readonly PeriodicStatus[] {
    return [...this.#tasks.values()].map((task) => task.status);
  }

  /**
   * Adds a task; it begins with `start`, now when the runner has been started, and never when it has been stopped.
   * @throws when a task of this name is there already: a programming error.
   */
  add(task: PeriodicTask): PeriodicHandle {
    if (this.#tasks.has(task.name)) throw new Error(`periodic task "${task.name}" is added twice`);
    const running = new RunningTask(task, this.#options);
    this.#tasks.set(task.name, running);
    if (this.#state === 'started') running.start();
    if (this.#state === 'stopped') void running.stop();
    return {
      runNow: () => running.runNow(),
      remove: async () => {
        if (this.#tasks.get(task.name) === running) this.#tasks.delete(task.name);
        await running.stop();
      },
    };
  }

  /** This pod leads from now on: runs of the leader's tasks that it passed over, while another led or none, begin now. */
  lead(): void {
    for (const task of this.#tasks.values()) task.lead();
  }

  start(): void {
    if (this.#state !== 'idle') return;
    this.#state = 'started';
    for (const task of this.#tasks.values()) task.start();
  }

  /** Begins no run after this call; resolves when every run under way has ended. */
  async stop(): Promise<void> {
    this.#state = 'stopped';
    await Promise.all([...this.#tasks.values()].map((task) => task.stop()));
  }
}

class RunningTask {
  readonly #task: PeriodicTask;
  readonly #options: Required<PeriodicWorkOptions>;
  readonly #stopped = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #run: Promise<void> | undefined;
  /** The run that begins when the present one ends; everybody who asks meanwhile has the same. */
  #next: Promise<void> | undefined;
  #lastEnd: Date | undefined;
  #failure: string | undefined;
  #failures = 0;
  /** The last run was another pod's to do. */
  #isPassedOver = false;
  /** Somebody who reads the log believes that it fails. */
  #isToldOf = false;

  constructor(task: PeriodicTask, options: Required<PeriodicWorkOptions>) {
    this.#task = task;
    this.#options = options;
  }

  get status(): PeriodicStatus {
    const { name } = this.#task;
    const running = this.#run !== undefined;
    return { name, running, lastEnd: this.#lastEnd, failure: this.#failure, failures: this.#failures };
  }

  start(): void {
    if (this.#task.first === 'after an interval') this.#wait(performance.now());
    else void this.runNow();
  }

  lead(): void {
    if (this.#isPassedOver) void this.runNow();
  }

  runNow(): Promise<void> {
    if (this.#stopped.signal.aborted) return Promise.resolve();
    if (this.#run === undefined) return this.#begin();
    return (this.#next ??= this.#run.then(() => {
      this.#next = undefined;
      return this.runNow();
    }));
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    clearTimeout(this.#timer);
    await this.#run;
  }

  #begin(): Promise<void> {
    clearTimeout(this.#timer);
    const began = performance.now();
    this.#run = this.#attempt().finally(() => {
      this.#run = undefined;
      this.#wait(began);
    });
    return this.#run;
  }

  #wait(began: number): void {
    if (this.#stopped.signal.aborted || this.#next !== undefined) return;
    const { intervalMs, jitter = 0 } = this.#task;
    const interval = intervalMs * (1 + jitter * (2 * this.#options.random() - 1));
    const delay = Math.max(0, began + interval - performance.now());
    this.#timer = setTimeout(() => void this.runNow(), delay).unref();
  }

  async #attempt(): Promise<void> {
    const { name, runsOn, run } = this.#task;
    const { logger, isLeader } = this.#options;
    this.#isPassedOver = runsOn === 'leader' && !isLeader();
    if (this.#isPassedOver) return;
    try {
      await run(this.#stopped.signal);
      if (this.#isToldOf) logger.info({ task: name, failures: this.#failures }, 'periodic work succeeded again');
      this.#failure = undefined;
      this.#failures = 0;
      this.#isToldOf = false;
    } catch (error) {
      if (this.#stopped.signal.aborted) return;
      const reason = reasonOf(error);
      this.#failures += 1;
      const facts = { task: name, reason, failures: this.#failures };
      if (isDatabaseAway(error)) logger.debug(facts, 'periodic work failed: the database is away');
      else if (reason === this.#failure) logger.debug(facts, 'periodic work failed again');
      else {
        logger.warn(facts, 'periodic work failed: it is tried again at its next interval');
        this.#isToldOf = true;
      }
      this.#failure = reason;
    } finally {
      this.#lastEnd = new Date();
    }
  }
}

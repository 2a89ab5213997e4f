import { conflict } from '@pesit-node/service';
import type { HealthComponent, Logger } from '@pesit-node/service';
import { PesitError } from '@pesit-node/protocol';

import { Turns } from '../turns.js';
import { stepFor } from './convergence.js';
import type { Circumstances, Step } from './convergence.js';
import { sameDoors, tlsPortOf } from './fields.js';
import type { PodLine } from './pod-lines.js';
import { portProblem } from './port-problem.js';
import { RunningListener } from './running.js';
import type { BindPort } from './running.js';
import type { ListenerStore, StoredListener } from './store.js';

export interface ListenersHereOptions {
  readonly store: Pick<ListenerStore, 'get' | 'list'>;
  readonly bind: BindPort;
  readonly logger: Logger;
  /** How long running transfers may continue when a listener stops, milliseconds (`shutdown.drain-timeout`). */
  readonly drainMs: number;
  /** How long at least `close` answers who connects, milliseconds. Default 0. */
  readonly answerMs?: number | undefined;
  /** Whether this pod is one of those that run listeners (`cluster.listeners`). Default: it is. */
  readonly isChosen?: () => boolean;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Called when the status of a listener has changed. */
  readonly changed: () => void;
}

const stopping = (id: string): PesitError =>
  new PesitError(`the listener ${id} is being stopped`, { fault: 'local', diagnostic: '3-322' });

/**
 * The listeners of this process: brought to what is wanted (`stepFor`), one step of a listener at a time. Each step is taken
 * for the row as the database has it then, so that no look that was slow undoes what came after it.
 */
export class ListenersHere {
  readonly #options: ListenersHereOptions;
  readonly #all = new Map<string, RunningListener>();
  readonly #turns = new Turns();
  #isClosed = false;

  constructor(options: ListenersHereOptions) {
    this.#options = options;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Whether this pod leaves the listeners to another one. */
  get isStandby(): boolean {
    return this.#options.isChosen?.() === false;
  }

  get(id: string): RunningListener | undefined {
    return this.#all.get(id);
  }

  /** Sessions of all listeners here. */
  get activeConnections(): number {
    return [...this.#all.values()].reduce((sum, { activeConnections }) => sum + activeConnections, 0);
  }

  /** Brings every listener to what is wanted of it; bind failures are logged. @throws when the database fails */
  async converge(): Promise<void> {
    const rows = new Map((await this.#options.store.list()).map((row) => [row.server_id, row]));
    const due = [...new Set([...rows.keys(), ...this.#all.keys()])].filter((id) => this.#isBehind(id, rows.get(id)));
    await Promise.all(due.map((id) => this.settle(id)));
  }

  /** The same for one, when its turn comes. @throws when the database fails */
  settle(id: string): Promise<void> {
    return this.#turns.run(id, () => this.#settle(id));
  }

  /** Tries those again whose port could not be taken and whose time has come. @throws when the database fails */
  async retryFailed(): Promise<void> {
    const now = this.#options.now();
    const due = [...this.#all].filter(([, { nextAttemptAt }]) => (nextAttemptAt ?? Infinity) <= now);
    await Promise.all(due.map(([id]) => this.settle(id)));
  }

  /**
   * Changes a listener in its turn. When it runs here and `after` has another port, that one is taken before `store` is called.
   * @throws {ApiError} 409 when the port cannot be taken: nothing has changed then; what `store` throws
   */
  change(id: string, after: () => Promise<StoredListener>, store: () => Promise<unknown>): Promise<void> {
    return this.#turns.run(id, async () => {
      const row = await after();
      const running = this.#all.get(id);
      if (running?.here.state === 'running' && !sameDoors(running.here, row)) {
        try {
          await this.#binding(id, row, (bind) => running.move(bind, row));
        } catch (error) {
          this.#options.logger.error(
            { listener: id, port: row.port, reason: (error as Error).message },
            'listener cannot take its new port: it keeps the one that it has',
          );
          throw conflict(`Listener ${id}: ${(error as Error).message}`, { cause: error });
        }
      }
      await store();
      await this.#settle(id);
    });
  }

  /**
   * Stops all, and starts none from now on; resolves when the last session has ended, at the latest after `drainMs`. Until
   * then, and `answerMs` at least, who connects is told to come again (3-322).
   */
  async close(): Promise<void> {
    this.#isClosed = true;
    const all = [...this.#all];
    const { answerMs = 0 } = this.#options;
    await Promise.all(all.map(([id, running]) => this.#turns.run(id, () => this.#stop(id, running, answerMs))));
    await Promise.all(all.map(([, { ending }]) => ending));
  }

  /** The lines of this pod, one a listener. */
  lines(): readonly PodLine[] {
    return [...this.#all].map(([id, running]) => this.#line(id, running));
  }

  line(id: string): PodLine {
    return this.#line(id, this.#all.get(id));
  }

  /**
   * For `HealthRegistry`: a listener that failed is shown, and the others serve; where none of those that should run does,
   * nobody can be served. Listeners that an administrator has stopped need not run. A pod that stands by takes no partners.
   */
  health(): HealthComponent {
    const all = [...this.#all];
    const running = all.filter(([, { isRunning }]) => isRunning).length;
    if (this.isStandby) {
      return { status: 'DOWN', details: { reason: `another pod leads and ${STANDBY}`, running } };
    }
    const failed = all.flatMap(([id, { statusReason, nextAttemptAt }]) =>
      nextAttemptAt === undefined
        ? []
        : [`${id}: ${statusReason ?? 'starting'}; next attempt at ${new Date(nextAttemptAt).toISOString()}`],
    );
    if (failed.length === 0) return { status: 'UP', details: { running } };
    if (running > 0) return { status: 'UP', details: { running, failed } };
    return { status: 'DOWN', details: { reason: 'no listener that should run has its port', running, failed } };
  }

  get #circumstances(): Circumstances {
    return { serves: !this.#isClosed && !this.isStandby, now: this.#options.now() };
  }

  #isBehind(id: string, row: StoredListener | undefined): boolean {
    const running = this.#all.get(id);
    if (stepFor(row, running?.here, this.#circumstances) !== undefined) return true;
    return running !== undefined && row !== undefined && running.settings.revision !== row.revision;
  }

  async #settle(id: string): Promise<void> {
    const row = await this.#options.store.get(id);
    const running = this.#all.get(id);
    const step = stepFor(row, running?.here, this.#circumstances);
    if (running !== undefined && row !== undefined) running.settings = row;
    if (step === undefined) return;
    await this.#take(step, id, row, running);
    this.#options.changed();
  }

  async #take(
    step: Step,
    id: string,
    row: StoredListener | undefined,
    known: RunningListener | undefined,
  ): Promise<void> {
    if (step === 'forget') {
      if (known?.activeConnections === 0) this.#all.delete(id);
      return;
    }
    if (step === 'stop') {
      if (known !== undefined) void this.#stop(id, known);
      return;
    }
    if (row === undefined) return;
    const running = known ?? new RunningListener(row);
    this.#all.set(id, running);
    const before = running.statusReason;
    try {
      if (step === 'restart') void this.#stop(id, running);
      if (step === 'move') await this.#binding(id, row, (bind) => running.move(bind, row));
      else await this.#binding(id, row, (bind) => running.start(bind, row, this.#options.now()));
      if (step === 'move') this.#portsAreFree();
      this.#options.logger.info({ listener: id, port: row.port }, SAID[step]);
    } catch (error) {
      if (step === 'move') running.giveUp(row, error as Error, this.#options.now());
      // Only the first failure, and another reason, are worth a line at error.
      const level = running.statusReason === before ? 'debug' : 'error';
      const reason = running.statusReason;
      this.#options.logger[level](
        { listener: id, port: row.port, reason },
        'could not start the listener: trying again later',
      );
    }
  }

  /** Gives the ports up at once; resolves when the last session has ended. */
  async #stop(id: string, running: RunningListener, answerMs?: number): Promise<void> {
    const { logger, drainMs, changed } = this.#options;
    const { isRunning, activeConnections: sessions } = running;
    if (isRunning) logger.info({ listener: id, sessions }, 'listener stopping');
    const ending = running.stop(stopping(id), drainMs, answerMs);
    this.#portsAreFree();
    await ending;
    if (isRunning) logger.info({ listener: id }, 'listener stopped');
    changed();
  }

  /** A listener that waits for a port that another one of this process had need not wait for its time. */
  #portsAreFree(): void {
    for (const running of this.#all.values()) {
      if (running.nextAttemptAt !== undefined) running.nextAttemptAt = this.#options.now();
    }
  }

  /** @throws Error that says plainly who has the port; `start` leaves it as the reason of the status */
  async #binding(id: string, row: StoredListener, take: (bind: BindPort) => Promise<void>): Promise<void> {
    const { bind } = this.#options;
    await take(async (owner, before) => {
      try {
        return await bind(owner, before);
      } catch (error) {
        const taken = (error as { readonly port?: number }).port ?? row.port;
        const other = [...this.#all].find(
          ([otherId, { here }]) =>
            otherId !== id && here.state === 'running' && (here.port === taken || tlsPortOf(here) === taken),
        );
        throw new Error(portProblem(error as NodeJS.ErrnoException, taken, other?.[0]), { cause: error });
      }
    });
  }

  #line(serverId: string, running: RunningListener | undefined): PodLine {
    const { isStandby } = this;
    const time = (milliseconds: number | undefined): Date | null =>
      milliseconds === undefined ? null : new Date(milliseconds);
    const status = running?.status ?? 'STOPPED';
    return {
      ...{ serverId, status },
      statusReason: running?.statusReason ?? (isStandby && status === 'STOPPED' ? `the leader ${STANDBY}` : null),
      nextAttemptAt: time(running?.nextAttemptAt),
      sessions: running?.activeConnections ?? 0,
      refused: running?.refusedConnections ?? 0,
      since: time(running?.runningSince),
      standby: isStandby,
    };
  }
}

const STANDBY = 'runs the listeners (cluster.listeners: leader)';

const SAID = {
  start: 'listener started',
  restart: 'listener restarted',
  move: 'listener moved to another port',
} as const;

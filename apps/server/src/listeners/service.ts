import { ApiError, CONFIGURATION_CHANGED, conflict, notFound } from '@pesit-node/service';
import type { EventStream, HealthComponent, Logger } from '@pesit-node/service';
import { PesitError } from '@pesit-node/protocol';

import { Turns } from '../turns.js';
import type { ListenerRow, ListenerStatus, ListenerValues } from './fields.js';
import { RunningListener } from './running.js';
import type { BindPort } from './running.js';
import type { ListenerStore } from './store.js';

export interface ListenerServiceOptions {
  readonly store: ListenerStore;
  readonly bind: BindPort;
  readonly events: EventStream;
  readonly logger: Logger;
  /** How long running transfers may continue when a listener stops, milliseconds (`shutdown.drain-timeout`). */
  readonly drainMs: number;
  /** Default `Date.now`. */
  readonly now?: () => number;
}

/** A listener with what it does at the moment. */
export interface ListenerView {
  readonly row: ListenerRow;
  readonly status: ListenerStatus;
  readonly statusReason: string | undefined;
  readonly activeConnections: number;
  readonly refusedConnections: number;
  /** Seconds. */
  readonly uptime: number;
  /** When a FAILED one is tried again. */
  readonly nextAttemptAt: Date | undefined;
}

/** The answer to start and stop. */
export interface ListenerOutcome extends ListenerView {
  readonly message: string;
}

/** How long an answer waits for sessions to end before it says STOPPING instead of STOPPED. */
const STOP_ANSWER_MS = 1500;

const stopped = (id: string): PesitError =>
  new PesitError(`the listener ${id} is being stopped`, { fault: 'local', diagnostic: '3-322' });

/** Listeners as configured, and those that run here. Operations on one listener happen one after the other. */
export class ListenerService {
  readonly #options: ListenerServiceOptions;
  readonly #running = new Map<string, RunningListener>();
  readonly #turns = new Turns();
  readonly #now: () => number;
  #closed = false;

  constructor(options: ListenerServiceOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
  }

  async list(): Promise<readonly ListenerView[]> {
    return (await this.#options.store.list()).map((row) => this.#view(row));
  }

  async get(id: string): Promise<ListenerView> {
    return this.#view(await this.#row(id));
  }

  /** Does not start it: `autoStart` is for the start of the service. */
  async create(id: string, values: Partial<ListenerValues>): Promise<ListenerView> {
    const row = await this.#options.store.create(id, values);
    if (row === undefined) throw conflict(`Listener ${JSON.stringify(id)} exists already`);
    this.#changed('created', { listener: id, port: row.port });
    return this.#view(row);
  }

  /** New sessions get the new settings. Another port is taken before anything is stored: 409 when it cannot be taken. */
  update(id: string, values: Partial<ListenerValues>): Promise<ListenerView> {
    return this.#turns.run(id, async () => {
      const before = await this.#row(id);
      const after: ListenerRow = { ...before, ...values };
      const running = this.#running.get(id);
      const moves = running?.isRunning === true && after.port !== running.settings.port;
      if (moves) await this.#take(id, after.port, () => running.move(this.#options.bind, after));
      const row = await this.#options.store.update(id, values);
      if (row === undefined) throw notFound('Listener', id);
      if (running !== undefined) running.settings = row;
      this.#changed('changed', { listener: id, fields: Object.keys(values), port: row.port });
      // The change may have removed the reason why it could not take its port.
      if (running?.nextAttemptAt !== undefined) await this.#retry(id, running);
      return this.#view(row);
    });
  }

  /** A running listener is stopped first: no new sessions, running transfers end in peace. */
  delete(id: string): Promise<void> {
    return this.#turns.run(id, async () => {
      if (!(await this.#options.store.delete(id))) throw notFound('Listener', id);
      const end = this.#stop(id).then(() => {
        if (this.#running.get(id)?.isRunning === false) this.#running.delete(id);
      });
      await this.#within(end);
      this.#changed('deleted', { listener: id });
    });
  }

  #changed(action: 'created' | 'changed' | 'deleted', facts: object): void {
    this.#options.events.publish(CONFIGURATION_CHANGED, { what: 'listener', action, facts: { ...facts } });
  }

  /** @throws {ApiError} 409 when the port cannot be taken: FAILED with the reason, and tried again until it is stopped. */
  start(id: string): Promise<ListenerOutcome> {
    return this.#turns.run(id, async () => {
      const row = await this.#row(id);
      if (this.#closed) throw conflict(`The service is stopping: listener ${id} is not started`);
      const running = this.#running.get(id) ?? new RunningListener(row);
      this.#running.set(id, running);
      if (running.isRunning) return this.#outcome(row, `Listener ${id} is running already on port ${row.port}`);
      await this.#take(id, row.port, () => running.start(this.#options.bind, row, this.#now()));
      this.#options.logger.info({ listener: id, port: row.port }, 'listener started');
      return this.#outcome(row, `Listener ${id} started on port ${row.port}`);
    });
  }

  /** Takes no more sessions. Running transfers may end: until then, at most `drainMs`, the status is STOPPING. */
  stop(id: string): Promise<ListenerOutcome> {
    return this.#turns.run(id, async () => {
      const row = await this.#row(id);
      const running = this.#running.get(id);
      if (running === undefined || running.status === 'STOPPED')
        return this.#outcome(row, `Listener ${id} is stopped already`);
      await this.#within(this.#stop(id));
      const left = running.activeConnections;
      return this.#outcome(
        row,
        running.status === 'STOPPING'
          ? `Listener ${id} takes no more sessions; ${left} running ${left === 1 ? 'transfer' : 'transfers'} may end`
          : `Listener ${id} stopped`,
      );
    });
  }

  /**
   * Starts the listeners with `autoStart`; one whose port cannot be taken is logged and shown as FAILED, and the others start.
   * May be called again when the database failed in between.
   */
  async startAll(): Promise<void> {
    const wanted = (await this.#options.store.list()).filter((row) => row.auto_start);
    await Promise.all(
      wanted.map(({ server_id: id }) =>
        this.start(id).catch((error: unknown) => {
          if (!(error instanceof ApiError)) throw error;
          this.#options.logger.error({ listener: id, reason: error.message }, 'could not start the listener');
        }),
      ),
    );
  }

  /** Tries those again whose port could not be taken and whose time has come. @throws when the database fails */
  async retryFailed(): Promise<void> {
    const due = [...this.#running].filter(([, { nextAttemptAt }]) => (nextAttemptAt ?? Infinity) <= this.#now());
    await Promise.all(due.map(([id, running]) => this.#turns.run(id, () => this.#retry(id, running))));
  }

  /** Stops all, and starts none from now on; resolves when the last session has ended, at the latest after `drainMs`. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#running.keys()].map((id) => this.#turns.run(id, () => this.#stop(id))));
  }

  /** Sessions of all listeners here. */
  get activeConnections(): number {
    return [...this.#running.values()].reduce((sum, { activeConnections }) => sum + activeConnections, 0);
  }

  /**
   * For `HealthRegistry`: a listener that failed is shown, and the others serve; where none of those that should run does,
   * nobody can be served. Listeners that an administrator has stopped need not run.
   */
  health(): HealthComponent {
    const all = [...this.#running];
    const running = all.filter(([, { isRunning }]) => isRunning).length;
    const failed = all.flatMap(([id, { statusReason, nextAttemptAt }]) =>
      nextAttemptAt === undefined
        ? []
        : [`${id}: ${statusReason ?? 'starting'}; next attempt at ${new Date(nextAttemptAt).toISOString()}`],
    );
    if (failed.length === 0) return { status: 'UP', details: { running } };
    if (running > 0) return { status: 'UP', details: { running, failed } };
    return { status: 'DOWN', details: { reason: 'no listener that should run has its port', running, failed } };
  }

  async #row(id: string): Promise<ListenerRow> {
    const row = await this.#options.store.get(id);
    if (row === undefined) throw notFound('Listener', id);
    return row;
  }

  /** Only the first failure, and another reason, are worth a line at error. */
  async #retry(id: string, running: RunningListener): Promise<void> {
    if (this.#closed || running.nextAttemptAt === undefined || this.#running.get(id) !== running) return;
    const row = await this.#options.store.get(id);
    if (row === undefined) {
      // Another pod has deleted it.
      this.#running.delete(id);
      return;
    }
    const before = running.statusReason;
    try {
      await this.#bind(id, row.port, () => running.start(this.#options.bind, row, this.#now()));
      this.#options.logger.info({ listener: id, port: row.port }, 'listener started');
    } catch {
      const [reason, same] = [running.statusReason, running.statusReason === before];
      this.#options.logger[same ? 'debug' : 'error'](
        { listener: id, port: row.port, reason },
        'could not start the listener: trying again later',
      );
    }
  }

  async #stop(id: string): Promise<void> {
    const running = this.#running.get(id);
    if (running === undefined) return;
    if (running.isRunning)
      this.#options.logger.info({ listener: id, sessions: running.activeConnections }, 'listener stopping');
    await running.stop(stopped(id), this.#options.drainMs);
    this.#options.logger.info({ listener: id }, 'listener stopped');
  }

  /** @throws {ApiError} 409, logged too, when the port cannot be taken */
  async #take(id: string, port: number, bind: () => Promise<void>): Promise<void> {
    try {
      await this.#bind(id, port, bind);
    } catch (error) {
      const { message: reason, cause } = error as Error;
      const again = this.#running.get(id)?.nextAttemptAt !== undefined;
      this.#options.logger.error({ listener: id, port, reason, triedAgain: again }, 'listener cannot take its port');
      const then = again ? '. It is tried again by itself until it is stopped' : '';
      throw conflict(`Listener ${id}: ${reason}${then}`, { cause });
    }
  }

  /** Runs `bind`. @throws Error that says plainly who has the port; so does the status of a listener that does not run */
  async #bind(id: string, port: number, bind: () => Promise<void>): Promise<void> {
    const other = [...this.#running].find(
      ([otherId, { isRunning, settings }]) => otherId !== id && isRunning && settings.port === port,
    );
    const running = this.#running.get(id);
    try {
      await bind();
    } catch (error) {
      const reason = explain(error as NodeJS.ErrnoException, port, other?.[0]);
      if (running?.isRunning === false) running.statusReason = reason;
      throw new Error(reason, { cause: error });
    }
  }

  #view(row: ListenerRow): ListenerView {
    const running = this.#running.get(row.server_id);
    return {
      row,
      status: running?.status ?? 'STOPPED',
      statusReason: running?.statusReason,
      activeConnections: running?.activeConnections ?? 0,
      refusedConnections: running?.refusedConnections ?? 0,
      uptime: running?.uptime(this.#now()) ?? 0,
      nextAttemptAt: running?.nextAttemptAt === undefined ? undefined : new Date(running.nextAttemptAt),
    };
  }

  #outcome(row: ListenerRow, message: string): ListenerOutcome {
    return { ...this.#view(row), message };
  }

  /** Waits for the end of `work`, but not longer than an answer may take; the work continues. */
  async #within(work: Promise<void>): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const limit = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, STOP_ANSWER_MS);
    });
    await Promise.race([work, limit]);
    clearTimeout(timer);
  }
}

/** Why a port cannot be taken, and what to do. */
const explain = (error: NodeJS.ErrnoException, port: number, otherListener: string | undefined): string => {
  switch (error.code) {
    case 'EADDRINUSE':
      return otherListener === undefined
        ? `port ${port} is in use by another process: stop it, or choose another port`
        : `port ${port} is in use by the listener ${otherListener}: stop it, or choose another port`;
    case 'EACCES':
      return `port ${port} needs more rights: choose a port above 1023`;
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return `port ${port} cannot be taken on that address (${error.message}): correct listener.host`;
    default:
      return `port ${port} cannot be taken:  ${error.message}`;
  }
};

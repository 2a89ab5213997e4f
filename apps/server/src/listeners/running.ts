import type { PesitError } from '@pesit-node/protocol';

import type { ListenerHere } from './convergence.js';
import type { ListenerRow, ListenerStatus } from './fields.js';
import type { StoredListener } from './store.js';

/** The ports on which one listener takes partners. */
export interface BoundPort {
  readonly activeConnections: number;
  /** Gives up the port; its sessions continue. Resolves when the last has ended. */
  abandon(): Promise<void>;
  /** @param answerMs the port is kept so long at least, and while transfers run: who connects hears `reason` */
  close(reason: PesitError, graceMs: number, answerMs?: number): Promise<void>;
}

/** Questions and news of a port for its listener. */
export interface PortOwner {
  /** Asked at each new session, so that a change applies to the next one. */
  readonly settings: () => ListenerRow;
  /** Sessions of the listener on all its ports, those that it has given up too: they count for its limit. */
  readonly sessions: () => number;
  /** For every connection that was turned away, for the figures. */
  readonly refused: () => void;
}

/**
 * Takes the ports of a listener, all or none.
 * @param before those that it has now: one that stays the same goes over to the new ones, and `before` keeps the rest
 */
export type BindPort = (owner: PortOwner, before?: BoundPort) => Promise<BoundPort>;

/** Wait before a port that could not be taken is tried again: the first wait, doubled each time up to the longest. */
const RETRY = { firstMs: 1000, longestMs: 60_000 } as const;

/** The running parts of one listener: its port, and ports that it has given up and that still have sessions. */
export class RunningListener {
  status: ListenerStatus = 'STOPPED';
  statusReason: string | undefined;
  /** When a port that could not be taken is tried again, milliseconds since 1970; undefined: it need not be. */
  nextAttemptAt: number | undefined;
  /** As configured now. */
  settings: StoredListener;
  /** Connections turned away since the start of the service. */
  refusedConnections = 0;
  #bound: BoundPort | undefined;
  /** As it was when it was started, moved or tried last. */
  #tried: StoredListener;
  #startedAt = 0;
  #ending: Promise<void> = Promise.resolve();
  /** Attempts to take the port that failed, since the last one that did not. */
  #failures = 0;
  /** Ports that were given up, until their last session has ended. */
  readonly #former = new Map<BoundPort, Promise<void>>();
  readonly #owner: PortOwner = {
    settings: () => this.settings,
    sessions: () => this.activeConnections,
    refused: () => this.refusedConnections++,
  };

  constructor(settings: StoredListener) {
    this.settings = settings;
    this.#tried = settings;
  }

  /** As `stepFor` sees it. */
  get here(): ListenerHere {
    const { port, ssl_enabled, tls_port, generation, revision } = this.#tried;
    const failed = this.nextAttemptAt === undefined ? 'stopped' : 'failed';
    const state = this.isRunning ? 'running' : failed;
    return { state, port, ssl_enabled, tls_port, generation, revision, nextAttemptAt: this.nextAttemptAt };
  }

  /** Resolves when the stop that came last has ended. */
  get ending(): Promise<void> {
    return this.#ending;
  }

  /** Milliseconds since 1970; undefined when it does not run. */
  get runningSince(): number | undefined {
    return this.#bound === undefined ? undefined : this.#startedAt;
  }

  get isRunning(): boolean {
    return this.#bound !== undefined;
  }

  get activeConnections(): number {
    return this.#sessionsElsewhere + (this.#bound?.activeConnections ?? 0);
  }

  get #sessionsElsewhere(): number {
    return [...this.#former.keys()].reduce((sum, port) => sum + port.activeConnections, 0);
  }

  /** Takes the port of `settings`. @throws what `bind` throws; the status is FAILED then, until a later attempt succeeds. */
  async start(bind: BindPort, settings: StoredListener, now: number): Promise<void> {
    this.settings = settings;
    this.#tried = settings;
    this.#set('STARTING');
    try {
      this.#bound = await bind(this.#owner);
    } catch (error) {
      this.#fail(error as Error, now);
      throw error;
    }
    this.#startedAt = now;
    this.#failures = 0;
    this.nextAttemptAt = undefined;
    this.#set('RUNNING');
  }

  /**
   * Moves to the ports of `settings`: new ones are taken first, so that nothing changes when one cannot be taken. Sessions on
   * the old ones continue.
   */
  async move(bind: BindPort, settings: StoredListener): Promise<void> {
    const before = this.settings;
    this.settings = settings;
    try {
      const bound = await bind(this.#owner, this.#bound);
      if (this.#bound !== undefined) this.#leave(this.#bound, this.#bound.abandon());
      this.#bound = bound;
      this.#tried = settings;
    } catch (error) {
      this.settings = before;
      throw error;
    }
  }

  /** Gives its port up because it is no longer its own, and it cannot have the other: FAILED. Sessions continue. */
  giveUp(settings: StoredListener, error: Error, now: number): void {
    if (this.#bound !== undefined) this.#leave(this.#bound, this.#bound.abandon());
    this.#bound = undefined;
    this.settings = settings;
    this.#tried = settings;
    this.#fail(error, now);
  }

  /**
   * Gives up the port; resolves when the last session has ended, at the latest after `graceMs`.
   * @param answerMs see `BoundPort`; default: the port is given up at once
   */
  stop(reason: PesitError, graceMs: number, answerMs?: number): Promise<void> {
    return (this.#ending = this.#stop(reason, graceMs, answerMs));
  }

  async #stop(reason: PesitError, graceMs: number, answerMs: number | undefined): Promise<void> {
    this.nextAttemptAt = undefined;
    this.#failures = 0;
    if (this.status === 'FAILED') this.#set('STOPPED');
    const bound = this.#bound;
    this.#bound = undefined;
    if (bound !== undefined) this.#set('STOPPING');
    // Also the ports given up earlier: their sessions are of this listener.
    const ports = [...this.#former.keys(), ...(bound === undefined ? [] : [bound])];
    for (const port of ports) this.#leave(port, port.close(reason, graceMs, answerMs));
    await Promise.all(this.#former.values());
    // A start that came meanwhile, or another stop, has its own end.
    if (this.status === 'STOPPING' && this.#former.size === 0) this.#set('STOPPED');
  }

  #fail(error: Error, now: number): void {
    this.#set('FAILED', error.message);
    this.nextAttemptAt = now + Math.min(RETRY.longestMs, RETRY.firstMs * 2 ** this.#failures++);
  }

  #leave(port: BoundPort, over: Promise<void>): void {
    this.#former.set(
      port,
      over.finally(() => this.#former.delete(port)),
    );
  }

  #set(status: ListenerStatus, reason?: string): void {
    this.status = status;
    this.statusReason = reason;
  }
}

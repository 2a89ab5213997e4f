import type { PesitError } from '@pesit-node/protocol';

import type { ListenerRow, ListenerStatus } from './fields.js';

/** A port that takes partners; `PesitListener` of net is one. */
export interface BoundPort {
  readonly activeConnections: number;
  close(reason: PesitError, graceMs: number): Promise<void>;
}

/**
 * Takes a port for a listener.
 * @param settings asked at each new session, so that a change applies to the next one
 * @param refused called for every connection that was turned away, for the figures
 */
export type BindPort = (settings: () => ListenerRow, refused: () => void) => Promise<BoundPort>;

/** Before a port that could not be had is tried again: the first wait, doubled each time up to the longest. */
const RETRY = { firstMs: 1000, longestMs: 60_000 } as const;

/** What runs of one listener: its port, and ports it has given up whose sessions still end. */
export class RunningListener {
  status: ListenerStatus = 'STOPPED';
  statusReason: string | undefined;
  /** When a port that could not be had is tried again, milliseconds since 1970; undefined: it need not be. */
  nextAttemptAt: number | undefined;
  /** As configured now. */
  settings: ListenerRow;
  /** Connections turned away since the start of the service. */
  refusedConnections = 0;
  #bound: BoundPort | undefined;
  #startedAt = 0;
  /** Attempts to take the port that failed, since the last one that did not. */
  #failures = 0;
  readonly #draining = new Map<BoundPort, Promise<void>>();

  constructor(settings: ListenerRow) {
    this.settings = settings;
  }

  get isRunning(): boolean {
    return this.#bound !== undefined;
  }

  get activeConnections(): number {
    const leaving = [...this.#draining.keys()].reduce((sum, port) => sum + port.activeConnections, 0);
    return leaving + (this.#bound?.activeConnections ?? 0);
  }

  /** Seconds since the start; 0 when not running. */
  uptime(now: number): number {
    return this.#bound === undefined ? 0 : Math.floor((now - this.#startedAt) / 1000);
  }

  /** Whether it is started, or would be if its port could be had. */
  get shouldRun(): boolean {
    return this.isRunning || this.nextAttemptAt !== undefined;
  }

  /** Takes the port of `settings`. @throws what `bind` throws; the status is FAILED then, until a later attempt succeeds. */
  async start(bind: BindPort, settings: ListenerRow, now: number): Promise<void> {
    this.settings = settings;
    this.#set('STARTING');
    try {
      this.#bound = await bind(
        () => this.settings,
        () => this.refusedConnections++,
      );
    } catch (error) {
      this.#set('FAILED', (error as Error).message);
      this.nextAttemptAt = now + Math.min(RETRY.longestMs, RETRY.firstMs * 2 ** this.#failures++);
      throw error;
    }
    this.#startedAt = now;
    this.#failures = 0;
    this.nextAttemptAt = undefined;
    this.#set('RUNNING');
  }

  /**
   * Moves to the port of `settings`: the new one is taken first, so that nothing changes when it cannot be had. Sessions on
   * the old port end in peace.
   */
  async move(bind: BindPort, settings: ListenerRow, reason: PesitError, graceMs: number): Promise<void> {
    const before = this.settings;
    this.settings = settings;
    try {
      const bound = await bind(
        () => this.settings,
        () => this.refusedConnections++,
      );
      if (this.#bound !== undefined) void this.#drain(this.#bound, reason, graceMs);
      this.#bound = bound;
    } catch (error) {
      this.settings = before;
      throw error;
    }
  }

  /** Gives up the port; resolves when the last session has ended, at the latest after `graceMs`. */
  async stop(reason: PesitError, graceMs: number): Promise<void> {
    this.nextAttemptAt = undefined;
    this.#failures = 0;
    if (this.status === 'FAILED') this.#set('STOPPED');
    const bound = this.#bound;
    this.#bound = undefined;
    if (bound !== undefined) {
      this.#set('STOPPING');
      void this.#drain(bound, reason, graceMs);
    }
    await Promise.all(this.#draining.values());
    // A start that came meanwhile, or another stop, has its own end.
    if (this.status === 'STOPPING' && this.#draining.size === 0) this.#set('STOPPED');
  }

  #drain(port: BoundPort, reason: PesitError, graceMs: number): Promise<void> {
    const drained = port.close(reason, graceMs).finally(() => this.#draining.delete(port));
    this.#draining.set(port, drained);
    return drained;
  }

  #set(status: ListenerStatus, reason?: string): void {
    this.status = status;
    this.statusReason = reason;
  }
}

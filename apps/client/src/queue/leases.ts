import type { Renewed } from '../transfers/lease-store.js';
import type { Progress, TransferRow } from '../transfers/row.js';
import { Interruption } from './interruption.js';

/** A process that does not renew its leases for so long is dead to the others. */
export const LEASE_MS = 30_000;

/** Given up so long before it runs out: what runs needs a moment to end. */
const MARGIN = 1 / 6;

interface Held {
  readonly fence: number;
  readonly abort: AbortController;
  /** By `performance.now()`, counted from before the statement that gave it. */
  until: number;
}

export interface LeasesOptions {
  readonly renew: (
    leaseSeconds: number,
    running: readonly (Progress & Pick<TransferRow, 'fence'>)[],
  ) => Promise<readonly Renewed[]>;
  readonly progressOf: (id: string) => Progress;
  /** Renewing failed, whoever asked for it; what is held is held until it runs out. */
  readonly failed: () => void;
  /** Default `LEASE_MS`. */
  readonly leaseMs?: number | undefined;
}

/**
 * The leases of this process on the transfers that it runs, renewed for all of them in one statement. One that was lost, or
 * that could not be renewed in time, ends its transfer here before another process may begin with it; the fence makes sure
 * that nothing is written under a lease that is over, however late.
 */
export class Leases {
  readonly #options: LeasesOptions;
  readonly #leaseMs: number;
  readonly #held = new Map<string, Held>();
  #renewing: Promise<void> | undefined;

  constructor(options: LeasesOptions) {
    this.#options = options;
    this.#leaseMs = options.leaseMs ?? LEASE_MS;
  }

  get seconds(): number {
    return this.#leaseMs / 1000;
  }

  /** @param since `performance.now()` before the lease was asked for */
  begin(id: string, fence: number, abort: AbortController, since: number): void {
    this.#held.set(id, { fence, abort, until: since + this.#leaseMs });
  }

  end(id: string): void {
    this.#held.delete(id);
  }

  /** Asks once at a time: a database that does not answer gets no second question. @throws errors of the database */
  async renew(): Promise<void> {
    if (this.#held.size === 0) return;
    await (this.#renewing ??= this.#renew().finally(() => (this.#renewing = undefined)));
  }

  /** To be called several times in a lease: a renewal that waits for the database has no more time than one that fails. */
  giveUpWhatRunsOut(): void {
    const now = performance.now();
    for (const { until, abort } of this.#held.values()) {
      if (until - now < this.#leaseMs * MARGIN) abort.abort(new Interruption('lost'));
    }
  }

  async #renew(): Promise<void> {
    const asked = [...this.#held];
    const since = performance.now();
    try {
      const running = asked.map(([id, { fence }]) => ({ ...this.#options.progressOf(id), fence }));
      const renewed = new Map((await this.#options.renew(this.seconds, running)).map((row) => [row.id, row]));
      for (const [id, held] of asked) {
        const row = renewed.get(id);
        if (row === undefined) held.abort.abort(new Interruption('lost'));
        else held.until = since + this.#leaseMs;
        if (row?.cancel_requested === true) held.abort.abort(new Interruption('cancelled'));
      }
    } catch (error) {
      this.#options.failed();
      throw error;
    } finally {
      this.giveUpWhatRunsOut();
    }
  }

  /** Resolves when the lease is good for a while. @throws Interruption `lost` */
  async require(id: string): Promise<void> {
    const held = this.#held.get(id);
    const left = (): number => (held === undefined ? 0 : held.until - performance.now());
    if (left() < this.#leaseMs / 2) await this.renew().catch(() => undefined);
    if (held?.abort.signal.reason instanceof Interruption) throw held.abort.signal.reason;
    if (left() < this.#leaseMs * MARGIN) throw new Interruption('lost');
  }
}

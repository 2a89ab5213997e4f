import { LeaseClock, renewTogether } from '@pesit-node/service';

import type { Renewed } from '../transfers/lease-store.js';
import type { Progress, TransferRow } from '../transfers/row.js';
import { Interruption } from './interruption.js';

/** A process that does not renew its leases for so long is dead to the others. */
export const LEASE_MS = 30_000;

interface Held {
  readonly fence: number;
  readonly abort: AbortController;
}

export interface LeasesOptions {
  readonly renew: (
    leaseSeconds: number,
    running: readonly (Progress & Pick<TransferRow, 'fence'>)[],
  ) => Promise<readonly Renewed[]>;
  readonly progressOf: (id: string) => Progress;
  /** Whether transfers can make their way here; while they cannot, leases run out, so that others continue them. Default: they can. */
  readonly mayRenew?: (() => boolean) | undefined;
  /** Renewing failed, whoever asked for it; what is held is held until it runs out. */
  readonly failed: () => void;
  /** Default `LEASE_MS`. */
  readonly leaseMs?: number | undefined;
}

/**
 * The leases of this process on the transfers that it runs, renewed for all of them in one statement. One that was lost, or
 * that could not be renewed in time, ends its transfer here before another process may begin with it (`LeaseClock`); the fence
 * makes sure that nothing is written under a lease that is over, however late.
 */
export class Leases {
  readonly #options: LeasesOptions;
  readonly #leaseMs: number;
  readonly #held = new Map<string, Held>();
  readonly #clocks = new Map<string, LeaseClock>();
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
    const lost = (): void => abort.abort(new Interruption('lost'));
    const clock = new LeaseClock({ leaseMs: this.#leaseMs, over: lost });
    this.#held.set(id, { fence, abort });
    this.#clocks.set(id, clock);
    if (!clock.granted(since)) lost();
  }

  end(id: string): void {
    this.#clocks.get(id)?.end();
    this.#clocks.delete(id);
    this.#held.delete(id);
  }

  /** Asks once at a time: a database that does not answer gets no second question. @throws errors of the database */
  async renew(): Promise<void> {
    if (this.#clocks.size === 0 || this.#options.mayRenew?.() === false) return;
    await (this.#renewing ??= this.#renew().finally(() => (this.#renewing = undefined)));
  }

  async #renew(): Promise<void> {
    const { renew, progressOf, failed } = this.#options;
    try {
      const renewed = await renewTogether(this.#clocks, async (ids) => {
        const running = ids.map((id) => ({ ...progressOf(id), fence: this.#held.get(id)?.fence ?? 0 }));
        return new Map((await renew(this.seconds, running)).map((row) => [row.id, row]));
      });
      for (const [id, { cancel_requested: isCancelled }] of renewed) {
        if (isCancelled) this.#held.get(id)?.abort.abort(new Interruption('cancelled'));
      }
    } catch (error) {
      failed();
      throw error;
    }
  }

  /** Resolves when the lease is good for a while. @throws Interruption `lost` */
  async require(id: string): Promise<void> {
    const clock = this.#clocks.get(id);
    const abort = this.#held.get(id)?.abort;
    if (clock?.isDue === true) await this.renew().catch(() => undefined);
    if (abort?.signal.reason instanceof Interruption) throw abort.signal.reason;
    if (clock?.isHeld !== true) throw new Interruption('lost');
  }
}

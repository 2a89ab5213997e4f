import type { HealthRegistry } from '../health/registry.js';
import type { Logger } from '../logging.js';
import { within } from '@pesit-node/ground';

/** One thing that starts and stops with the service. */
export interface LifecycleStep {
  readonly name: string;
  /** @param signal aborted when the service is to stop before its start is over. */
  readonly start?: (signal: AbortSignal) => void | Promise<void>;
  readonly stop?: () => void | Promise<void>;
  /** How long `stop` may take before the next step is stopped regardless, milliseconds. Default 10,000. */
  readonly stopTimeoutMs?: number;
}

export interface LifecycleOptions {
  readonly logger: Logger;
  /** Put to "draining" before the first step is stopped. */
  readonly health: HealthRegistry;
}

/** The part of `process` that `handleSignals` needs. */
export interface SignalSource {
  on(event: 'SIGTERM' | 'SIGINT', listener: (signal: NodeJS.Signals) => void): unknown;
  exit(code: number): void;
}

const STOP_MS = 10_000;
const LAST_LINES_MS = 1000;

/** Starts steps in order and stops them in reverse; the one owner of the end of a service. */
export class Lifecycle {
  readonly #steps: LifecycleStep[] = [];
  readonly #started: LifecycleStep[] = [];
  readonly #logger: Logger;
  readonly #health: HealthRegistry;
  readonly #abort = new AbortController();
  #starting: Promise<void> | undefined;
  #stopping: Promise<boolean> | undefined;

  constructor({ logger, health }: LifecycleOptions) {
    this.#logger = logger;
    this.#health = health;
  }

  add(step: LifecycleStep): this {
    this.#steps.push(step);
    return this;
  }

  /**
   * Starts every step. When one fails, those before it are stopped and its error is thrown. Ends early, without an error,
   * when `stop` is called meanwhile.
   */
  async start(): Promise<void> {
    this.#starting ??= this.#startSteps();
    try {
      await this.#starting;
    } catch (error) {
      await this.stop('start failed');
      throw error;
    }
  }

  /**
   * Readiness goes down, then the started steps stop in reverse order, each within its limit.
   * @returns whether every step stopped in time and without an error.
   */
  stop(reason: string): Promise<boolean> {
    this.#stopping ??= this.#stopSteps(reason);
    return this.#stopping;
  }

  /**
   * SIGTERM and SIGINT stop the service and end the process, with code 0 when all stopped in order, else 1.
   * A second signal ends it at once with 128 + the signal's number.
   */
  handleSignals(source: SignalSource): void {
    let seen = false;
    const onSignal = (signal: NodeJS.Signals): void => {
      if (seen) {
        this.#logger.warn({ signal }, 'second signal: ending at once');
        this.#exit(source, signal === 'SIGINT' ? 130 : 143);
        return;
      }
      seen = true;
      void this.stop(signal).then((clean) => {
        this.#exit(source, clean ? 0 : 1);
      });
    };
    source.on('SIGTERM', onSignal);
    source.on('SIGINT', onSignal);
  }

  /**
   * After the last line of the log is written, or cannot be: in `process.exit` pino would try for ever to write to a pipe that
   * nobody reads.
   */
  #exit(source: SignalSource, code: number): void {
    const exit = (): void => source.exit(code);
    setTimeout(exit, LAST_LINES_MS).unref();
    this.#logger.flush(exit);
  }

  async #startSteps(): Promise<void> {
    const { signal } = this.#abort;
    const isOver = (): boolean => signal.aborted;
    for (const step of this.#steps) {
      if (isOver()) return;
      // Before its start, so that a step that fails half-way is stopped too.
      this.#started.push(step);
      try {
        await step.start?.(signal);
      } catch (error) {
        if (isOver()) return;
        throw error;
      }
    }
  }

  async #stopSteps(reason: string): Promise<boolean> {
    this.#logger.info({ reason }, 'stopping');
    this.#health.drain();
    this.#abort.abort(new Error(`The service stops: ${reason}`));
    await this.#starting?.catch(() => undefined);
    let clean = true;
    for (const { name, stop, stopTimeoutMs = STOP_MS } of this.#started.splice(0).reverse()) {
      try {
        await within(Promise.resolve(stop?.()), stopTimeoutMs, `${name} did not stop within ${stopTimeoutMs} ms`);
        this.#logger.debug({ step: name }, 'stopped');
      } catch (error) {
        clean = false;
        this.#logger.error({ step: name, err: error }, 'a part of the service did not stop cleanly');
      }
    }
    this.#logger.info({ clean }, 'stopped');
    return clean;
  }
}

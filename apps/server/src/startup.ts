import type { HealthComponent } from '@pesit-node/service';

/** Steps that the start waits for, in their order; words of the health document. */
export type StartupStep = 'volumes' | 'database' | 'recovery' | 'license' | 'listeners';

/**
 * How far the start has come. A node is ready when all is done: what dead processes left is judged, and every listener that
 * should run has its port or says why not. Before that, partners would be refused their connection.
 */
export class Startup {
  #waitsFor: StartupStep | undefined = 'database';
  #problem: string | undefined;

  /** The next step begins. */
  waitFor(step: StartupStep): void {
    this.#waitsFor = step;
  }

  /** The step failed, and is tried again. */
  failed(reason: string): void {
    this.#problem = reason;
  }

  done(): void {
    this.#waitsFor = undefined;
    this.#problem = undefined;
  }

  /** For `HealthRegistry`: component `startup`. */
  health(): HealthComponent {
    if (this.#waitsFor === undefined) return { status: 'UP' };
    const problem = this.#problem === undefined ? {} : { reason: this.#problem };
    return { status: 'DOWN', details: { waitsFor: this.#waitsFor, ...problem } };
  }
}

import { EventEmitter } from 'node:events';

import type { LeaderEvents, LeaderLease } from './leader-lease.js';

/** A node that nobody shares the work with: it leads until it stops. */
export class SingleLeader extends EventEmitter<LeaderEvents> implements LeaderLease {
  readonly #instance: string;
  #state: 'idle' | 'started' | 'stopped' = 'idle';

  constructor(instance: string) {
    super();
    this.#instance = instance;
  }

  get isLeader(): boolean {
    return this.#state !== 'stopped';
  }

  get epoch(): number | undefined {
    return this.isLeader ? 1 : undefined;
  }

  start(): void {
    if (this.#state !== 'idle') return;
    this.#state = 'started';
    this.emit('gain', 1);
  }

  refresh(): Promise<void> {
    return Promise.resolve();
  }

  holder(): Promise<string | undefined> {
    return Promise.resolve(this.isLeader ? this.#instance : undefined);
  }

  stop(): Promise<void> {
    if (this.#state !== 'stopped') {
      this.#state = 'stopped';
      this.emit('loss');
    }
    return Promise.resolve();
  }
}

import { setTimeout as delay } from 'node:timers/promises';

import { isDatabaseUnavailable } from '@pesit-node/service';
import type { EventStream } from '@pesit-node/service';

import { RECORD_LOST } from '../exchange/events.js';

/** State of the database; a `DatabaseSupervisor` fits. */
export interface Availability {
  readonly ready: boolean;
  whenReady(signal?: AbortSignal): Promise<void>;
}

interface Entry {
  readonly what: string;
  readonly write: () => Promise<void>;
  readonly written: () => void;
}

export interface OutboxOptions {
  readonly database: Availability;
  readonly events: Pick<EventStream, 'publish'>;
}

/** Records that wait, at most. */
const CAPACITY = 10_000;
const RETRY_MS = 250;

/**
 * Records that must be written but nobody can wait for: while the database is away they stay here, in order. In memory
 * only: what a process that dies then leaves behind is repaired at the next start (`TransferJournal.recover`).
 */
export class Outbox {
  readonly #database: Availability;
  readonly #events: Pick<EventStream, 'publish'>;
  readonly #entries: Entry[] = [];
  #running: Promise<void> | undefined;

  constructor({ database, events }: OutboxOptions) {
    this.#database = database;
    this.#events = events;
  }

  /** Resolves when it is written, or given up (an event). Never rejects. */
  add(what: string, write: () => Promise<void>): Promise<void> {
    return new Promise((resolve) => {
      if (this.#entries.length >= CAPACITY) {
        this.#lost(what, 'full');
        resolve();
        return;
      }
      this.#entries.push({ what, write, written: resolve });
      this.#running ??= this.#run();
    });
  }

  /** Resolves when nothing waits. */
  async empty(): Promise<void> {
    await this.#running;
  }

  async #run(): Promise<void> {
    for (let entry = this.#entries[0]; entry !== undefined; entry = this.#entries[0]) {
      if (!(await this.#write(entry))) continue;
      this.#entries.shift();
      entry.written();
    }
    this.#running = undefined;
  }

  /** @returns false when it has to be tried again. */
  async #write({ what, write }: Entry): Promise<boolean> {
    try {
      await write();
    } catch (error) {
      if (isDatabaseUnavailable(error)) {
        await delay(RETRY_MS);
        if (!this.#database.ready) await this.#database.whenReady();
        return false;
      }
      this.#lost(what, 'refused', error);
    }
    return true;
  }

  #lost(what: string, why: 'full' | 'refused', error?: unknown): void {
    this.#events.publish(RECORD_LOST, { what, why, waiting: this.#entries.length, error });
  }
}

import { randomBytes } from 'node:crypto';

import { eventText } from './event-text.js';

/** An event that a reader who comes again may still get. */
export interface LoggedEvent {
  readonly id: string;
  /** Object that it is about. */
  readonly about: string;
  readonly text: Buffer;
}

/** Events that are kept, and their bytes, at most. */
const MOST = { events: 1024, bytes: 4 * 1024 * 1024 } as const;

/**
 * The last events of this process, for readers who were cut off. An id is `<log>-<number>`: one of another process, of an
 * earlier log or of an event that is no longer kept is not known, and its reader has to list again.
 */
export class EventLog {
  readonly #name = randomBytes(6).toString('hex');
  readonly #most: { readonly events: number; readonly bytes: number };
  #events: LoggedEvent[] = [];
  #bytes = 0;
  #last = 0;

  constructor(most: { readonly events?: number; readonly bytes?: number } = {}) {
    this.#most = { ...MOST, ...most };
  }

  /** Id of the newest event, or of the beginning. */
  get lastId(): string {
    return this.#idOf(this.#last);
  }

  add(about: string, event: string, data: unknown): LoggedEvent {
    const id = this.#idOf(++this.#last);
    const logged = { id, about, text: eventText({ id, event, data }) };
    this.#events.push(logged);
    this.#bytes += logged.text.length;
    while (this.#events.length > this.#most.events || this.#bytes > this.#most.bytes) {
      this.#bytes -= this.#events.shift()?.text.length ?? 0;
    }
    return logged;
  }

  /** Nothing before now can be given again: something was not told. */
  forget(): void {
    this.#events = [];
    this.#bytes = 0;
    this.#last++;
  }

  /** Events behind that of the id; undefined when they are not all here. */
  since(id: string): readonly LoggedEvent[] | undefined {
    const [name, digits = ''] = id.split('-', 2);
    if (name !== this.#name || !/^\d{1,15}$/.test(digits)) return undefined;
    const behind = this.#last - Number(digits);
    if (behind < 0 || behind > this.#events.length) return undefined;
    return behind === 0 ? [] : this.#events.slice(-behind);
  }

  #idOf(number: number): string {
    return `${this.#name}-${number}`;
  }
}

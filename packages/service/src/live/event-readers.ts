import type { Request, Response } from 'express';

import { isStillIn } from '../auth/still-in.js';
import { unavailable } from '../errors.js';
import type { PeriodicHandle, PeriodicWork } from '../periodic/periodic-work.js';
import { HEARTBEAT } from './event-text.js';

/** One who reads server-sent events. */
export interface EventReader {
  /** False when it is gone, was dropped, or its events have ended. */
  readonly isOpen: boolean;
  /** Writes an event; drops a reader who has not taken too much of what was written before. */
  send(text: Buffer): void;
  /** No more events come: the answer ends. */
  end(): void;
}

export interface EventReadersOptions {
  readonly periodic: Pick<PeriodicWork, 'add'>;
  /** Readers at a time; beyond it they are answered 503. */
  readonly most: () => number;
  /** Bytes that may wait in this process for one reader. Default 262,144. */
  readonly mostWaiting?: number | undefined;
  /** Between two heartbeats, milliseconds. Default 15,000. */
  readonly heartbeatMs?: number | undefined;
}

const HEARTBEAT_MS = 15_000;
const MOST_WAITING = 256 * 1024;
/** After how long a reader comes again that was cut off, milliseconds (§9.2.5). */
const RETRY = Buffer.from('retry: 2000\n\n');

/**
 * The readers of server-sent events of one process. Each costs what waits for it and no more: the bytes of an event are shared, and
 * one who does not read is dropped, at the latest at the second heartbeat. Every heartbeat checks the credentials again,
 * and ends what was withdrawn.
 */
export class EventReaders {
  readonly #options: EventReadersOptions;
  readonly #readers = new Set<Reader>();
  readonly #beats: PeriodicHandle;
  #closed = false;

  constructor(options: EventReadersOptions) {
    this.#options = options;
    this.#beats = options.periodic.add({
      name: 'heartbeats of who reads events',
      intervalMs: options.heartbeatMs ?? HEARTBEAT_MS,
      first: 'after an interval',
      run: () => this.#beat(),
    });
  }

  get size(): number {
    return this.#readers.size;
  }

  /** @throws {ApiError} 503 when there are too many, or the service is stopping */
  admit(): void {
    if (this.#closed) throw unavailable('The service is stopping: read the events of another pod');
    const most = this.#options.most();
    if (this.#readers.size >= most) {
      throw unavailable(`${most} readers of events are here, as many as http.max-connections allows: try again`);
    }
  }

  /**
   * Begins the answer.
   * @param gone the reader is no longer there, whoever ended it
   * @throws {ApiError} as `admit`
   */
  open(req: Request, res: Response, gone: () => void): EventReader {
    this.admit();
    res.status(200).set({ 'Content-Type': 'text/event-stream', 'X-Accel-Buffering': 'no' });
    res.socket?.setNoDelay(true);
    const reader = new Reader(req, res, this.#options.mostWaiting ?? MOST_WAITING);
    // A caller that is gone by now has no `close` to come.
    if (res.destroyed) {
      queueMicrotask(gone);
      return reader;
    }
    this.#readers.add(reader);
    res.once('close', () => {
      this.#readers.delete(reader);
      gone();
    });
    reader.send(RETRY);
    return reader;
  }

  /** Ends all answers; nobody is let in from now on. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const reader of this.#readers) reader.end();
    await this.#beats.remove();
  }

  async #beat(): Promise<void> {
    await Promise.all([...this.#readers].map((reader) => reader.beat()));
  }
}

class Reader implements EventReader {
  readonly #req: Request;
  readonly #res: Response;
  readonly #mostWaiting: number;
  #given = 0;
  /** Bytes that its connection had taken at the last heartbeat, when others waited. */
  #stuckAt: number | undefined;

  constructor(req: Request, res: Response, mostWaiting: number) {
    this.#req = req;
    this.#res = res;
    this.#mostWaiting = mostWaiting;
  }

  get isOpen(): boolean {
    return !this.#res.destroyed && !this.#res.writableEnded;
  }

  send(text: Buffer): void {
    if (!this.isOpen) return;
    if (this.#res.writableLength > this.#mostWaiting) {
      this.#drop();
      return;
    }
    this.#given += text.length;
    this.#res.write(text);
  }

  end(): void {
    if (this.isOpen) this.#res.end();
  }

  async beat(): Promise<void> {
    // Ended an interval ago, and its connection has still not taken the rest.
    if (!this.isOpen) this.#drop();
    else if (!(await isStillIn(this.#req, 'viewer'))) this.end();
    else if (this.#isStuck()) this.#drop();
    else this.send(HEARTBEAT);
  }

  /** Bytes wait, and none of them has left since the last heartbeat. */
  #isStuck(): boolean {
    const waiting = this.#res.writableLength;
    const taken = this.#given - waiting;
    const isStuck = waiting > 0 && this.#stuckAt !== undefined && taken <= this.#stuckAt;
    this.#stuckAt = waiting > 0 ? taken : undefined;
    return isStuck;
  }

  /** At once: an end would wait for what it does not read. */
  #drop(): void {
    this.#res.destroy();
  }
}

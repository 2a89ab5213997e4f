import type { ArticleBatch, ArticleSink, SyncPoint } from '@pesit-node/protocol';
import type { Connection } from './connection.js';
import { BulkBuffers } from './receive-buffers.js';
import type { Pace } from './pace.js';

/** Bytes of a file after which it is worth large buffers. */
const BULK_AFTER = 128 * 1024;
/** Points that may wait for the disk before the peer does: without a window nothing else bounds them. */
const MAX_CHECKPOINTS = 64;

export interface IntakeListener {
  /** The sink failed, once: the transfer cannot continue. */
  readonly failed: (error: unknown) => void;
  /** The sink has the point on stable storage, and the peer is told: so long after its SYN, milliseconds. */
  readonly acknowledged: (point: SyncPoint, waitedMs: number) => void;
}

/**
 * Received articles to a sink, with back-pressure from disk to peer (design §3). The session acknowledges a point when the
 * sink has it on stable storage.
 */
export class ArticleIntake {
  readonly #connection: Connection;
  readonly #sink: ArticleSink;
  readonly #listener: IntakeListener;
  readonly #readSize: number | undefined;
  readonly #pace: Pace | undefined;
  #stopped = false;
  /** Lets the connection be read again; undefined while it is. */
  #resume: (() => void) | undefined;
  #bytes = 0;
  /** The buffers of a large file. */
  #bulk: BulkBuffers | undefined;
  #attending = false;
  /** Points that the sink has not stored yet. */
  #checkpoints = 0;
  /** Lets time run against the partner again, which waited for them. */
  #letClockRun: () => void = () => undefined;

  /** @param readSize most that is read at a time, bytes @param pace holds the data back */
  constructor(connection: Connection, sink: ArticleSink, listener: IntakeListener, readSize?: number, pace?: Pace) {
    this.#connection = connection;
    this.#sink = sink;
    this.#pace = pace;
    this.#readSize = pace === undefined ? readSize : Math.min(pace.quantum, readSize ?? pace.quantum);
    this.#listener = listener;
    sink.onFailure = (error) => {
      this.#fail(error);
    };
  }

  take(batch: ArticleBatch): void {
    if (this.#stopped) return;
    try {
      if (!this.#sink.write(batch, this.#bulk?.give())) this.#hold(this.#sink.drained());
      const free = this.#pace?.take(batch.bytes);
      // Beside the disk: each lets the connection be read when it is ready.
      if (free !== undefined) this.#connection.hold(free);
      this.#bytes += batch.bytes;
      if (this.#bulk === undefined && this.#bytes >= BULK_AFTER) {
        this.#bulk = new BulkBuffers(this.#readSize);
        this.#connection.readInto(this.#bulk);
      }
    } catch (error) {
      this.#fail(error);
    }
  }

  checkpoint(point: SyncPoint): void {
    if (this.#stopped) return;
    const came = performance.now();
    try {
      const stored = this.#sink.checkpoint(point, this.#gather()).then(
        () => {
          if (this.#stopped) return;
          this.#connection.session.acknowledgeSyn(point.number);
          this.#listener.acknowledged(point, performance.now() - came);
          this.#attendSoon();
          this.#checkpointDone();
        },
        (error: unknown) => {
          this.#fail(error);
        },
      );
      this.#checkpoints += 1;
      if (this.#checkpoints === 1) {
        // A partner whose window is full says nothing until our disk has answered.
        const allStored = new Promise<void>((resolve) => (this.#letClockRun = resolve));
        this.#connection.pauseClock(allStored);
      }
      if (this.#checkpoints >= MAX_CHECKPOINTS) this.#hold(stored);
    } catch (error) {
      this.#fail(error);
    }
  }

  /** One flush answers several points, one after another: their acknowledgements leave together. */
  #attendSoon(): void {
    if (this.#attending) return;
    this.#attending = true;
    queueMicrotask(() => {
      this.#attending = false;
      this.#connection.attend();
    });
  }

  /** Half the window: while it is flushed the partner fills the other half. Without a window it never waits for us. */
  #gather(): number {
    const window = this.#connection.session.terms?.syncWindow ?? 0;
    return window === 0 ? Infinity : Math.max(1, window >> 1);
  }

  #checkpointDone(): void {
    this.#checkpoints -= 1;
    if (this.#checkpoints === 0) this.#letClockRun();
  }

  /** The transfer is over, well or not: nothing more is written or acknowledged. */
  stop(): void {
    this.#stopped = true;
    this.#sink.onFailure = undefined;
    if (this.#bulk !== undefined) this.#connection.readInto(undefined);
    this.#resume?.();
    this.#letClockRun();
  }

  /** Reads no further until `until` settles, or the transfer is over: what the partner says then concerns no disk. */
  #hold(until: Promise<void>): void {
    until.then(
      () => {
        this.#resume?.();
      },
      (error: unknown) => {
        this.#fail(error);
      },
    );
    if (this.#resume !== undefined) return;
    const held = new Promise<void>((resolve) => {
      this.#resume = () => {
        this.#resume = undefined;
        resolve();
      };
    });
    this.#connection.hold(held);
  }

  #fail(error: unknown): void {
    if (this.#stopped) return;
    this.stop();
    this.#listener.failed(error);
  }
}

/**
 * One transport and one session: what the transport brings goes into the session, what the session has goes out, and one
 * timer watches the session's deadline. Knows no role: `server-connection.ts` and `requester.ts` handle the events.
 */
import type { Session, SessionEvent, WireDirection } from '@pesit-node/protocol';
import { asPesitError } from './errors.js';
import type { BulkBuffers } from './receive-buffers.js';
import type { Transport } from './transport.js';

/** Milliseconds of a monotonic clock: the `now` of every session. */
export const now = (): number => performance.now();

/** Sees what passes a connection, e.g. for a `SessionTrace`. The bytes are used again when it returns. */
export type WireObserver = (direction: WireDirection, bytes: Buffer) => void;

export interface ConnectionHooks {
  readonly onEvent: (event: SessionEvent) => void;
  /** Every byte of the session, in order; valid only during the call. Not called again once it has thrown. */
  readonly onBytes: WireObserver;
  /** Something of this side threw: the session is aborted, the process keeps running. */
  readonly onBug: (error: unknown) => void;
}

export class Connection {
  readonly session: Session;
  readonly #transport: Transport;
  readonly #hooks: ConnectionHooks;
  #timer: NodeJS.Timeout | undefined;
  #timerAt = 0;
  /** Who keeps the transport from being read: disks that are behind. */
  #holds = 0;
  /** For what the partner waits, beside answers: while there is any, its silence is our fault. */
  #pauses = 0;
  /** Writes that the transport has not taken yet. */
  #blockedWrites = 0;
  /** Bytes that the transport had not got rid of when somebody last looked. */
  #queued = 0;
  /** The last burst of a file, until the session says something behind it, or this turn of the event loop is over. */
  #last: { readonly bytes: Buffer; readonly taken: () => void } | undefined;
  #bulk: BulkBuffers | undefined;
  #observed = true;
  #halfClosed = false;
  #gone = false;

  /** Reads `transport` from now on. */
  constructor(transport: Transport, session: Session, hooks: ConnectionHooks) {
    this.#transport = transport;
    this.session = session;
    this.#hooks = hooks;
    transport.attach({
      received: (bytes) => {
        this.receive(bytes);
      },
      // A peer that has closed its half gets no answer that it could read.
      ended: (cause) => {
        this.#lost(cause);
      },
      closed: () => {
        this.#over();
      },
    });
    transport.resume();
    this.#watch();
  }

  /** Feeds bytes as if the transport had brought them. */
  receive(bytes: Buffer): void {
    this.#show('received', bytes);
    try {
      this.session.receive(bytes, now());
    } catch (error) {
      this.#bug(error);
    }
    this.attend();
    // Only now: the batches of these bytes, with views of earlier buffers too, have been given to the file.
    this.#bulk?.seen(this.session.pending);
  }

  /** To be called after every verb of the session: writes its output, delivers its events, watches its deadline. */
  attend(): void {
    for (;;) {
      this.#write();
      const event = this.session.nextEvent();
      if (event === undefined) break;
      try {
        this.#hooks.onEvent(event);
      } catch (error) {
        this.#bug(error);
      }
    }
    if (this.session.phase !== 'open') this.#flush();
    if (this.session.phase === 'closing' && !this.#halfClosed) {
      this.#halfClosed = true;
      this.#transport.resume();
      this.#transport.end();
    }
    if (this.session.phase === 'closed') this.#transport.destroy();
    this.#watch();
  }

  /**
   * Writes a burst. Resolves when the transport has taken it; resolves too when the connection is gone, as the session then
   * says so.
   * @param isLast of its file: it leaves together with TRANS.END, where the session says that at once
   */
  writeBurst(bytes: Buffer, isLast = false): Promise<void> {
    return new Promise((resolve) => {
      // The answer that allows the data, if it has not left yet, goes before them.
      this.#write();
      this.#flush();
      this.#last = { bytes, taken: resolve };
      if (isLast) process.nextTick(() => this.#flush());
      else this.#flush();
    });
  }

  /** From here on the partner has its time to take `parts`. */
  #send(parts: readonly Buffer[], taken?: () => void): void {
    this.#blockedWrites += 1;
    if (this.#blockedWrites === 1) this.session.setOutputBlocked(true, now());
    this.#transport.write(parts, () => {
      this.#blockedWrites -= 1;
      // Progress: what waits behind it has its own time.
      this.session.setOutputBlocked(this.#blockedWrites > 0, now());
      this.#queued = this.#transport.queuedBytes;
      // The FPDU awaited from now on may have less time.
      this.#watch();
      taken?.();
    });
    this.#queued = this.#transport.queuedBytes;
  }

  /** Stops reading until `until` settles: the disk is behind, not the peer. */
  hold(until: Promise<unknown>): void {
    this.#holds += 1;
    // A session that is closing reads on, to see the peer close.
    if (this.#holds === 1 && !this.#halfClosed) this.#transport.pause();
    this.session.setHeld(true);
    const release = (): void => {
      this.#holds -= 1;
      if (this.#holds > 0) return;
      this.session.setHeld(false);
      // Bytes received before go first; they may hold us again.
      this.attend();
      if (!this.#held()) this.#transport.resume();
    };
    this.pauseClock(until);
    until.then(release, release);
  }

  #held(): boolean {
    return this.#holds > 0;
  }

  /** Lets no time run against the peer until `until` settles: it may be waiting for us. */
  pauseClock(until: Promise<unknown>): void {
    this.#pauses += 1;
    const release = (): void => {
      this.#pauses -= 1;
      if (this.#pauses > 0 || this.session.phase !== 'open') return;
      this.session.touch(now());
      this.#watch();
    };
    until.then(release, release);
  }

  /** Reads into these buffers from now on, where the transport can; undefined: into small ones again. */
  readInto(bulk: BulkBuffers | undefined): void {
    this.#bulk = bulk;
    this.#transport.readInto(bulk);
  }

  /** Resolves when the connection is gone and the session knows it. */
  closed(): Promise<void> {
    return this.#transport.closed;
  }

  /** Closes without a word. */
  destroy(): void {
    this.#transport.destroy();
  }

  #write(): void {
    const output = this.session.takeOutput();
    if (output.length === 0) return;
    // The session has no clock: what the partner owes for these bytes, it owes from now on.
    if (!this.#isShut) this.session.touch(now());
    this.#flush(output);
  }

  /** Writes what was kept, and this behind it. */
  #flush(output: readonly Buffer[] = []): void {
    const last = this.#last;
    this.#last = undefined;
    const parts = last === undefined ? output : [last.bytes, ...output];
    if (parts.length === 0) return;
    if (this.#isShut) {
      last?.taken();
      return;
    }
    for (const bytes of parts) this.#show('sent', bytes);
    this.#send(parts, last?.taken);
    if (last !== undefined) this.#watch();
  }

  get #isShut(): boolean {
    return this.#transport.destroyed || this.#halfClosed;
  }

  #show(direction: WireDirection, bytes: Buffer): void {
    if (!this.#observed) return;
    try {
      this.#hooks.onBytes(direction, bytes);
    } catch (error) {
      this.#observed = false;
      this.#bug(error);
      // Behind what is being written or read now.
      queueMicrotask(() => {
        this.attend();
      });
    }
  }

  #lost(cause: unknown): void {
    if (this.session.phase === 'closed') return;
    this.session.connectionLost(now(), cause);
    this.attend();
  }

  #over(): void {
    this.#lost(undefined);
    this.#gone = true;
    clearTimeout(this.#timer);
  }

  #bug(error: unknown): void {
    this.#hooks.onBug(error);
    this.session.abort(asPesitError(error, '3-399'));
  }

  /** One timer at most, moved only when the deadline comes nearer: a busy session costs no timer a packet. */
  #watch(): void {
    const deadline = this.#paused() ? undefined : this.session.deadline;
    if (deadline === undefined) return;
    if (this.#timer !== undefined && this.#timerAt <= deadline) return;
    clearTimeout(this.#timer);
    this.#timerAt = deadline;
    this.#timer = setTimeout(
      () => {
        this.#timer = undefined;
        if (this.#paused()) return;
        if (this.#moves()) this.session.setOutputBlocked(true, now());
        else this.session.handleTimeout(now());
        this.attend();
      },
      Math.max(1, Math.ceil(deadline - now())),
    );
  }

  /** Written bytes are on their way to a partner that takes them, however slowly: its answer cannot come before. */
  #moves(): boolean {
    if (this.#blockedWrites === 0) return false;
    const before = this.#queued;
    this.#queued = this.#transport.queuedBytes;
    return this.#queued !== before;
  }

  /** No time runs while we are behind; but a connection that is closing ends, whatever a disk still does. */
  #paused(): boolean {
    return this.#gone || (this.#pauses > 0 && this.session.phase === 'open');
  }
}

/**
 * One socket and one session: what the socket brings goes into the session, what the session has goes out, and one timer
 * watches the session's deadline. Knows no role: `server-connection.ts` and `requester.ts` handle the events.
 */
import type { Socket } from 'node:net';
import type { Session, SessionEvent, WireDirection } from '@pesit-node/protocol';
import { asPesitError } from './errors.js';
import { readInto } from './receive-buffers.js';
import type { BulkBuffers } from './receive-buffers.js';

/** Milliseconds of a monotonic clock: the `now` of every session. */
export const now = (): number => performance.now();

/** Sees what passes a connection, e.g. for a `SessionTrace`. The bytes are used again when it returns. */
export type WireObserver = (direction: WireDirection, bytes: Buffer) => void;

export interface ConnectionHooks {
  readonly onEvent: (event: SessionEvent) => void;
  /** Every byte of the session, in order; valid only during the call. Not called again once it has thrown. */
  readonly onBytes: WireObserver;
  /** Something of this side threw: the session is aborted, the process goes on. */
  readonly onBug: (error: unknown) => void;
}

export class Connection {
  readonly socket: Socket;
  readonly session: Session;
  readonly #hooks: ConnectionHooks;
  #timer: NodeJS.Timeout | undefined;
  #timerAt = 0;
  /** Who keeps the socket from being read: disks that are behind. */
  #holds = 0;
  /** For what the partner waits, beside answers: while there is any, its silence is our fault. */
  #debts = 0;
  /** Writes that the operating system has not taken yet. */
  #blockedWrites = 0;
  /** Bytes that waited in the operating system's hands when somebody last looked. */
  #queued = 0;
  #bulk: BulkBuffers | undefined;
  #observed = true;
  #halfClosed = false;
  #closed: (() => void)[] = [];
  #gone = false;

  /** Takes over a socket that nobody else listens to any more. */
  constructor(socket: Socket, session: Session, hooks: ConnectionHooks) {
    this.socket = socket;
    this.session = session;
    this.#hooks = hooks;
    socket.setNoDelay(true);
    socket.setKeepAlive(true, 60_000);
    socket.on('data', (bytes: Buffer) => {
      this.receive(bytes);
    });
    socket.on('error', (error) => {
      this.#lost(error);
    });
    socket.on('end', () => {
      // A peer that has closed its half gets no answer that it could read.
      this.#lost(undefined);
    });
    socket.on('close', () => {
      this.#over();
    });
    // Both may have happened while the socket changed hands: it was paused, or it is closed already.
    socket.resume();
    if (socket.closed) {
      process.nextTick(() => {
        this.#over();
      });
    }
    this.#watch();
  }

  /** Feeds bytes as if the socket had brought them. */
  receive(bytes: Buffer): void {
    this.#show('received', bytes);
    try {
      this.session.receive(bytes, now());
    } catch (error) {
      this.#bug(error);
    }
    this.settle();
    // Only now: the batches of these bytes, with views of earlier buffers too, have been given to the file.
    this.#bulk?.seen(this.session.pending);
  }

  /** To be called after every verb of the session: writes its output, delivers its events, watches its deadline. */
  settle(): void {
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
    if (this.session.phase === 'closing' && !this.#halfClosed) {
      this.#halfClosed = true;
      this.socket.resume();
      this.socket.end();
    }
    if (this.session.phase === 'closed') this.socket.destroy();
    this.#watch();
  }

  /**
   * Writes a burst. Resolves when the operating system has taken it; resolves too when the connection is gone, as the
   * session then says so.
   */
  writeBurst(bytes: Buffer): Promise<void> {
    return new Promise((resolve) => {
      if (this.socket.destroyed || this.#halfClosed) {
        resolve();
        return;
      }
      // The answer that allows the data, if it has not left yet, goes before them.
      this.#write();
      this.#show('sent', bytes);
      this.#blocked((taken) => {
        this.socket.write(bytes, () => {
          taken();
          resolve();
        });
      });
      this.#watch();
    });
  }

  /** The partner's time to take what `write` gives to the socket begins. */
  #blocked(write: (taken: () => void) => void): void {
    this.#blockedWrites += 1;
    if (this.#blockedWrites === 1) this.session.setOutputBlocked(true, now());
    write(() => {
      this.#blockedWrites -= 1;
      // Progress: what waits behind it has its own time.
      this.session.setOutputBlocked(this.#blockedWrites > 0, now());
      this.#queued = writeQueueSize(this.socket);
      // What is waited for from now on may have less time.
      this.#watch();
    });
    this.#queued = writeQueueSize(this.socket);
  }

  /** Stops reading until `until` settles: the disk is behind, not the peer. */
  hold(until: Promise<unknown>): void {
    this.#holds += 1;
    // A session that is closing reads on, to see the peer close.
    if (this.#holds === 1 && !this.#halfClosed) this.socket.pause();
    this.session.setHeld(true);
    const release = (): void => {
      this.#holds -= 1;
      if (this.#holds > 0) return;
      this.session.setHeld(false);
      // What was received before goes first; it may hold us again.
      this.settle();
      if (!this.#held()) this.socket.resume();
    };
    this.owe(until);
    until.then(release, release);
  }

  #held(): boolean {
    return this.#holds > 0;
  }

  /** Lets no time run against the peer until `until` settles: it may be waiting for us. */
  owe(until: Promise<unknown>): void {
    this.#debts += 1;
    const release = (): void => {
      this.#debts -= 1;
      if (this.#debts > 0 || this.session.phase !== 'open') return;
      this.session.touch(now());
      this.#watch();
    };
    until.then(release, release);
  }

  /** Reads into these buffers from now on; undefined: into small ones again. */
  readInto(bulk: BulkBuffers | undefined): void {
    this.#bulk = bulk;
    readInto(this.socket, bulk);
  }

  /** Resolves when the socket is closed. */
  closed(): Promise<void> {
    return this.#gone ? Promise.resolve() : new Promise((resolve) => this.#closed.push(resolve));
  }

  #write(): void {
    const output = this.session.takeOutput();
    if (output.length === 0 || this.socket.destroyed || this.#halfClosed) return;
    // The session has no clock: what the partner owes for these bytes, it owes from now on.
    this.session.touch(now());
    if (output.length > 1) this.socket.cork();
    const last = output.length - 1;
    for (const [index, bytes] of output.entries()) {
      this.#show('sent', bytes);
      if (index < last) this.socket.write(bytes);
      else this.#blocked((taken) => this.socket.write(bytes, taken));
    }
    if (output.length > 1) this.socket.uncork();
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
        this.settle();
      });
    }
  }

  #lost(cause: unknown): void {
    if (this.session.phase === 'closed') return;
    this.session.connectionLost(now(), cause);
    this.settle();
  }

  #over(): void {
    this.#lost(undefined);
    this.#gone = true;
    clearTimeout(this.#timer);
    for (const resolve of this.#closed.splice(0)) resolve();
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
        this.settle();
      },
      Math.max(1, Math.ceil(deadline - now())),
    );
  }

  /** What was written is on its way to a partner that takes it, however slowly: its answer cannot come before. */
  #moves(): boolean {
    if (this.#blockedWrites === 0) return false;
    const before = this.#queued;
    this.#queued = writeQueueSize(this.socket);
    return this.#queued !== before;
  }

  /** No time runs while we are behind; but a connection that is closing ends, whatever a disk still does. */
  #paused(): boolean {
    return this.#gone || (this.#debts > 0 && this.session.phase === 'open');
  }
}

/**
 * Bytes of writes that were begun and that the operating system has not taken yet: what Node's own idle timer looks at, and
 * no public property tells. 0 where there is no such thing: then only whole writes count as progress.
 */
function writeQueueSize(socket: Socket): number {
  const { _handle: handle } = socket as unknown as { readonly _handle?: { readonly writeQueueSize?: number } | null };
  return handle?.writeQueueSize ?? 0;
}

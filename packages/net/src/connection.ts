/**
 * One socket and one session: what the socket brings goes into the session, what the session has goes out, and one timer
 * watches the session's deadline. Knows no role: `server-connection.ts` and `requester.ts` handle the events.
 */
import type { Socket } from 'node:net';
import type { Session, SessionEvent } from '@pesit-node/protocol';

/** Milliseconds of a monotonic clock: the `now` of every session. */
export const now = (): number => performance.now();

export class Connection {
  readonly socket: Socket;
  readonly session: Session;
  readonly #onEvent: (event: SessionEvent) => void;
  #timer: NodeJS.Timeout | undefined;
  #timerAt = 0;
  /** Who keeps the socket from being read: disks that are behind. */
  #holds = 0;
  #blockedWrites = 0;
  #halfClosed = false;
  #closed: (() => void)[] = [];
  #gone = false;

  constructor(socket: Socket, session: Session, onEvent: (event: SessionEvent) => void) {
    this.socket = socket;
    this.session = session;
    this.#onEvent = onEvent;
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
      this.#lost(undefined);
      this.#gone = true;
      clearTimeout(this.#timer);
      for (const resolve of this.#closed.splice(0)) resolve();
    });
    this.settle();
  }

  /** Feeds bytes as if the socket had brought them. */
  receive(bytes: Buffer): void {
    this.session.receive(bytes, now());
    this.settle();
  }

  /** To be called after every verb of the session: writes its output, delivers its events, watches its deadline. */
  settle(): void {
    for (;;) {
      this.#write();
      const event = this.session.nextEvent();
      if (event === undefined) break;
      this.#onEvent(event);
    }
    this.#write();
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
      this.#blockedWrites += 1;
      if (this.#blockedWrites === 1) this.session.setOutputBlocked(true, now());
      this.socket.write(bytes, () => {
        this.#blockedWrites -= 1;
        // Progress: what waits behind this burst has its own time.
        this.session.setOutputBlocked(this.#blockedWrites > 0, now());
        resolve();
      });
      this.#watch();
    });
  }

  /** Stops reading until `until` settles: the disk is behind, not the peer. */
  hold(until: Promise<void>): void {
    this.#holds += 1;
    if (this.#holds === 1) this.socket.pause();
    const release = (): void => {
      this.#holds -= 1;
      if (this.#holds > 0) return;
      this.session.touch(now());
      this.socket.resume();
      this.#watch();
    };
    until.then(release, release);
  }

  /** Resolves when the socket is closed. */
  closed(): Promise<void> {
    return this.#gone ? Promise.resolve() : new Promise((resolve) => this.#closed.push(resolve));
  }

  #write(): void {
    const output = this.session.takeOutput();
    if (output.length === 0 || this.socket.destroyed || this.#halfClosed) return;
    if (output.length > 1) this.socket.cork();
    for (const bytes of output) this.socket.write(bytes);
    if (output.length > 1) this.socket.uncork();
  }

  #lost(cause: unknown): void {
    if (this.session.phase === 'closed') return;
    this.session.connectionLost(now(), cause);
    this.settle();
  }

  /** One timer at most, moved only when the deadline comes nearer: a busy session costs no timer a packet. */
  #watch(): void {
    const deadline = this.#holds > 0 || this.#gone ? undefined : this.session.deadline;
    if (deadline === undefined) return;
    if (this.#timer !== undefined && this.#timerAt <= deadline) return;
    clearTimeout(this.#timer);
    this.#timerAt = deadline;
    this.#timer = setTimeout(
      () => {
        this.#timer = undefined;
        if (this.#holds > 0) return;
        this.session.handleTimeout(now());
        this.settle();
      },
      Math.max(1, Math.ceil(deadline - now())),
    );
  }
}

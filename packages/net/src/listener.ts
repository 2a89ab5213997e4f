import { settledWithin } from '@pesit-node/ground';
import { randomInt } from 'node:crypto';
import { PesitError, ServerSession, timersOf } from '@pesit-node/protocol';
import type { Dialect, Timers } from '@pesit-node/protocol';
import { now } from './connection.js';
import { Crowd } from './crowd.js';
import type { DataLimits } from './data-limits.js';
import { asPesitError } from './errors.js';
import type { Preconnection, ServerConnection, ServerHandler } from './handler.js';
import { identify } from './identification.js';
import type { Identified } from './identification.js';
import { PartnerConnection } from './server-connection.js';
import { serveTcp } from './tcp-transport.js';
import type { Serve, Transport, TransportServer } from './transport.js';

export interface ListenerOptions {
  readonly host: string;
  /** 0 chooses a free port. */
  readonly port: number;
  /** Network that carries the sessions; default: plain TCP. */
  readonly transport?: Serve;
  /** Sessions of proven partners at a time; one more gets RCONNECT 3-309. */
  readonly maxConnections: number;
  /**
   * Partners that have said CONNECT and are being identified at a time, beside the sessions; of more, the address that has most
   * gives way (RCONNECT 3-309). Far more than may wait for a password check, so that here is no queue but for a slow database.
   * Default 1024.
   */
  readonly maxProving?: number;
  /** `tcpipHeader`: recognise the dialect of each connection, or insist on one. */
  readonly tcpipHeader: 'auto' | Dialect;
  /** Tp, the listener's readTimeout, and the others where they differ from the defaults; milliseconds. */
  readonly timers?: Partial<Timers>;
  /** Read for each connection. */
  readonly limits?: DataLimits;
  /** A partner has connected: who answers it. */
  readonly accept: (connection: ServerConnection) => ServerHandler;
  /**
   * Checks identifier and password of a pre-connection; `accept` is asked only after it. Resolves: ACK0, and `connect` finds
   * it in its indication. Rejection with a `PesitError`: NAK0, which has no room for a diagnostic; its message goes to
   * `rejected`. Default: every pre-connection is acknowledged.
   */
  readonly preconnect?: (preconnection: Preconnection, remoteAddress: string) => Promise<void>;
  /**
   * Connections that never became sessions: not PeSIT, TLS on a plain port, silence, too many. For log and counters.
   * @param code one of `TLS_FAILURES` where TLS did not let it through
   */
  readonly rejected: (remoteAddress: string, reason: string, code?: string, error?: PesitError) => void;
}

/** Connections without CONNECT that are kept at a time; beyond it the oldest gives way, so that silence cannot shut partners out. */
const MAX_UNIDENTIFIED = 512;
/** See `ListenerOptions.maxProving`. */
const MAX_PROVING = 1024;
/** Sessions that are over and wait for the partner to close, so that it reads our last word; beyond it the oldest is cut. */
const MAX_LEAVING = 256;

/** A port on which partners connect. */
export class PesitListener {
  readonly #options: ListenerOptions;
  readonly #server: TransportServer;
  /** Connections without CONNECT. */
  readonly #unidentified = new Crowd<Transport>();
  /** Everyone whose handler is not yet told of the end. */
  readonly #partners = new Set<PartnerConnection>();
  /** Those that have said CONNECT and are not proven. */
  readonly #proving = new Crowd<PartnerConnection>();
  /** Those that gave way to others and whose application is still asked. */
  readonly #displaced = new Set<PartnerConnection>();
  readonly #established = new Set<PartnerConnection>();
  readonly #leaving = new Set<PartnerConnection>();
  /** Why the listener takes no more sessions. */
  #closing: PesitError | undefined;
  /** The port was given up; resolves when the last connection is closed. */
  #abandoned: Promise<void> | undefined;

  /** @throws NodeJS.ErrnoException EADDRINUSE, EACCES … as `listen` does */
  static async listen(options: ListenerOptions): Promise<PesitListener> {
    const listener = new PesitListener(options);
    await listener.#server.listen({ host: options.host, port: options.port });
    return listener;
  }

  private constructor(options: ListenerOptions) {
    this.#options = options;
    const { transport = serveTcp } = options;
    this.#server = transport({
      arrived: (arrival) => {
        this.#arrived(arrival);
      },
      failed: (remoteAddress, reason, code) => {
        options.rejected(remoteAddress, reason, code);
      },
    });
  }

  /** As configured now: of the next connection. */
  get #timers(): Timers {
    return timersOf(this.#options.timers);
  }

  get port(): number {
    return this.#server.port;
  }

  /** Sessions established now. */
  get activeConnections(): number {
    return this.#established.size;
  }

  /** Gives up the port; the sessions on it continue. Resolves when the last connection is closed. */
  abandon(): Promise<void> {
    return (this.#abandoned ??= this.#server.close());
  }

  /**
   * Takes no more sessions, lets running transfers end for up to `graceMs`, then interrupts those that are left (IDT 4: a
   * restart follows). A session whose file is over, whichever way, has the time of a closing session to close and deselect it
   * and to release, then it ends with `reason`. Idle sessions end at once. Resolves when every handler was told and every
   * connection is closed. A second call may shorten the grace of the first.
   * @param answerMs the port is kept until then, and while transfers run: who connects is told `reason` (RCONNECT), so that a
   *   partner comes again instead of finding nobody. Default: the port is given up at once
   */
  async close(reason: PesitError, graceMs: number, answerMs?: number): Promise<void> {
    this.#closing ??= reason;
    if (answerMs === undefined) return this.#close(reason, graceMs);
    const answered = settledWithin(this.#abandoned ?? NEVER, answerMs);
    await this.#end(reason, graceMs);
    await answered;
    return this.#close(reason, 0);
  }

  async #close(reason: PesitError, graceMs: number): Promise<void> {
    const abandoned = this.abandon();
    for (const transport of this.#unidentified) transport.destroy();
    await this.#end(reason, graceMs);
    await abandoned;
  }

  /** Ends the sessions that are there now. */
  async #end(reason: PesitError, graceMs: number): Promise<void> {
    for (const partner of this.#partners) partner.drain();
    const finished = Promise.all([...this.#partners].map((partner) => partner.finished));
    if (this.#partners.size > 0) await settledWithin(finished, graceMs);
    for (const partner of this.#partners) partner.expire(reason);
    if (this.#partners.size > 0) await settledWithin(finished, this.#timers.close);
    for (const partner of this.#partners) partner.abort(reason);
    await finished;
  }

  #arrived(transport: Transport): void {
    if (this.#unidentified.size >= MAX_UNIDENTIFIED) {
      const oldest = this.#unidentified.oldest();
      const reason = `${MAX_UNIDENTIFIED} connections wait without CONNECT: the oldest of the address that has most gives way`;
      if (oldest !== undefined) this.#reject(oldest, reason);
    }
    const address = transport.remoteAddress;
    this.#unidentified.add(transport, address);
    void transport.closed.then(() => {
      this.#unidentified.delete(transport);
    });
    const arrived = now();
    const { tcpipHeader, preconnect } = this.#options;
    identify(
      transport,
      {
        tcpipHeader,
        timeout: this.#timers.connect,
        preconnect: (preconnection) => preconnect?.(preconnection, address) ?? Promise.resolve(),
      },
      {
        identified: (identified) => {
          this.#establish(transport, arrived, identified);
        },
        rejected: (reason, last, error) => {
          this.#reject(transport, reason, last, error);
        },
      },
    );
  }

  /** Reports and closes; after `last` the partner has the time of a closing session to read it. */
  #reject(transport: Transport, reason: string, last?: Buffer, error?: PesitError): void {
    const address = this.#unidentified.addressOf(transport) ?? 'unknown';
    if (last === undefined) {
      this.#unidentified.delete(transport);
      transport.destroy();
    } else {
      transport.write([last]);
      transport.end();
      transport.resume();
      const timer = setTimeout(() => {
        transport.destroy();
      }, this.#timers.close);
      void transport.closed.then(() => {
        clearTimeout(timer);
      });
    }
    this.#options.rejected(address, reason, undefined, error);
  }

  /** Tc runs from the arrival on, whatever the partner has sent of its CONNECT. */
  #establish(transport: Transport, arrived: number, { dialect, preconnection, received }: Identified): void {
    const session = new ServerSession({
      dialect,
      now: arrived,
      connectionId: randomInt(1, 256),
      timers: this.#timers,
    });
    let partner: PartnerConnection;
    try {
      partner = new PartnerConnection({
        transport,
        session,
        indication: { dialect, preconnection },
        limits: this.#options.limits,
        accept: this.#options.accept,
        admit: (takesNoPlace) => this.#admit(transport, partner, takesNoPlace),
        takePlace: () => this.#takePlace(partner),
        draining: () => this.#closing,
      });
    } catch (error) {
      this.#reject(transport, asPesitError(error, '3-399').message);
      return;
    }
    this.#partners.add(partner);
    void partner.finished.then(() => {
      this.#leave(partner);
    });
    partner.receive(received);
  }

  /** Whether a partner may be identified now. When too many are, the address that has most of them gives way. */
  #admit(transport: Transport, partner: PartnerConnection, takesNoPlace: boolean): PesitError | undefined {
    this.#unidentified.delete(transport);
    if (this.#closing !== undefined) return this.#closing;
    if (takesNoPlace) return undefined;
    if (this.#isFull()) return this.#full();
    const { maxProving = MAX_PROVING } = this.#options;
    if (this.#proving.size >= maxProving) {
      const loser = this.#proving.newestBefore(partner.remoteAddress);
      if (loser === undefined || this.#displaced.size >= maxProving) return crowded(maxProving);
      this.#proving.delete(loser);
      this.#displaced.add(loser);
      loser.refuse(crowded(maxProving));
    }
    this.#proving.add(partner, partner.remoteAddress);
    return undefined;
  }

  /** A proven partner becomes a session. @throws PesitError 3-309 when there are as many as may be */
  #takePlace(partner: PartnerConnection): void {
    if (this.#established.has(partner)) return;
    if (this.#isFull()) throw this.#full();
    this.#proving.delete(partner);
    this.#established.add(partner);
  }

  #isFull(): boolean {
    return this.#established.size >= this.#options.maxConnections;
  }

  #full(): PesitError {
    const [expected, got] = [`at most ${this.#options.maxConnections} connections`, `${this.#established.size + 1}`];
    return new PesitError(`the listener takes ${expected}: try again later, or raise maxConnections`, {
      fault: 'local',
      diagnostic: '3-309',
      expected,
      got,
    });
  }

  /** Frees the place; the connection stays until the partner has closed it, or Tr is over. */
  #leave(partner: PartnerConnection): void {
    this.#partners.delete(partner);
    this.#proving.delete(partner);
    this.#displaced.delete(partner);
    this.#established.delete(partner);
    this.#leaving.add(partner);
    void partner.closed().then(() => {
      this.#leaving.delete(partner);
    });
    const [oldest] = this.#leaving;
    if (this.#leaving.size > MAX_LEAVING) oldest?.destroy();
  }
}

const NEVER = new Promise<void>(() => undefined);

const crowded = (most: number): PesitError =>
  new PesitError(`${most} partners are being identified: try again later`, {
    fault: 'local',
    diagnostic: '3-309',
    peerText: 'too many partners are being identified: try again later',
  });

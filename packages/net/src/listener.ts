import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { DEFAULT_TIMERS, PesitError, ServerSession } from '@pesit-node/protocol';
import type { Dialect, Timers } from '@pesit-node/protocol';
import { now } from './connection.js';
import { DETECTION_LENGTH, detect } from './detection.js';
import { asPesitError } from './errors.js';
import type { Preconnection, ServerConnection, ServerHandler } from './handler.js';
import { PartnerConnection } from './server-connection.js';

export interface ListenerOptions {
  readonly host: string;
  /** 0 chooses a free port. */
  readonly port: number;
  /** Established sessions at a time; one more gets RCONNECT 3-309. */
  readonly maxConnections: number;
  /** `tcpipHeader`: recognise the dialect of each connection, or insist on one. */
  readonly tcpipHeader: 'auto' | Dialect;
  /** Tp, the listener's readTimeout, and the others where they differ from the defaults; milliseconds. */
  readonly timers?: Partial<Timers>;
  /** A partner has connected: who answers it. */
  readonly accept: (connection: ServerConnection) => ServerHandler;
  /** ACK0 or NAK0; default: every pre-connection is acknowledged. */
  readonly preconnect?: (preconnection: Preconnection, remoteAddress: string) => Promise<boolean>;
  /** Connections that never became sessions: not PeSIT, TLS on a plain port, silence, too many. For log and counters. */
  readonly rejected: (remoteAddress: string, reason: string) => void;
}

/** Connections without CONNECT that are kept at a time; beyond it the oldest gives way, so that silence cannot shut partners out. */
const MAX_UNIDENTIFIED = 512;
/** Sessions beyond `maxConnections` that may wait for their RCONNECT 3-309. */
const REFUSALS_AT_A_TIME = 64;

/** A port on which partners connect. */
export class PesitListener {
  readonly #options: ListenerOptions;
  readonly #server: Server;
  readonly #connectTimeout: number;
  /** In the order of their arrival. */
  readonly #unidentified = new Map<Socket, string>();
  readonly #partners = new Set<PartnerConnection>();
  readonly #established = new Set<PartnerConnection>();
  #closing: PesitError | undefined;
  #idle: (() => void) | undefined;

  /** @throws NodeJS.ErrnoException EADDRINUSE, EACCES … as `listen` does */
  static async listen(options: ListenerOptions): Promise<PesitListener> {
    const listener = new PesitListener(options);
    await new Promise<void>((resolve, reject) => {
      listener.#server.once('error', reject);
      listener.#server.listen({ host: options.host, port: options.port, backlog: 511 }, () => {
        listener.#server.off('error', reject);
        // Errors of accept (too many open files …) pass; the listener stays.
        listener.#server.on('error', (error) => {
          options.rejected('unknown', `a connection could not be accepted: ${error.message}`);
        });
        resolve();
      });
    });
    return listener;
  }

  private constructor(options: ListenerOptions) {
    this.#options = options;
    this.#connectTimeout = options.timers?.connect ?? DEFAULT_TIMERS.connect;
    this.#server = createServer({ noDelay: true }, (socket) => {
      this.#arrived(socket);
    });
  }

  get port(): number {
    const address = this.#server.address();
    return typeof address === 'object' && address !== null ? address.port : this.#options.port;
  }

  /** Sessions established now. */
  get activeConnections(): number {
    return this.#established.size;
  }

  /**
   * Takes no more sessions, lets running transfers end for up to `graceMs`, then aborts what is left with `reason`.
   * Idle sessions end at once.
   */
  async close(reason: PesitError, graceMs: number): Promise<void> {
    this.#closing = reason;
    const closed = new Promise<void>((resolve) => {
      this.#server.close(() => {
        resolve();
      });
    });
    for (const socket of this.#unidentified.keys()) socket.destroy();
    for (const partner of this.#partners) if (!partner.busy) partner.abort(reason);
    if (this.#partners.size > 0) await this.#untilIdle(graceMs);
    for (const partner of this.#partners) partner.abort(reason);
    await Promise.all([...this.#partners].map((partner) => partner.finished));
    await closed;
  }

  #untilIdle(graceMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, graceMs);
      this.#idle = () => {
        for (const partner of this.#partners) {
          if (partner.busy) continue;
          partner.abort(this.#closing as PesitError);
        }
        if (this.#partners.size > 0) return;
        clearTimeout(timer);
        resolve();
      };
    });
  }

  #arrived(socket: Socket): void {
    const address = socket.remoteAddress ?? 'unknown';
    if (this.#partners.size >= this.#options.maxConnections + REFUSALS_AT_A_TIME) {
      this.#reject(
        socket,
        address,
        `more than ${this.#options.maxConnections} connections, and ${REFUSALS_AT_A_TIME} being refused`,
      );
      return;
    }
    if (this.#unidentified.size >= MAX_UNIDENTIFIED) {
      const [oldest] = this.#unidentified;
      if (oldest !== undefined)
        this.#reject(
          oldest[0],
          oldest[1],
          `${MAX_UNIDENTIFIED} connections wait without CONNECT: the oldest gives way`,
        );
    }
    this.#unidentified.set(socket, address);
    void this.#identify(socket, address);
  }

  #reject(socket: Socket, address: string, reason: string): void {
    this.#unidentified.delete(socket);
    this.#options.rejected(address, reason);
    socket.destroy();
  }

  /** Reads until the dialect is known, answering pre-connections, then hands the socket to a session. */
  async #identify(socket: Socket, address: string): Promise<void> {
    let received: Buffer = Buffer.alloc(0);
    let preconnection: Preconnection | undefined;
    const timer = setTimeout(() => {
      const got = received.length === 0 ? 'nothing' : describeBytes(received);
      this.#reject(socket, address, `no CONNECT within ${this.#connectTimeout} ms; received ${got}`);
    }, this.#connectTimeout);
    const ignore = (): void => undefined;
    socket.on('error', ignore);
    try {
      for (;;) {
        const detection = detect(received);
        if (detection.kind === 'connect') {
          if (this.#options.tcpipHeader !== 'auto' && this.#options.tcpipHeader !== detection.dialect) {
            this.#reject(
              socket,
              address,
              `the partner speaks ${detection.dialect}, tcpipHeader asks for ${this.#options.tcpipHeader}`,
            );
            return;
          }
          this.#unidentified.delete(socket);
          this.#establish(socket, detection.dialect, preconnection, received);
          return;
        }
        if (detection.kind === 'preconnection' && preconnection === undefined) {
          preconnection = detection.preconnection;
          const accepted = (await this.#options.preconnect?.(preconnection, address)) ?? true;
          if (!accepted) {
            socket.end(detection.nak);
            this.#unidentified.delete(socket);
            this.#options.rejected(
              address,
              `pre-connection of ${JSON.stringify(preconnection.identifier)} refused (NAK0)`,
            );
            return;
          }
          socket.write(detection.ack);
          received = received.subarray(detection.length);
          continue;
        }
        if (detection.kind !== 'more' || received.length > DETECTION_LENGTH) {
          const tls =
            'the partner speaks TLS, this port does not: use the TLS port, or switch TLS off on the other side';
          this.#reject(
            socket,
            address,
            detection.kind === 'tls' ? tls : `not PeSIT: first bytes ${describeBytes(received)}`,
          );
          return;
        }
        const bytes = await nextBytes(socket);
        if (bytes === undefined) {
          if (this.#unidentified.delete(socket)) {
            socket.destroy();
            if (received.length > 0)
              this.#options.rejected(address, `closed before CONNECT; received ${describeBytes(received)}`);
          }
          return;
        }
        received = received.length === 0 ? bytes : Buffer.concat([received, bytes]);
      }
    } catch (error) {
      this.#reject(socket, address, asPesitError(error, '3-399').message);
    } finally {
      clearTimeout(timer);
      socket.off('error', ignore);
      if (socket.destroyed) socket.on('error', ignore);
    }
  }

  #establish(socket: Socket, dialect: Dialect, preconnection: Preconnection | undefined, received: Buffer): void {
    const session = new ServerSession({
      dialect,
      now: now(),
      connectionId: randomInt(1, 256),
      timers: this.#options.timers ?? {},
    });
    const partner: PartnerConnection = new PartnerConnection({
      socket,
      session,
      indication: { dialect, preconnection },
      accept: this.#options.accept,
      admit: () => this.#admit(partner),
      refuseFiles: () => this.#closing,
    });
    this.#partners.add(partner);
    void partner.finished.then(() => {
      this.#partners.delete(partner);
      this.#established.delete(partner);
      this.#idle?.();
    });
    partner.onIdle = () => this.#idle?.();
    partner.receive(received);
  }

  /** Takes a place at once: partners are identified one beside the other. */
  #admit(partner: PartnerConnection): PesitError | undefined {
    if (this.#closing !== undefined) return this.#closing;
    if (this.#established.size < this.#options.maxConnections) {
      this.#established.add(partner);
      return undefined;
    }
    const [expected, got] = [`at most ${this.#options.maxConnections} connections`, `${this.#established.size + 1}`];
    return new PesitError(`the listener takes ${expected}: try again later, or raise maxConnections`, {
      fault: 'local',
      diagnostic: '3-309',
      expected,
      got,
    });
  }
}

/** The next bytes of a socket that nobody reads yet; undefined when it is closed. */
function nextBytes(socket: Socket): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const take = (): void => {
      const bytes = socket.read() as Buffer | null;
      if (bytes !== null) settle(bytes);
    };
    const over = (): void => {
      settle(undefined);
    };
    const settle = (bytes: Buffer | undefined): void => {
      socket.off('readable', take);
      socket.off('end', over);
      socket.off('close', over);
      resolve(bytes);
    };
    socket.on('readable', take);
    socket.on('end', over);
    socket.on('close', over);
    take();
  });
}

const describeBytes = (bytes: Buffer): string => bytes.subarray(0, 16).toString('hex');

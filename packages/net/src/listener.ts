import type { Dialect, Timers } from '@pesit-node/protocol';
import type { PesitError } from '@pesit-node/protocol';
import type { Preconnection, ServerConnection, ServerHandler } from './handler.js';

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

/** A port on which partners connect. */
export declare class PesitListener {
  /** @throws NodeJS.ErrnoException EADDRINUSE, EACCES … as `listen` does */
  static listen(options: ListenerOptions): Promise<PesitListener>;
  readonly port: number;
  /** Sessions established now. */
  readonly activeConnections: number;
  /**
   * Takes no more sessions, lets running transfers end for up to `graceMs`, then aborts what is left with `reason`.
   * Idle sessions end at once.
   */
  close(reason: PesitError, graceMs: number): Promise<void>;
}

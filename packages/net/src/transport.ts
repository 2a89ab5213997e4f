/**
 * The port to connections (design §2): what a session needs of one, whatever carries it. Plain TCP (`tcp-transport.ts`)
 * and TLS (`tls-connecting.ts`, `tls-accepting.ts`) implement it, both over `socket-transport.ts`. To add one: implement `Transport`
 * with its `Connect` and `Serve`, and run `describeTransport` (`@pesit-node/net/testing`) over both ends of it.
 *
 * Reading. A transport is born paused and has one reader at a time: the pre-connection, the identification, then the
 * session; whoever takes over calls `attach`. Bytes come either in buffers that the reader gives (`readInto`) or in buffers
 * that the transport hands over, which it never touches again: the reader sees no difference. After `pause` nothing is
 * received until `resume`: what the peer sends stays with the system, whose bounds then stop the peer.
 *
 * Writing. `write` takes everything at once and says with `taken` when the system has it: the buffers may be used again then,
 * and whoever writes no more than a few bursts ahead of `taken` is held back as the peer reads. The transport sets no time
 * for that: `queuedBytes` shows the session whether the peer still takes something.
 *
 * Ending. `end` closes our half, and reading continues; `destroy` closes at once. When the peer closes its half, bytes
 * already written still leave, then the transport closes by itself. The reader hears `ended` when the peer or the line ended it, not
 * when `destroy` did, and `closed` in any case.
 *
 * No method throws because of what the peer or the line does, and no error without a reader ends the process.
 */

/** Memory for reads. */
export interface ReadBuffers {
  /** Room for the next read, at least one byte. Asked again only after `take`, or when nothing came. */
  next(): Buffer;
  /** The first `length` bytes of that room are filled now. @returns them */
  take(length: number): Buffer;
}

/** The reader of a transport; must not throw. */
export interface TransportReader {
  /** The next bytes of the peer, at least one. */
  received(bytes: Buffer): void;
  /**
   * No more bytes come. Called once at most, and not at all after `destroy`.
   * @param cause why the connection was lost; undefined: the peer has closed its half
   */
  ended(cause: Error | undefined): void;
  /** The connection is gone: called once, last. */
  closed(): void;
}

/** Facts that TLS found out about the peer of a connection. */
export interface PeerCertificate {
  /** Distinguished names (RFC 4514). */
  readonly subject: string;
  readonly issuer: string;
  /** With their kind: `DNS:…`, `IP:…`, `URI:…`, `email:…`. */
  readonly subjectAltNames: readonly string[];
  /** Upper-case hex without separators. */
  readonly serial: string;
  /** SHA-256 of the whole certificate, upper-case hex with colons. */
  readonly fingerprint: string;
  readonly notBefore: Date;
  readonly notAfter: Date;
  /** DER. */
  readonly raw: Buffer;
}

/** Terms that a handshake has agreed on. */
export interface TransportSecurity {
  /** e.g. `TLSv1.3` */
  readonly protocol: string;
  /** The IANA name, e.g. `TLS_AES_256_GCM_SHA384` */
  readonly cipher: string;
  /** Whether an earlier session was taken up again; what its handshake found out counts. */
  readonly resumed: boolean;
  /** Verified as far as was asked for; undefined: the peer showed none. */
  readonly peerCertificate: PeerCertificate | undefined;
}

/** One connection. */
export interface Transport {
  /** Address of the peer, as text; `unknown` when it was gone before it could be asked. Stays when the connection is closed. */
  readonly remoteAddress: string;
  /** undefined: nothing secures the connection, and the peer has no certificate */
  readonly security: TransportSecurity | undefined;
  /** Closed, or about to be, by either side: writes have no effect. */
  readonly destroyed: boolean;
  /**
   * Bytes of writes that the system has not taken yet: a change is progress of the peer. 0 where a transport cannot know:
   * then only whole writes count as progress.
   */
  readonly queuedBytes: number;
  /** Resolves when the connection is gone and its reader was told. Never rejects. */
  readonly closed: Promise<void>;

  /** `reader` hears everything from now on, and nobody else; an end that came before it hears in a later turn. */
  attach(reader: TransportReader): void;
  /** Reads into `buffers` from the next read on; undefined: into the transport's own. Advice: it may hand over its own. */
  readInto(buffers: ReadBuffers | undefined): void;
  /** Puts back what was received too much, for the reader that comes next; while the transport is paused. */
  unread(bytes: Buffer): void;
  /** The end of the connection may still be noticed. */
  pause(): void;
  resume(): void;

  /**
   * Writes `parts`, at least one, in order and together where the system can. After `end` or `destroy` they are dropped.
   * @param taken called once, in a later turn: the system has taken all of them, or the connection is gone
   */
  write(parts: readonly Buffer[], taken?: () => void): void;
  /** Closes our half behind what was written. Again: nothing happens. */
  end(): void;
  /** Closes at once; what the system has not taken is dropped. */
  destroy(): void;
}

/** Why there is no connection, in words: what is wrong and what to check. `cause` is what the system or TLS said. */
export class TransportError extends Error {
  /** How far it came. */
  readonly phase: 'connection' | 'handshake';

  constructor(message: string, phase: 'connection' | 'handshake', cause: unknown) {
    super(message, { cause });
    this.name = 'TransportError';
    this.phase = phase;
  }
}

export interface Target {
  readonly host: string;
  readonly port: number;
  /** Aborted when it takes too long, or nobody wants the connection now. */
  readonly signal: AbortSignal;
}

export interface Connected {
  /** Paused. */
  readonly transport: Transport;
  /** Milliseconds that the TCP connection took, without name lookup and handshake: there and back once. */
  readonly roundTripMs: number;
}

/**
 * Opens a connection; it is through every handshake when this resolves.
 * @throws TransportError; the reason of `signal` once that is aborted, with nothing left behind; any other error where host
 * or port cannot be
 */
export type Connect = (target: Target) => Promise<Connected>;

/** Events of a server of connections. */
export interface Arrivals {
  /** A connection, paused, through every handshake. */
  readonly arrived: (transport: Transport) => void;
  /**
   * A connection that could not be taken, and why, in words; the server keeps listening. Address `unknown` where there is none.
   * @param code one of `TLS_FAILURES` where TLS did not let it through
   */
  readonly failed: (remoteAddress: string, reason: string, code?: string) => void;
}

/** A port on which connections arrive. A listener with TCP and TLS has two. */
export interface TransportServer {
  /** The port that is open; before `listen` 0. */
  readonly port: number;
  /**
   * @param at `port` 0 chooses a free one
   * @throws NodeJS.ErrnoException EADDRINUSE, EACCES …
   */
  listen(at: { readonly host: string; readonly port: number }): Promise<void>;
  /** Gives up the port, once; connections that have arrived continue. Resolves when the last connection is closed. */
  close(): Promise<void>;
}

export type Serve = (arrivals: Arrivals) => TransportServer;

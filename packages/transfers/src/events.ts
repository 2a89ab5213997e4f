/**
 * The events of sessions and transfers, of both ends: every channel, and what an event of it carries.
 *
 * Sessions and transfers are known by their object: all events about one bear the same.
 */
import type { FpduName, PeerDiagnostic, PesitError, SyncPoint } from '@pesit-node/protocol';
import { EventKind } from '@pesit-node/service';

import type { TransferAside } from './asides.js';
import type { Direction } from './vocabulary.js';

/** Fields of a log line: short words by name. */
export type Facts = Readonly<Record<string, unknown>>;

/** A session with a partner. */
export interface ObservedSession {
  readonly id: string;
  /** `session`, `listener`, `remoteAddress`, `partner` …, as far as they are known by now. */
  readonly facts: Facts;
}

/** How far a transfer is: totals since the start of the file. */
export interface Figures {
  readonly dataBytes: number;
  readonly syncPoint: number;
  /** Bytes that the partner announces for a file that is received. */
  readonly announced?: number | undefined;
}

/** One attempt of a transfer. */
export interface ObservedTransfer {
  /** Id of its record. */
  readonly id: string | number;
  readonly type: 'FILE' | 'MESSAGE';
  readonly direction: Direction;
  /** A partner or a remote server that is configured. */
  readonly peer: string;
  /** Name of the file, as this side calls it. */
  readonly name?: string;
  /** Undefined before there are data. */
  readonly progress: () => Figures | undefined;
  /** Where the attempt began, for one that cannot say it in time (`TRANSFER_WENT_ON`); undefined as long as it is not known. */
  readonly from?: () => Figures | undefined;
}

/** How a transfer is over. */
export type EndStatus = 'COMPLETED' | 'FAILED' | 'CANCELLED';

/** The partner is known and admitted. */
export const SESSION_OPENED = new EventKind<{ readonly session: ObservedSession; readonly facts: Facts }>(
  'pesit:session:opened',
);

/** There will be no session, whoever said so. */
export const SESSION_REFUSED = new EventKind<{
  /** A connection that was rejected before anything came has its facts alone. */
  readonly session: Pick<ObservedSession, 'facts'>;
  /** Undefined: it did not come to a CONNECT. */
  readonly diagnostic: PeerDiagnostic | undefined;
  readonly error: unknown;
  /** The configured partner that it says to be: not proven. */
  readonly named?: string | undefined;
  /** Why TLS did not let it through, where a certificate was the reason: the partner's, or ours for the partner. In words, without a secret. */
  readonly certificate?: string | undefined;
  readonly facts: Facts;
}>('pesit:session:refused');

/** Something of the partner was tolerated. */
export const SESSION_TOLERATED = new EventKind<{ readonly session: ObservedSession; readonly text: string }>(
  'pesit:session:tolerated',
);

/** A peer got through its handshake though nobody could say whether its certificate was revoked (`revocation` is soft). */
export const PEER_UNCHECKED = new EventKind<{
  /** `listener`, or `server`. */
  readonly facts: Facts;
  /** Why it could not be found out. */
  readonly text: string;
}>('pesit:peer:unchecked');

/** A fault of this program in a session. */
export const SESSION_FAILED = new EventKind<{ readonly session: ObservedSession; readonly error: unknown }>(
  'pesit:session:failed',
);

/** A session has to end: its partner is not what it was when it came. */
export const SESSION_REVOKED = new EventKind<{
  readonly session: ObservedSession;
  /** It comes to its end first; undefined: the session ends at once. */
  readonly transfer: ObservedTransfer | undefined;
  readonly error: PesitError;
}>('pesit:session:revoked');

/** A connection is over, whether its session was opened or not. */
export const SESSION_ENDED = new EventKind<{
  readonly session: ObservedSession;
  readonly opened: boolean;
  /** Undefined: it was released. */
  readonly error: PesitError | undefined;
}>('pesit:session:ended');

/** An attempt of a transfer begins. */
export const TRANSFER_BEGAN = new EventKind<{
  readonly session: ObservedSession | undefined;
  readonly transfer: ObservedTransfer;
  readonly facts: Facts;
}>('pesit:transfer:began');

/** Its data come from here on; behind a point it is a restart. */
export const TRANSFER_WENT_ON = new EventKind<{
  readonly session: ObservedSession | undefined;
  readonly transfer: ObservedTransfer;
  readonly from: Figures;
  /** `repeated`: the file is complete here, and what comes once more is dropped. */
  readonly attempt: 'first' | 'next' | 'repeated';
  readonly facts: Facts;
}>('pesit:transfer:went-on');

/**
 * A sync point of its is safe: the receiver has everything before it on stable storage, and has said so. Many a second: a
 * subscriber has to be quick. Behind a resynchronisation the same point may come once more.
 */
export const TRANSFER_POINT = new EventKind<{
  readonly transfer: ObservedTransfer;
  /** Its number, and data bytes and articles before it since the start of the file. */
  readonly point: SyncPoint;
  /** From its SYN to our acknowledgement, milliseconds; undefined: the partner has acknowledged it. */
  readonly waitedMs?: number | undefined;
}>('pesit:transfer:point');

/** A partner was told that its transfer is through (ACK(TRANS.END)). */
export const TRANSFER_CONFIRMED = new EventKind<{
  readonly transfer: ObservedTransfer;
  /** Since its TRANS.END, milliseconds. */
  readonly waitedMs: number;
}>('pesit:transfer:confirmed');

/** Bytes of a file that is received are on stable storage. As often as there are points: a subscriber has to be quick. */
export const FILE_FLUSHED = new EventKind<{
  /** Duration of the flush, milliseconds. */
  readonly ms: number;
}>('pesit:file:flushed');

/** A received file has its final name, on stable storage. Its record may still follow. */
export const TRANSFER_DELIVERED = new EventKind<{
  readonly transfer: ObservedTransfer;
  readonly path: string;
  /** Bytes. */
  readonly size: number;
  /** `sha256:` and hex; undefined without `transfer.checksum`. */
  readonly checksum: string | undefined;
}>('pesit:transfer:delivered');

/** The partner said something of the file (PI 29), beside a success too. */
export const TRANSFER_REMARKED = new EventKind<{
  readonly session: ObservedSession;
  readonly id: string | number;
  readonly at: FpduName;
  readonly complement: Buffer;
}>('pesit:transfer:remarked');

/** Something of a transfer that is worth a line and changes nothing of its course: see `TRANSFER_ASIDES`. */
export const TRANSFER_ASIDE = new EventKind<{
  readonly session: ObservedSession | undefined;
  /** Id of its record. */
  readonly id: string | number;
  readonly aside: TransferAside;
  /** A fault of this side that was survived. */
  readonly error?: unknown;
  readonly facts: Facts;
}>('pesit:transfer:aside');

/** An attempt is over. */
export const TRANSFER_ENDED = new EventKind<{
  readonly session: ObservedSession | undefined;
  readonly transfer: ObservedTransfer;
  /** Undefined: another attempt follows by itself. */
  readonly status: EndStatus | undefined;
  readonly diagnostic: string | undefined;
  /** Why it did not complete. */
  readonly error?: PesitError | undefined;
  readonly facts: Facts;
}>('pesit:transfer:ended');

/** A transfer is over that had not begun: refused, or cancelled while it waited. */
export const TRANSFER_REFUSED = new EventKind<{
  readonly session: ObservedSession | undefined;
  readonly type: 'FILE' | 'MESSAGE';
  readonly direction: Direction;
  readonly peer: string;
  readonly status: EndStatus;
  readonly diagnostic: string | undefined;
  readonly error: unknown;
  /** One of many that are equal: it has no record of its own, and no log line. */
  readonly counted: boolean;
  readonly facts: Facts;
}>('pesit:transfer:refused');

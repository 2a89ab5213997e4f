import type { Pacing } from '@pesit-node/storage';
import type { AttemptTerms, Direction, KeptAttempt, TransferStatus, TransferType } from '@pesit-node/transfers';

import type { RemoteServerRow } from '../remote-servers/fields.js';
import type { TransferSettings } from './fields.js';

/** `FileVersion` of storage as JSON has it: nanoseconds are more than a number holds. */
export interface StoredVersion {
  readonly size: number;
  readonly mtimeNs: string;
}

/** A row of `transfers`. */
export interface TransferRow {
  readonly id: string;
  readonly type: TransferType;
  readonly status: TransferStatus;
  readonly direction: Direction;
  readonly server_id: number | null;
  readonly server_name: string;
  readonly partner_id: string;
  readonly filename: string;
  readonly remote_filename: string | null;
  readonly virtual_file: string | null;
  /** For a SEND: the absolute path that is read. */
  readonly source_path: string | null;
  /** For a SEND: the file as it was when it was asked for, then as the first attempt found it. */
  readonly source_version: StoredVersion | null;
  /** State of the content that came with the request, or with the replayed one: REMOVED or about to be; null: none came. */
  readonly content: 'KEPT' | 'REMOVED' | null;
  readonly settings: TransferSettings;
  /** User of the REST interface who asked for it; null in a record of an older version. */
  readonly created_by: string | null;
  readonly created_time: Date;
  readonly start_time: Date | null;
  readonly end_time: Date | null;
  readonly size: number | null;
  readonly bytes_transferred: number;
  readonly articles: number;
  readonly checksum: string | null;
  readonly local_path: string | null;
  readonly diagnostic: string | null;
  readonly error_code: string | null;
  readonly error_message: string | null;
  /** PI 13, the same for all attempts: from our sequence for a SEND, as the server allocated it for a RECEIVE. */
  readonly pesit_transfer_id: number | null;
  readonly attempts: number;
  /** Attempts that count towards `transfer.retry.attempts`. */
  readonly failures: number;
  /** Answers in a row that asked to come again later. */
  readonly postponements: number;
  readonly next_attempt_at: Date | null;
  /** 0 urgent, 1 normal, 2 low. */
  readonly priority: number;
  /** When it is given up unless an attempt has begun. */
  readonly expires_at: Date | null;
  /** The next attempt carries PI 15 = 1. */
  readonly restartable: boolean;
  /** The newest point from which the transfer is known to be able to continue. */
  readonly sync_point: number | null;
  /** For a SEND: how the attempts placed their points. */
  readonly pacings: readonly Pacing[] | null;
  /** For a MESSAGE: PI 91 of the answer. */
  readonly reply: Buffer | null;
  /** PI 16 of it. */
  readonly reply_data_code: number | null;
  /** PI 29 and PI 99 of the last answer to the last attempt that had one. */
  readonly diagnostic_complement: Buffer | null;
  readonly answer_free_message: Buffer | null;
  /** For a RECEIVE, as the partner has them: PI 37, 99, 61, 62. */
  readonly label: string | null;
  readonly free_message: Buffer | null;
  readonly original_sender: string | null;
  readonly final_receiver: string | null;
  /** PI 51 as it went over the wire. */
  readonly creation_date: string | null;
  /** For a RECEIVE by name: whether the partner said that it is the file; null: no name was asked for. */
  readonly name_confirmed: boolean | null;
  /** Round trip of the session, milliseconds. */
  readonly round_trip: number | null;
  /** Which sync points to ask the partner for, where those of the session hold the transfer up. */
  readonly advice: string | null;
  /** Number of the lease: writes under an older one have no effect. */
  readonly fence: number;
  /** For a RECEIVE: bytes that the partner announces, in whole kilobytes; null: it does not. */
  readonly announced: number | null;
  readonly node: string | null;
  /** In a row that was looked up: whether its remote server is enabled, null when that was removed. */
  readonly server_enabled?: boolean | null;
  /** Likewise: the transfer that comes before it in its order and did not end well yet. */
  readonly behind?: string | null;
}

/** A row that was looked up by itself: what belongs to its attempts is in no page. */
export interface TransferDetailRow extends TransferRow {
  /** When the last attempt began; null: none did, or a version before this column made it. */
  readonly attempt_time: Date | null;
  /** Where the attempt that went well was made. */
  readonly attempt_place: AttemptPlace | null;
  /** Attempts that ended otherwise, oldest first. */
  readonly former_attempts: readonly KeptAttempt[] | null;
}

/** Nothing more happens to it by itself. */
export const isOver = ({ status }: Pick<TransferRow, 'status'>): boolean =>
  status !== 'PENDING' && status !== 'IN_PROGRESS';

/** A transfer that this process shall run, with its remote server as it is now. */
export interface Job extends TransferRow {
  /** From when it was due until it was taken, milliseconds; null: it was tried again at once, on request. */
  readonly waited_ms: number | null;
  readonly server: Omit<RemoteServerRow, 'last_contact' | 'trace_until'> & {
    /** As JSON has it. */
    readonly trace_until: Date | string | null;
  };
}

export interface NewTransfer {
  readonly id: string;
  readonly type: TransferType;
  readonly direction: Direction;
  readonly server: number | string;
  /** PI 3; default: the server's clientId. */
  readonly partnerId: string | undefined;
  readonly filename: string;
  readonly remoteFilename: string | undefined;
  readonly virtualFile: string | undefined;
  readonly sourcePath: string | undefined;
  readonly sourceVersion: StoredVersion | undefined;
  readonly size: number | undefined;
  /** The source came with the request: it is ours, and is removed when nobody needs it. */
  readonly hasContent: boolean;
  readonly settings: TransferSettings;
  /** An ordered one that FAILED keeps those behind it waiting. Default true. */
  readonly holdsOrder?: boolean | undefined;
  /** Who asked for it. */
  readonly createdBy?: string | undefined;
  readonly idempotency?: Idempotency | undefined;
}

/** A request that may be sent again: the caller's key for it, and what was asked for. */
export interface Idempotency {
  readonly key: string;
  readonly hash: string;
}

/** The session of an attempt, as far as it came. */
export interface AttemptPlace {
  readonly sessionId: string | null;
  /** Host and port. */
  readonly remoteAddress: string;
  readonly terms: AttemptTerms | null;
}

/** Facts known when an attempt ends; absent = as the record has it. */
interface Figures {
  /** For a RECEIVE: the name that the file was stored under. */
  readonly filename?: string | undefined;
  readonly size?: number | undefined;
  readonly bytesTransferred?: number | undefined;
  readonly articles?: number | undefined;
  readonly checksum?: string | undefined;
  readonly localPath?: string | undefined;
  readonly pesitTransferId?: number | undefined;
  readonly syncPoint?: number | undefined;
  readonly diagnostic?: string | undefined;
  readonly errorCode?: string | undefined;
  readonly errorMessage?: string | undefined;
  readonly roundTrip?: number | undefined;
  readonly advice?: string | undefined;
  readonly reply?: Buffer | undefined;
  readonly replyDataCode?: number | undefined;
  readonly diagnosticComplement?: Buffer | undefined;
  readonly answerFreeMessage?: Buffer | undefined;
  readonly label?: string | undefined;
  readonly freeMessage?: Buffer | undefined;
  readonly originalSender?: string | undefined;
  readonly finalReceiver?: string | undefined;
  /** PI 51. */
  readonly creationDate?: string | undefined;
  readonly nameConfirmed?: boolean | undefined;
  /** Where the attempt was made, and over which terms. */
  readonly where?: AttemptPlace | undefined;
}

/** The end of a transfer. */
export interface Ended extends Figures {
  readonly status: 'COMPLETED' | 'FAILED' | 'CANCELLED';
  /** For a FAILED one: a further attempt would be a restart. */
  readonly restartable?: boolean;
}

/** The end of an attempt after which another follows. */
export interface Waiting extends Figures {
  readonly status: 'PENDING';
  /** Milliseconds until the next attempt may begin. */
  readonly delay: number;
  /** `failed`: it counts; `later`: the partner asked to come again; `none`: it was not the transfer's fault. */
  readonly counts: 'failed' | 'later' | 'none';
  readonly restartable: boolean;
}

/** The partner does not know of the attempt: as if it had not been. */
export interface GivenBack {
  readonly status: 'PENDING';
  readonly counts: 'untouched';
}

export type AttemptEnd = Ended | Waiting | GivenBack;

/** A transfer that runs; without figures until data flow. */
export interface Progress {
  readonly id: string;
  readonly bytesTransferred?: number;
  readonly articles?: number;
  /** The last point: sent, or stored here. */
  readonly syncPoint?: number;
  /** Bytes that the partner announces for a RECEIVE. */
  readonly announced?: number;
}

/**
 * Columns are named, never `*`, in the statements of every transfer: a newer version may add some while an older one still
 * runs.
 */
const COLUMNS = [
  ...['id', 'type', 'status', 'direction', 'server_id', 'server_name', 'partner_id', 'filename', 'remote_filename'],
  ...['virtual_file', 'source_path', 'source_version', 'settings', 'created_time', 'start_time', 'end_time', 'size'],
  ...['bytes_transferred', 'articles', 'checksum', 'local_path', 'diagnostic', 'error_code', 'error_message'],
  ...['pesit_transfer_id', 'attempts', 'failures', 'postponements', 'next_attempt_at', 'restartable', 'sync_point'],
  ...['pacings', 'reply', 'label', 'free_message', 'original_sender', 'final_receiver', 'fence', 'node'],
  ...['round_trip', 'advice', 'creation_date', 'reply_data_code', 'diagnostic_complement', 'answer_free_message'],
  ...['name_confirmed', 'content', 'created_by', 'priority', 'expires_at', 'announced'],
];
export const columnsOf = (table: string): string => COLUMNS.map((column) => `${table}.${column}`).join(', ');

/**
 * The columns of a page of the history: the texts of a message and of its reply are read with their own record alone, for five
 * hundred of them would be large.
 */
export const PAGE_COLUMNS = COLUMNS.map((column) => {
  if (column === 'settings') return `settings - 'message' as settings`;
  return column === 'reply' ? 'null::bytea as reply' : column;
}).join(', ');

/** A PENDING row that does not wait for its next attempt. */
export const DUE = `status = 'PENDING' and (next_attempt_at is null or next_attempt_at <= now())`;

/** Beside `columnsOf('transfers')`. */
export const SERVER_ENABLED = '(select enabled from remote_servers where id = transfers.server_id) as server_enabled';

/** Beside it: the transfer that one of an order waits for, undefined when it may go. */
export const BEHIND = `(
  select f.id from transfers f
  where f.server_id = transfers.server_id and f.order_key = transfers.order_key and f.position < transfers.position
  order by f.position limit 1
) as behind`;

/** The rows of each index of the queue, and of `transfers_delayed` those that are due. */
const QUEUE_PARTS = {
  fresh: 'next_attempt_at is null and order_key is null',
  delayed: 'next_attempt_at is not null and order_key is null',
  due: 'next_attempt_at <= now() and priority in (0, 1, 2) and order_key is null',
  ordered: 'order_key is not null',
} as const;

/** Where to look for PENDING rows, by the indexes of the queue. */
export const PENDING_PARTS = [QUEUE_PARTS.fresh, QUEUE_PARTS.delayed, QUEUE_PARTS.ordered] as const;

/** A transfer that takes a place in the queue: it waits for a slot, for its time or next attempt, or for the one before it. */
export const QUEUED = `status = 'PENDING' and (${PENDING_PARTS.map((part) => `(${part})`).join(' or ')})`;

const ENABLED = 'server_id in (select id from remote_servers where enabled)';

/** Remote servers whose transfers share one queue: those with an open circuit have one each. */
export const SHARE_QUEUE = 'enabled and circuit_until is null';

/**
 * Counts what is `QUEUED`, or only a part of it, no further than `limit`. In parts, because each index of the queue serves one then,
 * whatever the planner, which keeps a plan that it made while the table was new, knows of it.
 * @param ofServers which servers. Default: all that are enabled
 */
export const countedUpTo = (limit: string, part: keyof typeof QUEUE_PARTS, ofServers = ENABLED): string => `
  (select count(*) from (
    select from transfers where status = 'PENDING' and ${QUEUE_PARTS[part]} and ${ofServers} limit ${limit}
  ) counted)`;

/** The events of what every service of ours has: every channel, and what an event of it carries. */
import type { Caller } from '../audit/entry.js';
import { EventKind } from './event-stream.js';

/** Somebody configured something; it is stored. */
export const CONFIGURATION_CHANGED = new EventKind<{
  /** Kind of thing: `partner`, `virtual file`, `listener`, `remote server` … */
  readonly what: string;
  /** `renewed`: by the local CA, in time. */
  readonly action: 'created' | 'changed' | 'deleted' | 'renewed';
  /** Fields of its log line: its identifier, and the names of the fields that changed. Never a value. */
  readonly facts: Readonly<Record<string, unknown>>;
  /** Undefined: nobody asked for it. */
  readonly by?: Caller | undefined;
  /** Its audit entry is stored with it. */
  readonly recorded?: boolean;
}>('pesit:configuration:changed');

/** A call of the REST interface has been handled, or was refused for the role of its caller. */
export const OPERATION_DONE = new EventKind<{
  /** Undefined where no login is needed. */
  readonly by: Caller | undefined;
  /** As it is declared: kind of object, and what was done to it. */
  readonly audit: readonly [objectType: string, action: string] | undefined;
  /** Where it succeeded its audit entry is stored with it. */
  readonly recorded: boolean;
  /** `POST` */
  readonly method: string;
  /** As it is declared: `/api/v1/servers/:serverId/start`. */
  readonly path: string;
  /** The parameter of the path that names an object. */
  readonly object: string | undefined;
  /** Why it failed; undefined: it did not. */
  readonly error: { readonly code: string; readonly message: string } | undefined;
}>('pesit:operation:done');

/** A request to the REST interface came with the right credentials. */
export const LOGIN_SUCCEEDED = new EventKind<{
  /** Without a port, at most 64 characters. */
  readonly address: string;
  /** As it was given, at most 64 characters; `X-API-Key` for the key. */
  readonly user: string;
}>('pesit:login:succeeded');

/** A login to the REST interface failed. */
export const LOGIN_FAILED = new EventKind<{
  /** Without a port, at most 64 characters. */
  readonly address: string;
  /** As it was given, at most 64 characters; '' when nothing could be read. */
  readonly user: string;
  /** `blocked`: refused unread, after too many failures of this user from this address. */
  readonly result: 'wrong' | 'blocked';
  /** For how long attempts are refused unread from now on; 0: not at all. */
  readonly blockedSeconds: number;
}>('pesit:login:failed');

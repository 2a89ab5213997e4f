/** The events of what every service of ours has: every channel, and what an event of it carries. */
import { EventKind } from './event-stream.js';

/** Somebody configured something; it is stored. */
export const CONFIGURATION_CHANGED = new EventKind<{
  /** Kind of thing: `partner`, `virtual file`, `listener`, `remote server` … */
  readonly what: string;
  readonly action: 'created' | 'changed' | 'deleted';
  /** Fields of its log line: its identifier, and the names of the fields that changed. Never a value. */
  readonly facts: Readonly<Record<string, unknown>>;
}>('pesit:configuration:changed');

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

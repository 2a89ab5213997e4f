import { createHash } from 'node:crypto';

/** Who calls the REST interface. */
export interface Caller {
  /** Name of a user, or `api-key`. */
  readonly actor: string;
  /** Network address. */
  readonly address: string;
}

/** Actor of what nobody asked for: a transfer that ended, a certificate that was renewed in time. */
export const SYSTEM = 'system';

/** Something that happened, as it is noted. */
export interface NewAuditEntry {
  /** Default: now. */
  readonly at?: Date;
  /** Default: `system`, without an address. */
  readonly by?: Caller | undefined;
  /** In the past: `created`, `started`, `login failed`. */
  readonly action: string;
  /** Kind of thing: `partner`, `listener`, `transfer`. */
  readonly objectType: string;
  /** Its identifier; absent: there is none. */
  readonly object?: string | undefined;
  /** Never with a secret in it. */
  readonly details?: Readonly<Record<string, unknown>> | undefined;
}

/** An entry before it has its place in the chain: its columns, bounded. */
export interface AuditRecord {
  readonly time: Date;
  readonly actor: string;
  readonly address: string | null;
  readonly action: string;
  readonly object_type: string;
  readonly object: string | null;
  /** Name of the pod. */
  readonly node: string;
  /** JSON. */
  readonly details: string | null;
}

/** An entry of the table. */
export interface AuditRow extends AuditRecord {
  readonly id: number;
  /** Hash of the entry before: hex. */
  readonly previous_hash: string;
  readonly hash: string;
}

/** The hash before the first entry of all. */
export const GENESIS = '0'.repeat(64);

const NAME = 64;
const OBJECT = 256;
const DETAILS = 65_536;

/** PostgreSQL takes no NUL, and nothing that is no Unicode; no line feed, so that nobody fakes a second line. */
const bounded = (text: string, length: number): string =>
  Buffer.from(text.slice(0, length).replace(/[\u0000-\u001f\u007f]/g, '\ufffd')).toString();

const detailsOf = (details: NewAuditEntry['details']): string | null => {
  if (details === undefined) return null;
  const text = JSON.stringify(details);
  return text.length <= DETAILS ? text : JSON.stringify({ leftOut: `${text.length} characters, which is too long` });
};

export const recordOf = (entry: NewAuditEntry, node: string): AuditRecord => ({
  time: entry.at ?? new Date(),
  actor: bounded(entry.by?.actor ?? SYSTEM, NAME),
  address: entry.by === undefined ? null : bounded(entry.by.address, NAME),
  action: bounded(entry.action, NAME),
  object_type: bounded(entry.objectType, NAME),
  object: entry.object === undefined ? null : bounded(entry.object, OBJECT),
  node: bounded(node, OBJECT),
  details: detailsOf(entry.details),
});

/**
 * SHA-256 over the hash before, a line feed, and a JSON array of all columns: docs/security.md says it for those who check it with
 * a program of their own.
 */
export const hashOf = (id: number, record: AuditRecord, previous: string): string => {
  const { time, actor, address, action, object_type: type, object, node, details } = record;
  const text = JSON.stringify([id, time.toISOString(), actor, address, action, type, object, node, details]);
  return createHash('sha256').update(`${previous}\n${text}`).digest('hex');
};

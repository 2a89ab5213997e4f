import type { CodePage, Dialect } from '@pesit-node/protocol';
import { SecretError } from '@pesit-node/service';
import type { SecretBox } from '@pesit-node/service';
import type { Knex } from 'knex';

import type { RemoteServerFields } from './schema.js';
import { sealedAnew, sealFor } from './secrets.js';
import type { Destination, SealedColumn } from './secrets.js';
import type { ServerSeen } from './seen.js';

export type ContactStatus = 'UNKNOWN' | 'CONNECTED' | 'UNREACHABLE' | 'REFUSED';

/** `compression` of the interface. */
export type CompressionName = 'none' | 'horizontal' | 'vertical' | 'both';

/** What the last session came to. `syncInterval` in KB, 0 without sync points. */
export interface Negotiated {
  readonly dialect: Dialect;
  /** PI 6: 1 = D, 2 = E. */
  readonly version: number;
  readonly syncInterval: number;
  readonly syncWindow: number;
  readonly accessType: number;
  readonly crc: boolean;
  readonly resync: boolean;
}

/** A row of `remote_servers`. Passwords are sealed; null in a setting means the default of the configuration. */
export interface RemoteServerRow {
  readonly id: number;
  readonly name: string;
  readonly host: string;
  readonly port: number;
  readonly server_id: string;
  readonly client_id: string;
  readonly password: string | null;
  readonly enabled: boolean;
  readonly description: string | null;
  readonly max_connections: number | null;
  readonly dialect: Dialect;
  readonly max_entity_size: number | null;
  readonly sync_interval: number | null;
  readonly sync_window: number | null;
  readonly record_length: number | null;
  readonly record_format: number | null;
  readonly text: boolean | null;
  readonly compression: CompressionName | null;
  readonly crc: boolean | null;
  readonly resync: boolean | null;
  readonly ebcdic: boolean | null;
  readonly code_page: CodePage | null;
  readonly select_by_name: boolean | null;
  readonly multi_article: boolean | null;
  readonly concatenation: boolean | null;
  readonly preconnect_id: string | null;
  readonly preconnect_password: string | null;
  readonly negotiated: Negotiated | null;
  readonly seen: ServerSeen;
  readonly single_article: 'plain' | 'prefixed' | null;
  readonly status: ContactStatus;
  readonly status_reason: string | null;
  readonly last_contact: Date | null;
  /** Its sessions are traced until then; null: they are not. */
  readonly trace_until: Date | null;
}

const COLUMNS = {
  name: 'name',
  host: 'host',
  port: 'port',
  serverId: 'server_id',
  clientId: 'client_id',
  enabled: 'enabled',
  description: 'description',
  maxConnections: 'max_connections',
  tcpipHeader: 'dialect',
  maxEntitySize: 'max_entity_size',
  syncInterval: 'sync_interval',
  syncWindow: 'sync_window',
  recordLength: 'record_length',
  recordFormat: 'record_format',
  text: 'text',
  compression: 'compression',
  crc: 'crc',
  resync: 'resync',
  ebcdic: 'ebcdic',
  codePage: 'code_page',
  selectByName: 'select_by_name',
  multiArticle: 'multi_article',
  concatenation: 'concatenation',
  preconnectId: 'preconnect_id',
} as const satisfies Record<
  Exclude<keyof RemoteServerFields, 'password' | 'preconnectPassword'>,
  keyof RemoteServerRow
>;

const table = 'remote_servers';

/** The remote servers in the database; passwords are sealed on the way in. */
export const remoteServerStore = (knex: Knex, secrets: SecretBox) => {
  /** @param before the row that is changed, or the id of a new one */
  const toColumns = (
    fields: RemoteServerFields,
    before: RemoteServerRow | Pick<RemoteServerRow, 'id'>,
  ): Readonly<Record<string, unknown>> => {
    const columns = Object.fromEntries(
      Object.entries(COLUMNS)
        .filter(([field]) => field in fields)
        .map(([field, column]) => [column, fields[field as keyof typeof COLUMNS]] as const),
    );
    const to = { preconnect_id: null, ...before, ...columns } as Destination;
    const sealed = (column: SealedColumn, password: string | null | undefined) =>
      password === undefined ? {} : { [column]: password && sealFor(secrets, column, to, password) };
    return {
      ...columns,
      ...sealed('password', fields.password),
      // Without its identifier it would be kept, and do nothing.
      ...sealed('preconnect_password', fields.preconnectId === null ? null : fields.preconnectPassword),
    };
  };

  return {
    list: (): Promise<RemoteServerRow[]> => knex<RemoteServerRow>(table).orderBy('id'),

    find: async (ref: number | string): Promise<RemoteServerRow | undefined> =>
      (await knex(table)
        .where(typeof ref === 'number' ? 'id' : 'name', ref)
        .first()) as RemoteServerRow | undefined,

    /** @throws a unique violation (`remote_servers_name_unique`) when the name is taken */
    create: async (fields: RemoteServerFields): Promise<RemoteServerRow> => {
      // The id first: the password is sealed for it.
      const sequence = await knex.raw<{ rows: { id: number }[] }>(
        "select nextval(pg_get_serial_sequence('remote_servers', 'id')) as id",
      );
      const { id } = sequence.rows[0] as { id: number };
      const [row] = (await knex(table).insert({ id, ...toColumns(fields, { id }) }, '*')) as RemoteServerRow[];
      return row as RemoteServerRow;
    },

    /**
     * @param admit sees the row that is about to be changed, which nobody else changes meanwhile; throws when it must not be
     * @returns undefined when there is no such server
     */
    update: (
      id: number,
      fields: RemoteServerFields,
      admit: (before: RemoteServerRow) => void,
    ): Promise<RemoteServerRow | undefined> =>
      knex.transaction(async (trx) => {
        const [before] = (await trx(table).where({ id }).forUpdate()) as RemoteServerRow[];
        if (before === undefined) return undefined;
        admit(before);
        const columns = toColumns(fields, before);
        if (Object.keys(columns).length === 0) return before;
        return ((await trx(table).where({ id }).update(columns, '*')) as RemoteServerRow[])[0];
      }),

    /**
     * Seals anew the passwords whose seals are not bound to their destination yet, and, with `rotate`, those that an older key
     * has sealed. May run beside anything else, and again.
     * @returns how many were sealed anew, and the names of the servers whose passwords cannot be opened: they stay as they are
     */
    sealAnew: async ({ rotate }: { readonly rotate: boolean }) => {
      let sealed = 0;
      const unreadable = new Set<string>();
      for (const row of await knex<RemoteServerRow>(table).orderBy('id')) {
        for (const column of ['password', 'preconnect_password'] as const) {
          const before = row[column];
          if (before === null) continue;
          try {
            const after = sealedAnew(secrets, column, row, before, rotate);
            // Somebody who gave a new password meanwhile has the last word.
            if (after !== undefined)
              sealed += await knex(table)
                .where({ id: row.id, [column]: before })
                .update({ [column]: after });
          } catch (error) {
            if (!(error instanceof SecretError)) throw error;
            unreadable.add(row.name);
          }
        }
      }
      return { sealed, unreadable: [...unreadable] };
    },

    /** @throws a check violation (`transfers_of_a_server`) while transfers of the server wait or run */
    remove: async (id: number): Promise<boolean> => (await knex(table).where({ id }).delete()) > 0,

    /** What the last contact with the server came to; `negotiated` stays when there was no session. */
    contacted: async (
      id: number,
      status: ContactStatus,
      reason: string | null,
      negotiated: Negotiated | undefined,
      seen: ServerSeen = {},
    ): Promise<void> => {
      await knex(table)
        .where({ id })
        .update({
          ...{ status, status_reason: reason, last_contact: knex.fn.now() },
          ...(negotiated === undefined ? {} : { negotiated: JSON.stringify(negotiated) }),
          seen: knex.raw('seen || ?::jsonb', [JSON.stringify(seen)]),
        });
    },

    /** More of what it has shown. */
    saw: async (id: number, seen: ServerSeen): Promise<void> => {
      await knex(table)
        .where({ id })
        .update({ seen: knex.raw('seen || ?::jsonb', [JSON.stringify(seen)]) });
    },

    /** How the server writes single articles (pesit-e.md §2): the next session begins with it. */
    learned: async (id: number, style: 'plain' | 'prefixed'): Promise<void> => {
      await knex(table).where({ id }).update({ single_article: style });
    },
  };
};

export type RemoteServerStore = ReturnType<typeof remoteServerStore>;

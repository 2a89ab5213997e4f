import type { Dialect } from '@pesit-node/protocol';
import type { SecretBox } from '@pesit-node/service';
import type { Knex } from 'knex';

import type { RemoteServerFields } from './schema.js';

export type ContactStatus = 'UNKNOWN' | 'CONNECTED' | 'UNREACHABLE' | 'REFUSED';

/** A row of `remote_servers`. `password` is sealed; null in a setting means the default of the configuration. */
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
  readonly status: ContactStatus;
  readonly status_reason: string | null;
  readonly last_contact: Date | null;
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
} as const satisfies Record<Exclude<keyof RemoteServerFields, 'password'>, keyof RemoteServerRow>;

/** Where a sealed password belongs: it opens for no other server. */
export const passwordContext = (id: number): string => `remote-server/${id}/password`;

const table = 'remote_servers';

/** The remote servers in the database; passwords are sealed on the way in. */
export const remoteServerStore = (knex: Knex, secrets: SecretBox) => {
  const toColumns = (id: number, fields: RemoteServerFields): Readonly<Record<string, unknown>> => {
    const columns = Object.entries(COLUMNS)
      .filter(([field]) => field in fields)
      .map(([field, column]) => [column, fields[field as keyof typeof COLUMNS]] as const);
    const { password } = fields;
    return {
      ...Object.fromEntries(columns),
      ...(password === undefined ? {} : { password: password && secrets.seal(password, passwordContext(id)) }),
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
      const [row] = (await knex(table).insert({ id, ...toColumns(id, fields) }, '*')) as RemoteServerRow[];
      return row as RemoteServerRow;
    },

    /** @returns undefined when there is no such server */
    update: async (id: number, fields: RemoteServerFields): Promise<RemoteServerRow | undefined> => {
      const columns = toColumns(id, fields);
      const query = knex(table).where({ id });
      const rows = await (Object.keys(columns).length === 0 ? query.select('*') : query.update(columns, '*'));
      return (rows as RemoteServerRow[])[0];
    },

    /** @throws a check violation (`transfers_of_a_server`) while transfers of the server wait or run */
    remove: async (id: number): Promise<boolean> => (await knex(table).where({ id }).delete()) > 0,

    /** What the last contact with the server came to. */
    contacted: async (id: number, status: ContactStatus, reason: string | null): Promise<void> => {
      await knex(table).where({ id }).update({ status, status_reason: reason, last_contact: knex.fn.now() });
    },
  };
};

export type RemoteServerStore = ReturnType<typeof remoteServerStore>;

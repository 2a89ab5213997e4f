import { listRows, SecretError } from '@pesit-node/service';
import type { AuditChange, Listed, ListQuery, SecretBox } from '@pesit-node/service';
import type { Negotiated } from '@pesit-node/transfers';
import type { Knex } from 'knex';

import { REMOTE_SERVER } from './fields.js';
import type { ContactStatus, RemoteServerChange, RemoteServerRow, RemoteServerValues } from './fields.js';
import { sealedAnew, sealFor } from './secrets.js';
import type { Destination, SealedColumn } from './secrets.js';
import type { ServerSeen } from './seen.js';

const { table } = REMOTE_SERVER;

/** Remote servers read at a time when their passwords are sealed anew. */
const BATCH = 100;

/** Told after each batch: remote servers looked at, of those that there are. */
export type Progress = (looked: number, of: number) => void;

/** A transfer that keeps its server. */
export interface ServerTransfer {
  readonly id: string;
  readonly status: 'PENDING' | 'IN_PROGRESS';
}

/** The remote servers in the database; passwords are sealed on the way in. */
export const remoteServerStore = (knex: Knex, secrets: SecretBox) => {
  /**
   * @param given what is set, passwords in clear
   * @param before the row that is changed, or what is known of a new one
   */
  const valuesOf = async (
    given: RemoteServerChange,
    before: Partial<RemoteServerRow>,
  ): Promise<Partial<RemoteServerValues>> => {
    const values = await REMOTE_SERVER.values(given, (password) => password);
    const to = { ...before, ...values } as Destination;
    const sealed = (column: SealedColumn) => {
      const password = values[column];
      return typeof password === 'string' ? { [column]: sealFor(secrets, column, to, password) } : {};
    };
    return { ...values, ...sealed('password'), ...sealed('preconnect_password') };
  };

  return {
    list: (): Promise<RemoteServerRow[]> => knex<RemoteServerRow>(table).orderBy('id'),

    /** Those that are asked for, in the order of their ids. */
    search: (query: ListQuery): Promise<Listed<RemoteServerRow>> => listRows(knex, REMOTE_SERVER, query),

    find: async (ref: number | string): Promise<RemoteServerRow | undefined> =>
      (await knex(table)
        .where(typeof ref === 'number' ? 'id' : 'name', ref)
        .first()) as RemoteServerRow | undefined,

    /** Those of these names that exist. */
    named: (names: readonly string[]): Promise<RemoteServerRow[]> =>
      knex<RemoteServerRow>(table).whereIn('name', [...names]),

    /** @throws a unique violation (`remote_servers_name_unique`) when the name is taken */
    create: async (asked: RemoteServerChange, audited?: AuditChange<RemoteServerRow>): Promise<RemoteServerRow> => {
      // The id first: the password is sealed for it.
      const sequence = await knex.raw<{ rows: { id: number }[] }>(
        "select nextval(pg_get_serial_sequence('remote_servers', 'id')) as id",
      );
      const { id } = sequence.rows[0] as { id: number };
      const unset = { id, ...REMOTE_SERVER.defaults };
      const values = { ...unset, ...(await valuesOf(asked, unset)) };
      return knex.transaction(async (trx) => {
        const [row] = (await trx(table).insert(values, '*')) as [RemoteServerRow];
        await audited?.(trx, undefined, row);
        return row;
      });
    },

    /**
     * @param change of the row, which nobody else changes meanwhile; throws when it must not be
     * @returns undefined when there is no such server
     */
    update: (
      id: number,
      change: (before: RemoteServerRow) => RemoteServerChange,
      audited?: AuditChange<RemoteServerRow>,
    ): Promise<RemoteServerRow | undefined> =>
      knex.transaction(async (trx) => {
        const [before] = (await trx(table).where({ id }).forUpdate()) as RemoteServerRow[];
        if (before === undefined) return undefined;
        const values = await valuesOf(change(before), before);
        if (Object.keys(values).length === 0) return before;
        const [after] = (await trx(table).where({ id }).update(values, '*')) as RemoteServerRow[];
        await audited?.(trx, before, after);
        return after;
      }),

    /**
     * Seals anew the passwords whose seals are not bound to their destination yet, and, with `rotate`, those that an older key
     * has sealed. May run beside anything else, and again.
     * @returns how many were sealed anew, and the names of the servers whose passwords cannot be opened: they stay as they are
     */
    sealAnew: async ({ rotate, progress }: { readonly rotate: boolean; readonly progress?: Progress | undefined }) => {
      let sealed = 0;
      let looked = 0;
      const unreadable = new Set<string>();
      const batchAfter = (id: number): Promise<RemoteServerRow[]> =>
        knex<RemoteServerRow>(table).where('id', '>', id).orderBy('id').limit(BATCH);
      const total = Number((await knex(table).count({ total: '*' }))[0]?.total);
      for (let batch = await batchAfter(0); batch.length > 0; batch = await batchAfter(batch.at(-1)?.id ?? 0)) {
        for (const row of batch) {
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
        looked += batch.length;
        progress?.(looked, total);
      }
      return { sealed, unreadable: [...unreadable] };
    },

    /** Transfers of the server that wait or run. */
    transfersOf: async (id: number): Promise<readonly ServerTransfer[]> => {
      const waiting = knex('transfers').where('server_id', id).whereIn('status', ['PENDING', 'IN_PROGRESS']);
      return (await waiting.select('id', 'status').orderBy('position')) as ServerTransfer[];
    },

    /** @throws a check violation (`transfers_of_a_server`) while transfers of the server wait or run */
    remove: (id: number, audited?: AuditChange<RemoteServerRow>): Promise<boolean> =>
      knex.transaction(async (trx) => {
        const [before] = (await trx(table).where({ id }).delete('*')) as RemoteServerRow[];
        if (before !== undefined) await audited?.(trx, before, undefined);
        return before !== undefined;
      }),

    /** Stores the outcome of the last contact with the server; `negotiated` stays when there was no session. */
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

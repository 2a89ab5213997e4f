import type { Knex } from 'knex';

import type { SeenTimes } from './clock.js';

/** Something besides the store that remembers when this installation ran: the history, a Redis. */
export interface LicenseWitness {
  seen(): Promise<SeenTimes>;
}

export interface HistoryTable {
  readonly schema: string;
  readonly table: string;
  /** A timestamptz. */
  readonly column: string;
  /** A column with few values, all of them: an index has these, and of each the times in order. Absent: of the times alone. */
  readonly each?: { readonly column: string; readonly values: readonly string[] };
}

const BY_DIRECTION = { column: 'direction', values: ['SEND', 'RECEIVE'] } as const;

/** The oldest and the newest transfer of both apps, as far as their tables are in this database. */
export const HISTORY_TABLES: readonly HistoryTable[] = [
  { schema: 'pesit_server', table: 'transfers', column: 'start_time', each: BY_DIRECTION },
  { schema: 'pesit_client', table: 'transfers', column: 'created_time', each: BY_DIRECTION },
];

export const historyWitness = (knex: Knex, tables: readonly HistoryTable[] = HISTORY_TABLES): LicenseWitness => ({
  seen: async () => {
    let result: SeenTimes = {};
    for (const { schema, table, column, each } of tables) {
      const { rows } = await knex.raw<{ rows: { readonly there: boolean }[] }>(
        'select to_regclass(?) is not null as there',
        [`${schema}.${table}`],
      );
      if (rows[0]?.there !== true) continue;
      for (const value of each?.values ?? [undefined]) {
        const records = knex.withSchema(schema).from(table);
        if (each !== undefined) void records.where(each.column, value);
        const times = await records
          .min({ earliest: column })
          .max({ latest: column })
          .first<{ earliest: Date | null; latest: Date | null } | undefined>();
        result = joinSeen(result, { earliest: times?.earliest?.getTime(), latest: times?.latest?.getTime() });
      }
    }
    return result;
  },
});

const least = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined ? b : b === undefined ? a : Math.min(a, b);

/** The times of two witnesses put together. */
export const joinSeen = (one: SeenTimes, other: SeenTimes): SeenTimes => {
  const negated = (time: number | undefined): number | undefined => (time === undefined ? undefined : -time);
  return {
    earliest: least(one.earliest, other.earliest),
    latest: negated(least(negated(one.latest), negated(other.latest))),
  };
};

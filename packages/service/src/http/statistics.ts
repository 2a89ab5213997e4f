import type { Knex } from 'knex';
import { z } from 'zod';

/** Totals of a history. */
export interface Statistics<S extends string, D extends string> {
  readonly totalTransfers: number;
  readonly byStatus: Readonly<Record<S, number>>;
  readonly byDirection: Readonly<Record<D, number>>;
  /** As PI 27 counts them. */
  readonly bytesTransferred: number;
}

/** Its schema, for the document of the interface. */
export const statisticsAnswer = <S extends string, D extends string>(
  statuses: readonly S[],
  directions: readonly D[],
) =>
  z
    .object({
      totalTransfers: z.int().min(0),
      byStatus: z.record(z.enum(statuses), z.int().min(0)),
      byDirection: z.record(z.enum(directions), z.int().min(0)),
      bytesTransferred: z.int().min(0).meta({ description: 'As PI 27 counts them.' }),
    })
    .meta({ id: 'Statistics' });

interface Group {
  readonly status: string;
  readonly direction: string;
  readonly transfers: number;
  readonly bytes: number;
}

/** Runs `query` (filters applied, nothing selected) over a table with `status`, `direction` and `bytes_transferred`. */
export const fetchStatistics = async <S extends string, D extends string>(
  query: Knex.QueryBuilder,
  statuses: readonly S[],
  directions: readonly D[],
): Promise<Statistics<S, D>> => {
  const groups: readonly Group[] = await query
    .select('status', 'direction')
    .count({ transfers: '*' })
    .sum<Group[]>({ bytes: 'bytes_transferred' })
    .groupBy('status', 'direction');
  const total = (field: 'transfers' | 'bytes', among = groups): number =>
    among.reduce((sum, group) => sum + group[field], 0);
  const by = <V extends string>(column: 'status' | 'direction', values: readonly V[]) =>
    Object.fromEntries(
      values.map((value) => [
        value,
        total(
          'transfers',
          groups.filter((group) => group[column] === value),
        ),
      ]),
    ) as Record<V, number>;
  return {
    totalTransfers: total('transfers'),
    byStatus: by('status', statuses),
    byDirection: by('direction', directions),
    bytesTransferred: total('bytes'),
  };
};

import { z } from 'zod';

import { DIMENSIONS, MOST_DAYS_BY_HOUR } from './sums.js';

/** By what transfers can be grouped. */
export const GROUPS = ['hour', 'day', 'direction', 'status', 'diagnostic', ...DIMENSIONS] as const;
export type GroupBy = (typeof GROUPS)[number];

/** Groups that are answered. */
export const MOST_GROUPS = 1_000;

/** The query fields of statistics, beside the filters. */
export const statisticsFields = {
  groupBy: z
    .enum(GROUPS)
    .optional()
    .meta({
      description: `Adds \`groups\`: one for each value of this field. \`hour\` takes a period of ${MOST_DAYS_BY_HOUR} days at most.`,
    }),
};

const totalsOf = (statuses: readonly string[], directions: readonly string[]) => ({
  byStatus: z.record(z.enum(statuses), z.int().min(0)),
  byDirection: z.record(z.enum(directions), z.int().min(0)),
  bytesTransferred: z.int().min(0).meta({ description: 'As PI 27 counts them.' }),
  failureRate: z.number().nullable().meta({ description: 'FAILED among those that ended, 0 to 1; null: none ended.' }),
  bytesPerSecond: z.number().nullable().meta({
    description: 'Bytes of those that are COMPLETED, by the sum of their durations; null: none, or none took time.',
  }),
  duration: z
    .object({ p50: z.int(), p95: z.int() })
    .nullable()
    .meta({ description: 'Milliseconds of those that are COMPLETED, from their first attempt; wrong by 5 % at most.' }),
});

/** Their schema, for the document of the interface. */
export const statisticsAnswer = (statuses: readonly string[], directions: readonly string[]) =>
  z
    .object({
      totalTransfers: z.int().min(0),
      ...totalsOf(statuses, directions),
      groups: z
        .array(
          z.object({
            value: z.string().nullable().meta({
              description:
                'Of the field of `groupBy`, of an hour its begin (2026-11-23T08:00:00Z); null: they have none.',
            }),
            transfers: z.int().min(0),
            ...totalsOf(statuses, directions),
          }),
        )
        .optional()
        .meta({
          description: `With \`groupBy\`: hours and days that have any in their order (the newest 1,000), others by their transfers: the ${MOST_GROUPS.toLocaleString('en')} largest.`,
        }),
      totalGroups: z.int().optional(),
    })
    .meta({ id: 'Statistics' });

export type Statistics = z.output<ReturnType<typeof statisticsAnswer>>;
export type Totals = Omit<Statistics, 'totalTransfers' | 'groups' | 'totalGroups'>;

import { z } from 'zod';

import type { Condition } from './table.js';

/** `column = value`; undefined when it is not asked for. */
export const equal = (column: string, value: string | number | boolean | undefined): Condition | undefined =>
  value === undefined ? undefined : { sql: `${column} = ?`, values: [value], columns: [column] };

/**
 * Records with `text` in one of the expressions, in whatever case.
 * @param columns that they read. Default: each is a column
 */
export const containing = (
  expressions: readonly string[],
  text: string | undefined,
  columns = expressions,
): Condition | undefined =>
  text === undefined
    ? undefined
    : {
        sql: expressions.map((one) => `strpos(lower(${one}), lower(?)) > 0`).join(' or '),
        values: expressions.map(() => text),
        columns,
      };

/** Without those that are not asked for. */
export const givenConditions = <K extends string>(
  conditions: Readonly<Record<K, Condition | undefined>>,
): Partial<Record<K, Condition>> =>
  Object.fromEntries(Object.entries(conditions).filter(([, condition]) => condition !== undefined)) as Partial<
    Record<K, Condition>
  >;

/** A filter that is compared with what a peer sent, so it need not be an identifier that could be configured. */
export const textFilter = (max: number) =>
  z
    .string()
    .min(1)
    .max(max)
    .regex(/^[^\0]*$/, 'NUL is not allowed')
    .optional();

export const patternFilter = (pattern: RegExp, expected: string) =>
  z.string().regex(pattern, `expected ${expected}`).optional();

export const flagFilter = () =>
  z
    .enum(['true', 'false'], 'expected true or false')
    .transform((text) => text === 'true')
    .optional();

/** Part of a name. */
export const wordsFilter = (where: string) =>
  textFilter(100).meta({ description: `Part of ${where}, in whatever case. No index serves it: add others.` });

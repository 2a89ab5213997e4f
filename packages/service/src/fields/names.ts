import { isDeepStrictEqual } from 'node:util';

import type { z } from 'zod';

import type { FieldError } from '../errors.js';
import type { FieldRow, FieldRows } from './row.js';

/** One name of a field in the interface. */
export interface FieldName {
  readonly name: string;
  /** The field's own name. */
  readonly field: string;
  readonly row: FieldRow;
  /** Schema of the value under this name. */
  readonly schema: z.ZodType;
}

/** Every name of a table; the other names of a field behind its own. */
export const namesOf = (rows: FieldRows): readonly FieldName[] =>
  Object.entries(rows).flatMap(([field, row]) => [
    { name: field, field, row, schema: row.schema },
    ...(row.aliases ?? []).map((name) => ({ name, field, row, schema: row.schema })),
    ...Object.entries(row.forms ?? {}).map(([name, schema]) => ({ name, field, row, schema })),
  ]);

/** The other names of a field. */
export const otherNames = ({ aliases = [], forms = {} }: FieldRow): readonly string[] => [
  ...aliases,
  ...Object.keys(forms),
];

/** Names of one field that say different things. */
export const disagreements = (rows: FieldRows, given: Readonly<Record<string, unknown>>): readonly FieldError[] =>
  Object.entries(rows).flatMap(([field, row]) => {
    const [first, ...others] = [field, ...otherNames(row)].filter((name) => given[name] !== undefined);
    if (first === undefined) return [];
    return others
      .filter((name) => !isDeepStrictEqual(given[name], given[first]))
      .map((name) => ({ field: name, message: `expected the same value as ${first}, or one of the two` }));
  });

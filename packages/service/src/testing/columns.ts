import { z } from 'zod';

import type { Database } from '../database/types.js';
import type { FieldRow, FieldRows } from '../fields/row.js';
import type { FieldTable } from '../fields/table.js';

interface Column {
  readonly column_name: string;
  readonly data_type: string;
  readonly is_nullable: 'YES' | 'NO';
}

/** Types of PostgreSQL that hold what a schema yields. */
const HOLDS: Readonly<Record<string, readonly string[]>> = {
  string: ['text'],
  integer: ['integer', 'bigint'],
  number: ['integer', 'bigint', 'double precision'],
  boolean: ['boolean'],
  array: ['jsonb', 'ARRAY'],
  object: ['jsonb'],
  time: ['timestamp with time zone'],
};

/** The values a schema yields, in the words of `HOLDS`. */
const kindsOf = (schema: z.ZodType): readonly string[] => {
  if (schema instanceof z.ZodCodec && schema.def.out instanceof z.ZodDate) return ['time'];
  const { $ref, $defs, ...plain } = z.toJSONSchema(schema, { io: 'output', unrepresentable: 'any' });
  // A schema that has a name in the document is a reference to itself.
  const { type, anyOf } = $ref === undefined ? plain : ($defs?.[$ref.replace('#/$defs/', '')] ?? {});
  return [type, ...(anyOf ?? []).map((one) => one.type)].flat().filter((kind) => kind !== undefined);
};

const problemsOf = (name: string, row: FieldRow, column: Column | undefined): readonly string[] => {
  if (column === undefined) return [`${name}: there is no column ${row.column ?? ''}`];
  const kinds = kindsOf(row.schema);
  const mayBeNull = column.is_nullable === 'YES';
  return [
    ...(kinds.length > 0 && kinds.every((kind) => HOLDS[kind]?.includes(column.data_type))
      ? []
      : [`${name}: ${kinds.join(', ') || 'a value of no known type'} in a column of type ${column.data_type}`]),
    ...(mayBeNull === (row.unset !== undefined)
      ? []
      : [
          `${name}: ${mayBeNull ? 'the column may be null, and nothing says what that means' : 'the column is not null'}`,
        ]),
  ];
};

/**
 * Where a field table and the migrated database do not agree: a column that is missing, holds another type, may be null or not,
 * or that neither the table nor `others` knows.
 * @param others columns that the service keeps for itself
 */
export const columnProblems = async (
  { knex, searchPath }: Database & { readonly searchPath: readonly string[] },
  { rows, table }: Pick<FieldTable<FieldRows>, 'rows' | 'table'>,
  others: readonly string[] = [],
): Promise<readonly string[]> => {
  const columns = await knex
    .withSchema('information_schema')
    .from('columns')
    .whereIn('table_schema', searchPath)
    .andWhere('table_name', table)
    .select<Column[]>('column_name', 'data_type', 'is_nullable');
  const named = Object.entries(rows).filter(([, { column }]) => column !== undefined);
  const known = new Set([...named.map(([, { column }]) => column), ...others]);
  return [
    ...named.flatMap(([name, row]) =>
      problemsOf(
        name,
        row,
        columns.find((column) => column.column_name === row.column),
      ),
    ),
    ...columns
      .map((column) => column.column_name)
      .filter((name) => !known.has(name))
      .map((name) => `${name}: no field`),
  ];
};

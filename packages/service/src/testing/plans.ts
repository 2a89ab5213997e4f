import type { Knex } from 'knex';

type Binding = string | number | boolean | Date | null | undefined;

const literal = (value: Binding): string => {
  if (value === null || value === undefined) return 'null';
  const text = value instanceof Date ? value.toISOString() : String(value);
  return `'${text.replaceAll("'", "''")}'`;
};

interface QueryEvent {
  readonly sql: string;
  readonly bindings?: readonly Binding[];
}

/**
 * How PostgreSQL answers the statements of `run` when it avoids reading tables whole and sorting: what remains of either is what no
 * index serves. One text for each statement that reads `table` in an order, and neither locks nor changes anything: a service asks others
 * beside `run`, when it likes (the queue, retention, the sums).
 */
export const plansOf = async (knex: Knex, table: string, run: () => Promise<unknown>): Promise<readonly string[]> => {
  const statements: string[] = [];
  const hear = ({ sql, bindings = [] }: QueryEvent): void => {
    if (!new RegExp(`\\bfrom "?${table}\\b`).test(sql)) return;
    if (!/\border by\b/.test(sql) || /\b(?:update|delete|insert|pg_stat_activity)\b/.test(sql)) return;
    statements.push(sql.replace(/\$(\d+)/g, (_, number: string) => literal(bindings[Number(number) - 1])));
  };
  knex.on('query', hear);
  try {
    await run();
  } finally {
    knex.off('query', hear);
  }
  return knex.transaction(async (transaction) => {
    for (const how of ['seqscan', 'bitmapscan', 'sort', 'incremental_sort']) {
      await transaction.raw(`set local enable_${how} = off`);
    }
    const plans: string[] = [];
    for (const statement of statements) {
      // A `?` of the statement is text here, not the place of a value.
      const { rows } = await transaction.raw<{ rows: { 'QUERY PLAN': string }[] }>(
        `explain (costs off) ${statement.replaceAll('?', '\\?')}`,
      );
      plans.push(rows.map((row) => row['QUERY PLAN']).join('\n'));
    }
    return plans;
  });
};

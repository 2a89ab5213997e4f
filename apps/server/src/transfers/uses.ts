import { useOf } from '@pesit-node/service';
import type { Knex } from 'knex';

interface Use {
  readonly id: number;
}

/** As many as are counted: a sentence is to tell what is there, not to list a history. */
const MOST = 1000;

const transfers = (count: number): string =>
  count === 1 ? '1 transfer' : `${count >= MOST ? `${MOST} or more` : count} transfers`;

/** Transfers of a partner, or of a virtual file, that run, or wait for the partner to restart them, in words. */
export const transfersOf = async (
  knex: Knex,
  column: 'partner_id' | 'virtual_file_id',
  id: string,
): Promise<readonly string[]> => {
  const of = (): Knex.QueryBuilder => knex('transfers').select('id').where(column, id).orderBy('id').limit(MOST);
  const running = (await of().whereIn('status', ['PENDING', 'IN_PROGRESS'])) as readonly Use[];
  const waiting = (await of().where('restartable', true)) as readonly Use[];
  const ids = (uses: readonly Use[]): readonly number[] => uses.map((use) => use.id);
  return [
    ...useOf((count) => `${transfers(count)} that ${count === 1 ? 'runs' : 'run'}`, ids(running)),
    ...useOf(
      (count) => `${transfers(count)} that ${count === 1 ? 'waits' : 'wait'} for the partner to restart`,
      ids(waiting),
    ),
  ];
};

/** Those whose list names `id`, itself and not by a glob, in words. */
export const namedBy = async (
  knex: Knex,
  { table, key, column, field, noun }: Readonly<Record<'table' | 'key' | 'column' | 'field' | 'noun', string>>,
  id: string,
): Promise<readonly string[]> => {
  const rows = (await knex(table)
    .select(`${key} as name`)
    .whereRaw('? = any(??)', [id, column])
    .orderBy(key)
    .limit(MOST)) as readonly { readonly name: string }[];
  return useOf(
    (count) => `${field} of the ${noun}${count === 1 ? '' : 's'}`,
    rows.map(({ name }) => name),
  );
};

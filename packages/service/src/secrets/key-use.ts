import type { Knex } from 'knex';

import type { Metrics } from '../metrics/metrics.js';
import type { SecretBox } from './secret-box.js';

/** A column in which secrets are stored, each beside the id of its key. */
export interface SecretColumn {
  readonly table: string;
  readonly column: string;
  /** `sealed`: by `SecretBox`; `hash`: by `PasswordHasher`. */
  readonly kind: 'sealed' | 'hash';
  /** The column that names whose it is. */
  readonly owner: string;
}

export interface KeyUse extends SecretColumn {
  /** Secrets by the id of their key; `none`: a hash of the first versions, which had none. */
  readonly keys: Readonly<Record<string, number>>;
  /** How many hang on another key than the one that is for what is new. */
  readonly older: number;
  /** Owners of those, the first hundred. */
  readonly owners: readonly string[];
}

export interface KeySources {
  readonly knex: Knex;
  readonly secrets: Pick<SecretBox, 'keyId'>;
  readonly supervisor: { readonly ready: boolean };
}

const MAX_OWNERS = 100;
const NO_KEY = 'none';

/** The id of the key, in SQL: how `SecretBox` and `PasswordHasher` write it. */
const KEY_ID = {
  sealed: "split_part(??, '.', 2)",
  hash: `coalesce(substring(?? from ',keyid=([0-9a-f]{8})[$]'), '${NO_KEY}')`,
} as const satisfies Record<SecretColumn['kind'], string>;

/** Which keys are needed to open and check what is stored in these columns. */
export const keysInUse = (
  knex: Knex,
  secrets: Pick<SecretBox, 'keyId'>,
  columns: readonly SecretColumn[],
): Promise<readonly KeyUse[]> =>
  Promise.all(
    columns.map(async (one) => {
      const { table, column, kind, owner } = one;
      const { rows } = await knex.raw<{ rows: { id: string; total: number }[] }>(
        `select ${KEY_ID[kind]} as id, count(*)::int as total from ?? where ?? is not null group by 1 order by 1`,
        [column, table, column],
      );
      const keys = Object.fromEntries(rows.map(({ id, total }) => [id, total]));
      const older = olderOf(keys, secrets);
      const owners = older === 0 ? [] : await ownersOf(knex, secrets, { table, column, kind, owner });
      return { ...one, keys, older, owners };
    }),
  );

const olderOf = (keys: KeyUse['keys'], { keyId }: Pick<SecretBox, 'keyId'>): number =>
  Object.entries(keys)
    .filter(([id]) => id !== keyId && id !== NO_KEY)
    .reduce((sum, [, total]) => sum + total, 0);

const ownersOf = async (
  knex: Knex,
  { keyId }: Pick<SecretBox, 'keyId'>,
  { table, column, kind, owner }: SecretColumn,
): Promise<readonly string[]> => {
  const { rows } = await knex.raw<{ rows: { owner: string }[] }>(
    `select ?? as owner from ?? where ?? is not null and ${KEY_ID[kind]} not in (?, ?) order by 1 limit ?`,
    [owner, table, column, column, keyId, NO_KEY, MAX_OWNERS],
  );
  return rows.map(({ owner: name }) => name);
};

/** The gauge of secrets that hang on older keys, of a service whose database is `supervisor`'s. */
export const meterKeyUse = (
  metrics: Metrics,
  { knex, secrets, supervisor }: KeySources,
  columns: readonly SecretColumn[],
): void => {
  metrics.gauge('pesit_secrets_under_older_keys', async () => {
    if (!supervisor.ready) return undefined;
    const used = await keysInUse(knex, secrets, columns);
    return used.map(({ table, column, older }) => ({ labels: { column: `${table}.${column}` }, value: older }));
  });
};

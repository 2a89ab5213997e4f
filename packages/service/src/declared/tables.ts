import type { Knex } from 'knex';

/**
 * The table that a migration of an app creates for what its configuration file declares: which secrets were applied, as `AppliedSecrets`
 * marks them. It is part of published migrations: never edited.
 */
export const createDeclaredTables = async (knex: Knex): Promise<void> => {
  await knex.raw(
    `create table declared_secrets (
       object_table text not null,
       object text not null,
       field text not null,
       mark text not null,
       primary key (object_table, object, field)
     )`,
  );
};

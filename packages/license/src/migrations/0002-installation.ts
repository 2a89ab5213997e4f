import type { Migration } from '@pesit-node/service';

/** What tells this installation from others that use the same Redis. One that runs already gets its name here. */
export const installation: Migration = {
  name: '0002-installation',
  up: async (knex) => {
    const tables = ['license_evaluation', 'license_witness', 'license_events'];
    for (const table of tables) await knex.raw('alter table ?? add column installation uuid', [table]);
    const { rows } = await knex.raw<{ rows: { readonly id: string }[] }>('select gen_random_uuid() as id');
    const id = rows[0]?.id ?? null;
    await knex('license_evaluation').update({ installation: id });
    await knex('license_witness').update({ installation: id });
    await knex('license_events').where({ action: 'EVALUATION_STARTED' }).update({ installation: id });
  },
};

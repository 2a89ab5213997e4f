import type { Migration } from '@pesit-node/service';

/** What a partner says of a file (PI 29), beside a success too. */
export const diagnosticComplement: Migration = {
  name: '0015-diagnostic-complement',
  up: async (knex) => {
    await knex.raw('alter table transfers add column diagnostic_complement bytea');
  },
};

import type { Migration } from '@pesit-node/service';

/**
 * Numbers of records in 64 bits: at a thousand transfers a second 32 bits last for 25 days. They end where a JSON number stops
 * being exact (2^53 - 1).
 */
export const transferNumbers: Migration = {
  name: '0013-transfer-numbers',
  up: async (knex) => {
    await knex.raw(`
      alter table transfers alter column id type bigint;
      alter table transfers alter column id set maxvalue 9007199254740991;
      alter table sent_files alter column transfer type bigint;
      alter table sent_points alter column transfer type bigint;`);
  },
};

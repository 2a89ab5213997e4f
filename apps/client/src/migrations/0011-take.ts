import type { Migration } from '@pesit-node/service';

/** The next transfer of a server is found without a look at the others: of those not tried yet, and of those that wait. */
export const take: Migration = {
  name: '0011-take',
  up: async (knex) => {
    await knex.raw(`
      create index transfers_fresh on transfers (server_id, position)
      where status = 'PENDING' and next_attempt_at is null`);
    await knex.raw(`
      create index transfers_delayed on transfers (server_id, next_attempt_at)
      where status = 'PENDING' and next_attempt_at is not null`);
    await knex.raw('drop index transfers_pending');
  },
};

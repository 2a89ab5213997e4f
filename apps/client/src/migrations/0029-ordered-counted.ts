import type { Migration } from '@pesit-node/service';

/**
 * What waits in an order is counted by every request and every `take`. Their plans are kept from when the table was new, and whoever
 * knows nothing of a column takes it that every row has an order: `transfers_ordered` seemed as long as the table, which was read
 * instead, with its whole history. Rows without an order make no entry.
 */
export const orderedCounted: Migration = {
  name: '0029-ordered-counted',
  up: async (knex) => {
    await knex.raw(
      `create index transfers_ordered_pending on transfers (server_id) where status = 'PENDING' and order_key is not null`,
    );
  },
};

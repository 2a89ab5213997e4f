import type { Migration } from '@pesit-node/service';

/** The key by which a request that is sent again is known, and what was seen of the line. */
export const requests: Migration = {
  name: '0005-requests',
  up: async (knex) => {
    await knex.raw(`
      alter table transfers
        add column idempotency_key text constraint transfers_idempotency_key unique,
        add column request_hash text,
        -- Milliseconds there and back, and which sync points to ask the partner for.
        add column round_trip double precision,
        add column advice text`);
  },
};

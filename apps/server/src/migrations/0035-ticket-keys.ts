import type { Migration } from '@pesit-node/service';

/**
 * The secrets of which every pod makes its keys for session tickets: one a period, which is the `number`th of its length since 1970. Sealed
 * under `secrets.key`. Nobody needs a row after `ends_at`.
 */
export const ticketKeys: Migration = {
  name: '0035-ticket-keys',
  up: async (knex) => {
    await knex.raw(`
      create table ticket_keys (
        period_ms bigint not null check (period_ms > 0),
        number bigint not null,
        secret text not null,
        ends_at timestamptz not null,
        primary key (period_ms, number)
      )`);
  },
};

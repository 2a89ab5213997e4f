import type { Migration } from '@pesit-node/service';

/**
 * Transfers by their end, for live events: a pod hears so of an outcome on another pod, however long ago its record began. One
 * more entry when a transfer ends, always at the end of the index.
 */
export const ended: Migration = {
  name: '0034-ended',
  up: async (knex) => {
    await knex.raw('create index transfers_ended on transfers (end_time) where end_time is not null');
  },
};

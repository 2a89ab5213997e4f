import { createSumTables } from '@pesit-node/service';
import type { Migration } from '@pesit-node/service';

/** Sums of the history, kept by the leader. */
export const historySums: Migration = {
  name: '0036-history-sums',
  up: (knex) => createSumTables(knex, 'start_time'),
};

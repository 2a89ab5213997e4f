import { createTraceTables } from '@pesit-node/service';
import type { Migration } from '@pesit-node/service';

/** Traces of the sessions of a partner, and until when there are any. */
export const traces: Migration = {
  name: '0011-traces',
  up: (knex) => createTraceTables(knex, { table: 'partners', key: 'partner_id', type: 'text collate "C"' }),
};

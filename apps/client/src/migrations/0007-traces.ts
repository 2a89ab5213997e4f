import { createTraceTables } from '@pesit-node/service';
import type { Migration } from '@pesit-node/service';

/** Traces of the sessions with a remote server, and until when there are any. */
export const traces: Migration = {
  name: '0007-traces',
  up: (knex) => createTraceTables(knex, { table: 'remote_servers', key: 'id', type: 'integer' }),
};

import { createHookTables } from '@pesit-node/hooks';
import type { Migration } from '@pesit-node/service';

/** Hooks, which tell others of the outcome of a transfer, and their deliveries. */
export const hooks: Migration = {
  name: '0032-hooks',
  up: (knex) =>
    createHookTables(knex, {
      peer: 'server_name',
      virtualFile: 'virtual_file',
      without: ['reply', 'former_attempts', 'pacings', 'attempt_place', 'source_version'],
    }),
};

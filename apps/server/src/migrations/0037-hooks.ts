import { createHookTables } from '@pesit-node/hooks';
import type { Migration } from '@pesit-node/service';

/** Hooks, which tell others of the outcome of a transfer, and their deliveries. */
export const hooks: Migration = {
  name: '0037-hooks',
  up: (knex) =>
    createHookTables(knex, {
      peer: 'partner_id',
      virtualFile: 'virtual_file_id',
      restartable: 'restartable',
      without: ['message', 'former_attempts', 'pacings', 'terms'],
    }),
};

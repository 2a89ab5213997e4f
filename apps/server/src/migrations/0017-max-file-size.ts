import type { Migration } from '@pesit-node/service';

/** How large a file may be that a partner writes; null: as large as there is room. */
export const maxFileSize: Migration = {
  name: '0017-max-file-size',
  up: async (knex) => {
    await knex.raw('alter table virtual_files add column max_file_size bigint check (max_file_size > 0)');
  },
};

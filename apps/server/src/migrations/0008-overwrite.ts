import type { Migration } from '@pesit-node/service';

/** Whether a received file may replace another: a file under its name proves nothing of a delivery then. */
export const overwrite: Migration = {
  name: '0008-overwrite',
  up: async (knex) => {
    await knex.raw('alter table transfers add column overwrite boolean not null default true');
  },
};

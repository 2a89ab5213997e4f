import type { Migration } from '@pesit-node/service';

/** Whether a partner may give itself another password (PI 5). */
export const passwordChange: Migration = {
  name: '0034-password-change',
  up: async (knex) => {
    await knex.raw('alter table partners add column may_change_password boolean not null default false');
  },
};

import type { Migration } from '@pesit-node/service';

/** What a partner says beside its answers: PI 29 and PI 99 of the last that had one, and PI 16 of its reply to a message. */
export const answers: Migration = {
  name: '0012-answers',
  up: async (knex) => {
    await knex.raw(`
      alter table transfers
        add column diagnostic_complement bytea,
        add column answer_free_message bytea,
        add column reply_data_code integer`);
  },
};

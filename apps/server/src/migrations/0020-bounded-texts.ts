import type { Migration } from '@pesit-node/service';

/** What records of earlier versions have of PI 99, cut to what is kept now: a page of the history is bounded with them, too. */
export const boundedTexts: Migration = {
  name: '0020-bounded-texts',
  up: async (knex) => {
    await knex.raw(
      'update transfers set free_message = substring(free_message from 1 for 254) where length(free_message) > 254',
    );
  },
};

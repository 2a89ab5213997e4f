import type { Migration } from '@pesit-node/service';

/** What records of earlier versions have of PI 29 and PI 99, cut to what is kept now: a page of the history is bounded with them, too. */
export const boundedTexts: Migration = {
  name: '0016-bounded-texts',
  up: async (knex) => {
    for (const column of ['free_message', 'answer_free_message', 'diagnostic_complement']) {
      await knex.raw('update transfers set ?? = substring(?? from 1 for 254) where length(??) > 254', [
        column,
        column,
        column,
      ]);
    }
    await knex.raw('update transfers set error_message = left(error_message, 2000) where length(error_message) > 2000');
  },
};

import type { Migration } from '@pesit-node/service';

/** Where the points of files stand that are read compressed: their places follow from no rule, as those of others do. */
export const sentPoints: Migration = {
  name: '0010-sent-points',
  up: async (knex) => {
    await knex.raw(`
      create table sent_points (
        transfer integer not null,
        number integer not null,
        file_offset bigint not null,
        data_bytes bigint not null,
        articles bigint not null,
        primary key (transfer, number)
      )`);
  },
};

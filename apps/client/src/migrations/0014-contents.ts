import type { Migration } from '@pesit-node/service';

/** Contents that came with requests: whether they are kept still, and which requests are being taken in. */
export const contents: Migration = {
  name: '0014-contents',
  up: async (knex) => {
    await knex.raw(`alter table transfers add column content text check (content in ('KEPT', 'REMOVED'))`);
    await knex.raw(`update transfers set content = 'KEPT' where source_path like '%/send/spool/' || id::text`);
    await knex.raw(`
      create table requests_under_way (
        idempotency_key text primary key,
        request uuid not null,
        until timestamptz not null
      )`);
  },
};

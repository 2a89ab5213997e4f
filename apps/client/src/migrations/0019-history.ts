import type { Migration } from '@pesit-node/service';

/**
 * Indexes of the history for lists that are bounded (`packages/service/src/history`): each has the records of one filter in order
 * of time. A list without a filter merges the two directions (MergeAppend of two index scans), so that one index serves both
 * `direction` and no filter at all. What waits and what runs is found by the indexes of the queue.
 *
 * A transfer that goes well and has no Idempotency-Key makes entries in the same 3 indexes whenever its status changes (primary
 * key, direction, remote server), one in `transfers_fresh` and one in `transfers_running`: 11 in all; before, 14. Those for failures,
 * messages and keys cost nobody else. Leases and progress are written without any (HOT): no index has a column of them, and pages
 * keep a tenth free.
 */
export const history: Migration = {
  name: '0019-history',
  up: async (knex) => {
    await knex.raw(`
      drop index transfers_created;
      drop index transfers_server;
      create index transfers_direction on transfers (direction, created_time desc, id desc);
      create index transfers_server on transfers (server_id, created_time desc, id desc);
      create index transfers_failed on transfers (status, created_time desc, id desc)
        where status in ('FAILED', 'CANCELLED');
      create index transfers_diagnostic on transfers (diagnostic, created_time desc, id desc)
        where diagnostic <> '0-000';
      create index transfers_messages on transfers (created_time desc, id desc) where type = 'MESSAGE';
      alter table transfers drop constraint transfers_idempotency_key;
      create unique index transfers_idempotency_key on transfers (idempotency_key) where idempotency_key is not null;
      alter table transfers set (fillfactor = 90);`);
  },
};

import type { Migration } from '@pesit-node/service';

/**
 * Indexes of the history for lists that are bounded (`packages/service/src/history`): each has the records of one filter in order
 * of time. A list without a filter merges the two directions (MergeAppend of two index scans), so that one index serves both
 * `direction` and no filter at all. Records in order of time of a listener, a node, COMPLETED, FILE and words in names are looked
 * at one by one, 5,000 at a time.
 *
 * A transfer that goes well makes entries in 5 indexes when it begins (primary key, direction, partner, virtual file, context) and
 * one in `transfers_running_idx`, and 5 when it ends; before, 9 and 8. Those for failures and messages cost nobody else.
 * Its progress is written without any (HOT): no index has a column of it, and pages keep a tenth free.
 */
export const history: Migration = {
  name: '0024-history',
  up: async (knex) => {
    await knex.raw(`
      drop index transfers_start_time_idx;
      drop index transfers_status_idx;
      drop index transfers_listener_idx;
      create index transfers_failed_idx on transfers (status, start_time desc, id desc)
        where status in ('FAILED', 'CANCELLED');
      create index transfers_diagnostic_idx on transfers (diagnostic, start_time desc, id desc)
        where diagnostic <> '0-000';
      alter table transfers set (fillfactor = 90);`);
  },
};

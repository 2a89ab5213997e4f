import { z } from 'zod';

import { containing, equal, givenConditions, textFilter, wordsFilter } from '../history/conditions.js';
import { historyPagingFields } from '../history/fields.js';
import type { HistoryTable, Period } from '../history/table.js';
import { periodFields } from '../http/paging.js';
import type { AuditRow } from './entry.js';

const filters = {
  actor: textFilter(64).meta({
    description: 'A user, `api-key` or `system`; of a failed login the name that was given.',
  }),
  action: textFilter(64).meta({ description: '`created`, `changed`, `deleted`, `started`, `login failed` …' }),
  objectType: textFilter(64).meta({ description: '`partner`, `listener`, `transfer`, `login` …' }),
  object: textFilter(256).meta({ description: 'Identifier of the object, whatever its type.' }),
  node: textFilter(256).meta({ description: 'Name of the pod.' }),
  q: wordsFilter('the object or the details'),
  ...periodFields(),
};

export const auditFilter = z.strictObject(filters);
export const auditQuery = z.strictObject({
  ...historyPagingFields({ sortable: { time: 'time' }, defaultSort: 'time,desc' }, 'bigint'),
  ...filters,
});
export type AuditFilter = z.output<typeof auditFilter> & Period;

/** The audit log as it is listed: filters, and the indexes of `createAuditTables`. */
export const AUDIT_HISTORY: HistoryTable<AuditFilter> = {
  table: 'audit_entries',
  time: { field: 'time', column: 'time' },
  id: { column: 'id', type: 'bigint' },
  conditions: (filter) =>
    givenConditions({
      actor: equal('actor', filter.actor),
      action: equal('action', filter.action),
      objectType: equal('object_type', filter.objectType),
      object: equal('object', filter.object),
      node: equal('node', filter.node),
      q: containing(['object', 'details'], filter.q),
    }),
  ways: [{ serves: ['objectType', 'object'] }, { serves: ['actor'] }, { serves: [] }],
};

export const auditAnswer = z
  .object({
    id: z.int().meta({ description: 'Number in the chain, without gaps.' }),
    time: z.iso.datetime(),
    actor: z.string().meta({ description: '`system`: nobody asked for it.' }),
    address: z.string().nullable().meta({ description: 'Where the caller is.' }),
    action: z.string(),
    objectType: z.string(),
    object: z.string().nullable(),
    node: z.string(),
    details: z.string().nullable().meta({
      description:
        'JSON, as the hash has it: `changes` of fields with `before` and `after`, secrets as `set` and `changed`.',
    }),
    previousHash: z.string().meta({ description: 'Of the entry before.' }),
    hash: z.string().meta({ description: 'SHA-256: docs/security.md.' }),
  })
  .meta({ id: 'AuditEntry' });

export const toAuditEntry = (row: AuditRow): z.output<typeof auditAnswer> => ({
  ...{ id: row.id, time: row.time.toISOString(), actor: row.actor, address: row.address, action: row.action },
  ...{ objectType: row.object_type, object: row.object, node: row.node, details: row.details },
  ...{ previousHash: row.previous_hash, hash: row.hash },
});

import { exportRoutes } from '../history/export.js';
import { historyPageOf } from '../history/fields.js';
import { History } from '../history/history.js';
import type { Routes } from '../http/routes.js';
import { endpoint } from '../http/validate.js';
import type { Audit } from './audit.js';
import { AUDIT_HISTORY, auditAnswer, auditFilter, auditQuery, toAuditEntry } from './history.js';

const PATH = '/api/v1/audit';
const MAPPING = {
  columns: [
    ...['id', 'time', 'actor', 'address', 'action', 'object_type', 'object', 'node', 'details'],
    ...['previous_hash', 'hash'],
  ],
  map: toAuditEntry,
};

/** The audit log, for reading alone. */
export const auditRoutes = (routes: Routes, audit: Pick<Audit, 'flush' | 'knex'>): void => {
  const history = new History(audit.knex, AUDIT_HISTORY);
  // A name that was given for a login may be a password that was typed into the wrong field: not for viewers.
  const role = 'operator';
  routes.resource(PATH, {
    get: endpoint(
      {
        summary: 'Who did what, from where',
        description:
          'Newest first. What this pod noted until now is in it; what another one noted follows within a second.',
        role,
        query: auditQuery,
        answers: { 200: historyPageOf(auditAnswer) },
      },
      async ({ query, res }) => {
        await audit.flush();
        res.json(await history.page(query, query, MAPPING));
      },
    ),
  });
  exportRoutes(routes, {
    path: PATH,
    role,
    query: auditFilter,
    fields: Object.keys(auditAnswer.shape),
    batches: (filter) => history.batches(filter, MAPPING),
  });
};

/** The audit log, which both apps have alike. */
import { answerOf, serverApp } from './rest.ts';
import type { components, paths } from './generated/server.ts';

export type AuditEntry = components['schemas']['AuditEntry'];
type Query = NonNullable<paths['/api/v1/audit']['get']['parameters']['query']>;
export type AuditPage = paths['/api/v1/audit']['get']['responses']['200']['content']['application/json'];

export const AUDIT_FILTERS = ['actor', 'action', 'objectType', 'object', 'from', 'to', 'node', 'q'] as const;
export type AuditFilterName = (typeof AUDIT_FILTERS)[number] & keyof Query;
export type AuditFilters = Readonly<Partial<Record<AuditFilterName, string>>>;

export const listAudit = (
  filters: AuditFilters,
  paging: Readonly<Partial<Record<'page' | 'after' | 'size', string>>>,
  signal: AbortSignal,
): Promise<AuditPage> =>
  answerOf(serverApp.GET('/api/v1/audit', { params: { query: { ...filters, ...paging } }, signal }));

export const auditExportPath = (filters: AuditFilters): string =>
  `/api/v1/audit/export.csv?${new URLSearchParams(filters).toString()}`;

/** A field of a change. Secrets come as `set` and `changed`. */
export interface FieldChange {
  readonly field: string;
  readonly before: unknown;
  readonly after: unknown;
}

export interface AuditDetails {
  readonly changes: readonly FieldChange[];
  /** Everything else that was noted. */
  readonly facts: readonly (readonly [string, unknown])[];
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  value !== null && typeof value === 'object' && !Array.isArray(value);

/** What the text of the details says. */
export const detailsOf = (text: string | null): AuditDetails => {
  let details: unknown;
  try {
    details = JSON.parse(text ?? '{}');
  } catch {
    return { changes: [], facts: [['', text]] };
  }
  if (!isObject(details)) return { changes: [], facts: [['', details]] };
  const { changes, ...facts } = details;
  return {
    changes: Object.entries(isObject(changes) ? changes : {}).map(([field, change]) => ({
      field,
      before: isObject(change) ? change['before'] : undefined,
      after: isObject(change) ? change['after'] : undefined,
    })),
    facts: Object.entries(facts),
  };
};

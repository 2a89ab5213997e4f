import { useId } from 'preact/hooks';

import { AUDIT_FILTERS } from '../api/audit.ts';
import type { AuditFilters } from '../api/audit.ts';
import { auditWords } from '../texts/audit.ts';
import { FilterSheet } from './filter-sheet.tsx';

interface Props {
  readonly filters: AuditFilters;
  readonly change: (filters: AuditFilters) => void;
}

/** As docs/security.md has them. */
const KNOWN: Readonly<Partial<Record<(typeof AUDIT_FILTERS)[number], readonly string[]>>> = {
  action: [
    ...[
      'created',
      'changed',
      'deleted',
      'renewed',
      'started',
      'stopped',
      'restarted',
      'installed',
      'evaluation extended',
    ],
    ...['retried', 'replayed', 'cancelled', 'failed', 'refused', 'completed', 'content read', 'tested'],
    ...[
      'switched',
      'switched off',
      'removed',
      'circuit opened',
      'circuit closed',
      'disabled',
      'given up',
      'ordered again',
      'delivered',
    ],
    ...['login failed', 'entries lost'],
  ],
  objectType: [
    ...['partner', 'virtual file', 'listener', 'remote server', 'keystore', 'truststore', 'certificate'],
    ...[
      'certificate authority',
      'license',
      'transfer',
      'session',
      'trace',
      'hook',
      'hook delivery',
      'login',
      'operation',
    ],
    'audit',
  ],
};

/** A form with every filter; what the log often has is offered. */
export const AuditFilterForm = ({ filters, change }: Props) => {
  const audit = auditWords.value;
  const list = useId();
  return (
    <FilterSheet
      names={AUDIT_FILTERS}
      change={change}
      field={(name) => {
        const known = KNOWN[name];
        const value = filters[name] ?? '';
        if (name === 'from' || name === 'to') {
          return { title: audit.names[name], input: <input name={name} type="date" defaultValue={value} /> };
        }
        const input = (
          <>
            <input name={name} type="text" defaultValue={value} list={known && `${list}${name}`} />
            {known !== undefined && (
              <datalist id={`${list}${name}`}>
                {known.map((word) => (
                  <option key={word} value={word} />
                ))}
              </datalist>
            )}
          </>
        );
        return { title: audit.names[name], input };
      }}
    />
  );
};

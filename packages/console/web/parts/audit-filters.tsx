import { useId, useState } from 'preact/hooks';

import { AUDIT_FILTERS } from '../api/audit.ts';
import type { AuditFilters } from '../api/audit.ts';
import { texts } from '../texts/index.ts';

interface Props {
  readonly filters: AuditFilters;
  readonly change: (filters: AuditFilters) => void;
}

const KNOWN: Readonly<Partial<Record<(typeof AUDIT_FILTERS)[number], readonly string[]>>> = {
  action: [
    ...['created', 'changed', 'deleted', 'started', 'stopped', 'login failed', 'refused', 'failed', 'cancelled'],
    ...['completed', 'renewed', 'installed', 'content read', 'circuit opened', 'circuit closed', 'entries lost'],
  ],
  objectType: [
    ...['partner', 'virtual file', 'listener', 'remote server', 'keystore', 'truststore', 'certificate'],
    ...['certificate authority', 'transfer', 'session', 'license', 'login', 'operation', 'audit'],
  ],
};

/** A form with every filter, opened by its button; what the log often has is offered. */
export const AuditFilterForm = ({ filters, change }: Props) => {
  const [isOpen, setOpen] = useState(false);
  const { audit, transfers, common } = texts.value;
  const list = useId();
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const given = new FormData(event.currentTarget as HTMLFormElement);
    const chosen = AUDIT_FILTERS.map((name) => [name, given.get(name)] as const);
    change(Object.fromEntries(chosen.filter(([, value]) => typeof value === 'string' && value !== '')));
    setOpen(false);
  };
  return (
    <div
      class="popover"
      onKeyDown={(event) => {
        if (event.key === 'Escape') setOpen(false);
      }}
    >
      <button type="button" class="button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {transfers.filter}
      </button>
      {isOpen && (
        <form class="sheet stack" onSubmit={submit} aria-label={transfers.filters}>
          <div class="grid">
            {AUDIT_FILTERS.map((name) => (
              <label key={name} class="field">
                <span>{audit.names[name]}</span>
                <input
                  name={name}
                  type={name === 'from' || name === 'to' ? 'date' : 'text'}
                  defaultValue={filters[name] ?? ''}
                  {...(KNOWN[name] === undefined ? {} : { list: `${list}${name}` })}
                />
                {KNOWN[name] !== undefined && (
                  <datalist id={`${list}${name}`}>
                    {KNOWN[name].map((word) => (
                      <option key={word} value={word} />
                    ))}
                  </datalist>
                )}
              </label>
            ))}
          </div>
          <div class="row">
            <button class="button main">{common.apply}</button>
            <button type="button" class="button" onClick={() => setOpen(false)}>
              {common.close}
            </button>
          </div>
        </form>
      )}
    </div>
  );
};

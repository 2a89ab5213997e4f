import { detailsOf } from '../api/audit.ts';
import type { AuditEntry } from '../api/audit.ts';
import { auditWords } from '../texts/audit.ts';
import { texts } from '../texts/index.ts';

/** A value as a person reads it. */
const Value = ({ of }: { readonly of: unknown }) => {
  const { common } = texts.value;
  const audit = auditWords.value;
  if (of === null || of === undefined || of === '') return <span class="quiet">{audit.empty}</span>;
  if (typeof of === 'boolean') return <>{of ? common.yes : common.no}</>;
  if (Array.isArray(of) && of.length === 0) return <span class="quiet">{audit.empty}</span>;
  if (Array.isArray(of) && of.every((one) => typeof one !== 'object')) return <>{of.join(', ')}</>;
  return typeof of === 'string' ? <>{of}</> : <code>{JSON.stringify(of)}</code>;
};

/** What was changed, field by field, and what else was noted. */
export const AuditDetails = ({ of }: { readonly of: AuditEntry }) => {
  const audit = auditWords.value;
  const { changes, facts } = detailsOf(of.details);
  const isChange = of.action !== 'created' && of.action !== 'deleted';
  return (
    <div class="stack">
      {changes.length > 0 && (
        <div class="frame">
          <table class="inner">
            <thead>
              <tr>
                <th scope="col">{audit.field}</th>
                {(isChange || of.action === 'deleted') && <th scope="col">{audit.before}</th>}
                {(isChange || of.action === 'created') && <th scope="col">{audit.after}</th>}
              </tr>
            </thead>
            <tbody>
              {changes.map(({ field, before, after }) => (
                <tr key={field}>
                  <th scope="row">
                    <code>{field}</code>
                  </th>
                  {(isChange || of.action === 'deleted') && (
                    <td>
                      <Value of={before} />
                    </td>
                  )}
                  {(isChange || of.action === 'created') && (
                    <td>
                      <Value of={after} />
                    </td>
                  )}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {facts.length > 0 && (
        <ul>
          {facts.map(([name, value]) => (
            <li key={name}>
              {name !== '' && <code>{name}</code>} <Value of={value} />
            </li>
          ))}
        </ul>
      )}
      <span class="quiet">
        {audit.entry} {of.id} · <code title={of.hash}>{of.hash.slice(0, 12)}</code>
      </span>
    </div>
  );
};

import { useLocation } from 'preact-iso';
import { useEffect, useState } from 'preact/hooks';

import { useAnswer } from '../api/answer.ts';
import { AUDIT_FILTERS, auditExportPath, detailsOf, listAudit } from '../api/audit.ts';
import type { AuditEntry, AuditFilters } from '../api/audit.ts';
import { download } from '../api/download.ts';
import { may } from '../api/session.ts';
import { useAction } from '../parts/action.tsx';
import { AuditDetails } from '../parts/audit-details.tsx';
import { AuditFilterForm } from '../parts/audit-filters.tsx';
import { Chips } from '../parts/chips.tsx';
import { FailureNote } from '../parts/failure-note.tsx';
import { Empty, Loading, Page } from '../parts/page.tsx';
import { Pager, usePaging } from '../parts/pager.tsx';
import { dateTime, number, time } from '../texts/format.ts';
import { auditWords } from '../texts/audit.ts';
import { texts } from '../texts/index.ts';
import { transfersWords } from '../texts/transfers.ts';
import '../style/audit.css';

const SIZE = 25;

const filtersOf = (query: Readonly<Record<string, string | undefined>>): AuditFilters =>
  Object.fromEntries(
    AUDIT_FILTERS.map((name) => [name, query[name]] as const).filter(
      ([, value]) => value !== undefined && value !== '',
    ),
  );

const addressOf = (filters: AuditFilters, page: number): string => {
  const query = new URLSearchParams(filters);
  if (page > 0) query.set('page', String(page));
  const text = query.toString();
  return text === '' ? '/audit' : `/audit?${text}`;
};

const isWarning = (action: string): boolean => /fail|refused|lost|deleted|cancelled|revoked|opened/.test(action);

/** What was noted, in a line. */
const summaryOf = ({ details }: AuditEntry): string => {
  const { changes, facts } = detailsOf(details);
  if (changes.length > 0) return changes.map(({ field }) => field).join(', ');
  return facts.map(([, value]) => (typeof value === 'string' ? value : JSON.stringify(value))).join(' · ');
};

const Row = ({ of }: { readonly of: AuditEntry }) => {
  const audit = auditWords.value;
  const [isOpen, setOpen] = useState(false);
  const isTransfer = of.objectType === 'transfer' && of.object !== null;
  return (
    <>
      <tr>
        <td>
          <time dateTime={of.time} title={dateTime(of.time)}>
            {time(of.time)}
          </time>
        </td>
        <td>
          {of.actor}
          {of.address !== null && <div class="quiet narrow-off">{of.address}</div>}
        </td>
        <td class="name">
          <span class={isWarning(of.action) ? 'warns' : undefined}>{of.action}</span>{' '}
          <span class="quiet">{of.objectType}</span>{' '}
          {isTransfer ? <a href={`/transfers/${of.object ?? ''}`}>{of.object}</a> : <strong>{of.object}</strong>}
        </td>
        <td class="narrow-off">
          <div class="brief">{summaryOf(of)}</div>
        </td>
        <td>
          <button
            type="button"
            class="button plain"
            aria-expanded={isOpen}
            aria-label={audit.details(number(of.id))}
            onClick={() => setOpen(!isOpen)}
          >
            {isOpen ? '−' : '+'}
          </button>
        </td>
      </tr>
      {isOpen && (
        <tr>
          <td colSpan={5}>
            <AuditDetails of={of} />
          </td>
        </tr>
      )}
    </>
  );
};

/** Who did what, from where: filters as chips that live in the address. */
const Log = () => {
  const { query, route } = useLocation();
  const { pages } = texts.value;
  const audit = auditWords.value;
  const transfers = transfersWords.value;
  const filters = filtersOf(query);
  const paging = usePaging(query['page'], SIZE, (page) => addressOf(filters, page));
  const key = addressOf(filters, paging.page);
  const asked = Object.fromEntries(Object.entries(paging.ask ?? { page: 0 }).map(([name, one]) => [name, String(one)]));
  const { value, failure, ask } = useAnswer(`audit ${key}`, (signal) =>
    listAudit(filters, { ...asked, size: String(SIZE) }, signal),
  );
  if (value !== undefined) paging.learn(value.next);
  useEffect(() => {
    if (paging.ask === undefined) route(addressOf(filters, 0), true);
  }, [paging.ask === undefined]);
  const exported = useAction();
  const change = (chosen: AuditFilters): void => route(addressOf(chosen, 0));
  const chips = AUDIT_FILTERS.flatMap((name) =>
    filters[name] === undefined ? [] : [{ name, title: audit.names[name], word: filters[name] }],
  );
  return (
    <Page
      title={pages.audit}
      actions={
        <>
          <button
            type="button"
            class="button"
            disabled={exported.isRunning}
            onClick={() => exported.run(() => download(auditExportPath(filters), 'audit.csv'))}
          >
            {transfers.exportAs} CSV
          </button>
          <AuditFilterForm key={key} filters={filters} change={change} />
        </>
      }
    >
      <Chips
        of={chips}
        label={transfers.filters}
        removeLabel={transfers.removeFilter}
        clearLabel={transfers.clear}
        remove={(name) => change(Object.fromEntries(Object.entries(filters).filter(([one]) => one !== name)))}
        clear={() => change({})}
      />
      <FailureNote failure={exported.failure} />
      <FailureNote failure={failure} again={ask} isStale={value !== undefined} />
      <section class="card flush" aria-label={pages.audit}>
        {value === undefined ? (
          failure === undefined && <Loading />
        ) : value.content.length === 0 ? (
          <Empty title={chips.length > 0 ? audit.noMatch : audit.none} />
        ) : (
          <div class="frame">
            <table>
              <thead>
                <tr>
                  <th scope="col">{audit.time}</th>
                  <th scope="col">{audit.names.actor}</th>
                  <th scope="col">{audit.names.action}</th>
                  <th scope="col" class="narrow-off">
                    {audit.what}
                  </th>
                  <td />
                </tr>
              </thead>
              <tbody>
                {value.content.map((one) => (
                  <Row key={one.id} of={one} />
                ))}
              </tbody>
            </table>
          </div>
        )}
      </section>
      {value !== undefined && (
        <Pager
          page={paging.page}
          found={audit.found(number(value.totalElements), value.totalIsExact)}
          hasNext={value.next !== null}
          back={transfers.newer}
          forth={transfers.older}
          go={(page) => route(addressOf(filters, page))}
        />
      )}
    </Page>
  );
};

export const AuditPage = () => {
  const { pages } = texts.value;
  const audit = auditWords.value;
  if (may('operator')) return <Log />;
  return (
    <Page title={pages.audit}>
      <Empty title={audit.mayNot} />
    </Page>
  );
};

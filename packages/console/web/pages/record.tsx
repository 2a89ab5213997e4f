import { useRoute } from 'preact-iso';
import { useState } from 'preact/hooks';

import { useAnswer } from '../api/answer.ts';
import { readTransfer } from '../api/transfers.ts';
import type { Detail, Progress } from '../api/transfers.ts';
import { useAction } from '../parts/action.tsx';
import { Attempts } from '../parts/attempts.tsx';
import { FailureNote } from '../parts/failure-note.tsx';
import { useTransferEvents } from '../parts/live-transfers.ts';
import { Card, Empty, Facts, Loading, Page } from '../parts/page.tsx';
import { DirectionWord, StatusPill } from '../parts/pills.tsx';
import { ProgressBar } from '../parts/progress.tsx';
import { RecordActions } from '../parts/record-actions.tsx';
import { RecordFacts, TermsTable } from '../parts/record-facts.tsx';
import { Trace } from '../parts/trace.tsx';
import { bytes, colon, dateTime, number } from '../texts/format.ts';
import { texts } from '../texts/index.ts';
import { recordWords } from '../texts/record.ts';

const titleOf = ({ of }: Detail): string => of.filename ?? of.label ?? texts.value.type[of.type];

/** Why it failed, in words, and what to do about it: the first thing that is read. */
const Verdict = ({ detail }: { readonly detail: Detail }) => {
  const record = recordWords.value;
  const { of } = detail;
  if (of.diagnostic === null || of.diagnostic === '0-000') return null;
  return (
    <section class={`note ${of.status === 'FAILED' ? 'bad' : 'warn'}`} aria-label={record.what}>
      <strong>
        <code>{of.diagnostic}</code> {of.diagnosticText}
      </strong>
      {of.errorMessage !== null && <span>{of.errorMessage}</span>}
      {of.whatToDo !== null && (
        <span>
          <strong>
            {texts.value.common.whatToDo}
            {colon.value}
          </strong>{' '}
          {of.whatToDo}
        </span>
      )}
      {detail.app === 'client' && detail.of.nextAttemptAt !== null && (
        <span>
          {record.next}
          {colon.value} {dateTime(detail.of.nextAttemptAt)}
        </span>
      )}
    </section>
  );
};

const Record = ({ detail, progress }: { readonly detail: Detail; readonly progress: Progress | undefined }) => {
  const record = recordWords.value;
  const { of } = detail;
  const { points } = of;
  return (
    <>
      <Verdict detail={detail} />
      {of.status === 'IN_PROGRESS' && progress !== undefined && (
        <Card title={record.progress}>
          <ProgressBar of={progress} label={record.progress} />
        </Card>
      )}
      <Card title={record.facts}>
        <RecordFacts detail={detail} />
      </Card>
      <div class="columns">
        <Card title={record.attempts}>
          <Attempts of={of.attemptList} />
        </Card>
        <div class="stack">
          {of.terms !== null && (
            <Card title={record.terms}>
              <TermsTable terms={of.terms} />
            </Card>
          )}
          {points.last > 0 && (
            <Card title={record.points}>
              <Facts
                of={[
                  [record.reached(number(points.last)), points.dataBytes === null ? null : bytes(points.dataBytes)],
                  [record.fields.articles, points.articles === null ? null : number(points.articles)],
                ]}
              />
            </Card>
          )}
        </div>
      </div>
      <Trace detail={detail} />
    </>
  );
};

/** A transfer: what became of it, why, what to do, and everything that is known of it. */
export const RecordPage = () => {
  const { params } = useRoute();
  const id = params['id'] ?? '';
  const { value: detail, failure, ask } = useAnswer(`transfer ${id}`, (signal) => readTransfer(id, signal));
  const [progress, setProgress] = useState<Progress>();
  const action = useAction();
  const { shell, pages } = texts.value;
  const record = recordWords.value;
  const isOpen = useTransferEvents(`/api/v1/transfers/${encodeURIComponent(id)}/events`, {
    transfer: ask,
    reset: ask,
    progress: (all) => setProgress(all.find((one) => String(one.id) === id)),
  });
  const isMissing = failure?.status === 404 || failure?.status === 400;
  return (
    <Page
      title={detail === undefined ? pages.transfers : titleOf(detail)}
      actions={detail !== undefined && <RecordActions detail={detail} action={action} changed={ask} />}
    >
      <p class="row">
        <a href="/transfers">{record.back}</a>
        {detail !== undefined && (
          <>
            <StatusPill status={detail.of.status} />
            <DirectionWord direction={detail.of.direction} />
            {detail.of.status === 'IN_PROGRESS' && (
              <span class={isOpen ? 'live on' : 'live'}>{isOpen ? shell.live : shell.notLive}</span>
            )}
          </>
        )}
      </p>
      <FailureNote failure={action.failure} />
      {isMissing ? (
        <Empty title={record.notFound} />
      ) : (
        <FailureNote failure={failure} again={ask} isStale={detail !== undefined} />
      )}
      {detail === undefined ? failure === undefined && <Loading /> : <Record detail={detail} progress={progress} />}
    </Page>
  );
};

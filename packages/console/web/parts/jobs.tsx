import { useState } from 'preact/hooks';

import type { Failure } from '../api/failure.ts';
import { forgetJobs, jobs, stopJob, tryAgain } from '../api/jobs.ts';
import type { Job } from '../api/jobs.ts';
import { readTransfer, shown } from '../api/transfers.ts';
import type { Progress, Transfer } from '../api/transfers.ts';
import { bytes, span } from '../texts/format.ts';
import { texts } from '../texts/index.ts';
import { sendWords } from '../texts/send.ts';
import { useAction } from './action.tsx';
import { FailureNote } from './failure-note.tsx';
import { useTransferEvents } from './live-transfers.ts';
import { Card, Empty } from './page.tsx';
import { Pill, StatusPill } from './pills.tsx';
import { ProgressBar } from './progress.tsx';

const isOver = (status: string | undefined): boolean =>
  status === 'COMPLETED' || status === 'FAILED' || status === 'CANCELLED';

const Refusal = ({ failure }: { readonly failure: Failure }) => {
  const send = sendWords.value;
  const hints: Readonly<Record<number, string>> = send.hints;
  const hint = failure.status === 0 ? send.brokeOff : hints[failure.status];
  return (
    <>
      <FailureNote failure={failure} />
      {hint !== undefined && <p>{hint}</p>}
    </>
  );
};

/** How a transfer is right now; before its first event, as it was answered. */
const Course = ({ name, of, progress }: { name: string; of: Transfer; progress: Progress | undefined }) => {
  const send = sendWords.value;
  if (of.status === 'IN_PROGRESS' && progress !== undefined) {
    return <ProgressBar of={progress} label={send.transfer(name)} />;
  }
  const isFailure = of.diagnostic !== null && of.diagnostic !== '0-000';
  return (
    <>
      {(isFailure || of.status === 'PENDING') && of.reason !== null && (
        <p>
          {isFailure && <code>{of.diagnostic}</code>} {of.reason}
        </p>
      )}
      {of.status === 'COMPLETED' && (
        <span class="quiet">
          {of.size === null ? '' : bytes(of.size)} {of.duration === null ? '' : `· ${span(of.duration)}`}
        </span>
      )}
    </>
  );
};

interface RowProps {
  readonly job: Job;
  readonly now: Transfer | undefined;
  readonly progress: Progress | undefined;
}

const Row = ({ job, now, progress }: RowProps) => {
  const send = sendWords.value;
  const { key, kind, name, server, size, sent, state, failure } = job;
  const action = useAction();
  const transfer = state === 'asked' ? now : undefined;
  const word = state === 'asking' && size === 0 ? send.asking : send.state[state === 'asked' ? 'asking' : state];
  const canStop = state === 'waiting' || state === 'asking' || (transfer !== undefined && !isOver(transfer.status));
  return (
    <li>
      <div class="row spread">
        <span class="file">
          {name}{' '}
          <span class="quiet">
            {send.kinds[kind]} {server}
          </span>
        </span>
        <span class="row">
          {transfer === undefined ? (
            <Pill mood={state === 'refused' ? 'bad' : state === 'asking' ? 'run' : ''}>{word}</Pill>
          ) : (
            <StatusPill status={transfer.status} />
          )}
          {transfer !== undefined && (
            <a href={`/transfers/${transfer.id}`} aria-label={send.recordOf(name)}>
              {send.record}
            </a>
          )}
          {state === 'refused' && (
            <button type="button" class="button" aria-label={send.againOf(name)} onClick={() => tryAgain(key)}>
              {send.again}
            </button>
          )}
          {canStop && (
            <button
              type="button"
              class="button danger"
              aria-label={send.stopOf(name)}
              disabled={action.isRunning}
              onClick={() => action.run(() => stopJob(job))}
            >
              {send.stop}
            </button>
          )}
        </span>
      </div>
      {state === 'asking' && size > 0 && (
        <>
          <progress aria-label={send.upload(name)} value={sent} max={size} />
          <span class="quiet">
            {bytes(sent)} / {bytes(size)}
          </span>
        </>
      )}
      {transfer !== undefined && <Course name={name} of={transfer} progress={progress} />}
      {failure !== undefined && <Refusal failure={failure} />}
      <FailureNote failure={action.failure} />
    </li>
  );
};

/** What was asked for on this page, newest first, each as it is right now. */
export const Jobs = () => {
  const { shell } = texts.value;
  const send = sendWords.value;
  const [news, setNews] = useState<ReadonlyMap<string, Transfer>>(new Map());
  const [progress, setProgress] = useState<ReadonlyMap<string, Progress>>(new Map());
  const tell = (one: Transfer): void => setNews((last) => new Map([...last].slice(-500)).set(one.id, one));
  const isOpen = useTransferEvents('/api/v1/transfers/events', {
    transfer: tell,
    progress: (all) => setProgress(new Map(all.map((one) => [String(one.id), one]))),
    reset: () => {
      // Whatever has happened meanwhile: the newest are asked for one by one, the records of the others are a click away.
      const asked = jobs.value.flatMap(({ transfer }) => (transfer === undefined ? [] : [transfer.id])).slice(-50);
      for (const id of asked)
        void readTransfer(id).then(
          ({ of }) => tell(shown(of)),
          () => undefined,
        );
    },
  });
  const stateOf = ({ transfer }: Job): Transfer | undefined =>
    transfer === undefined ? undefined : (news.get(transfer.id) ?? transfer);
  const ended = jobs.value.filter((job) => job.state === 'stopped' || isOver(stateOf(job)?.status));
  return (
    <Card
      title={send.asked}
      actions={
        <span class="row">
          {ended.length > 0 && (
            <button type="button" class="button" onClick={() => forgetJobs(new Set(ended.map(({ key }) => key)))}>
              {send.clear}
            </button>
          )}
          <span class={isOpen ? 'live on' : 'live'}>{isOpen ? shell.live : shell.notLive}</span>
        </span>
      }
    >
      {jobs.value.length === 0 ? (
        <Empty title={send.askedHint} />
      ) : (
        <ul class="running">
          {[...jobs.value].reverse().map((job) => {
            const now = stateOf(job);
            return <Row key={job.key} job={job} now={now} progress={progress.get(now?.id ?? '')} />;
          })}
        </ul>
      )}
    </Card>
  );
};

/** What the pages of one thing that is configured have in common. */
import type { ComponentChildren } from 'preact';
import { useLocation } from 'preact-iso';

import { useAnswer } from '../api/answer.ts';
import type { Answer } from '../api/answer.ts';
import { switchTrace } from '../api/configuration.ts';
import type { Resource } from '../api/configuration.ts';
import { may } from '../api/session.ts';
import { words as configuration } from '../texts/configuration.ts';
import { number, time } from '../texts/format.ts';
import { useAction } from './action.tsx';
import { FailureNote } from './failure-note.tsx';
import { Card, Empty, Loading, Page } from './page.tsx';
import { Pill } from './pills.tsx';
import { Question } from './question.tsx';

interface OneProps<Row> {
  readonly id: string;
  readonly path: string;
  /** To the list. */
  readonly back: string;
  readonly resource: Resource<Row>;
  readonly titleOf: (row: Row) => string;
  readonly pills: (row: Row) => ComponentChildren;
  readonly actions?: (row: Row, answer: Answer<Row>) => ComponentChildren;
  readonly every?: number;
  readonly children: (row: Row, answer: Answer<Row>) => ComponentChildren;
}

/** The page of one: its state, what can be done with it, its settings; and its deletion. */
export const One = <Row,>({
  id,
  path,
  back,
  resource,
  titleOf,
  pills,
  actions,
  every = 0,
  children,
}: OneProps<Row>) => {
  const { route } = useLocation();
  const { common } = configuration.value;
  const answer = useAnswer(`${path} ${id}`, (signal) => resource.read(id, signal), every);
  const { value: row, failure, ask } = answer;
  const isMissing = failure?.status === 404 || failure?.status === 400;
  const title = row === undefined ? id : titleOf(row);
  return (
    <Page
      title={title}
      actions={
        row !== undefined && (
          <>
            {actions?.(row, answer)}
            {may('admin') && (
              <Question
                word={common.delete}
                text={common.deleteAsk(title)}
                force={common.deleteAnyway}
                act={(force) => resource.remove(id, force)}
                done={() => route(path)}
              />
            )}
          </>
        )
      }
    >
      <p class="row">
        <a href={path}>{back}</a>
        {row !== undefined && pills(row)}
      </p>
      {isMissing ? (
        <Empty title={common.notFound} />
      ) : (
        <FailureNote failure={failure} again={ask} isStale={row !== undefined} />
      )}
      {row === undefined ? failure === undefined && <Loading /> : children(row, answer)}
    </Page>
  );
};

interface EnabledProps {
  readonly isEnabled: boolean;
  readonly change: (isEnabled: boolean) => Promise<unknown>;
  readonly changed: () => void;
}

export const EnabledPill = ({ isEnabled }: { readonly isEnabled: boolean }) => {
  const { common } = configuration.value;
  return <Pill mood={isEnabled ? 'good' : ''}>{isEnabled ? common.enabled : common.disabled}</Pill>;
};

/** Lets it be used, or no longer. */
export const EnabledSwitch = ({ isEnabled, change, changed }: EnabledProps) => {
  const { common } = configuration.value;
  const action = useAction();
  if (!may('admin')) return null;
  return (
    <>
      <FailureNote failure={action.failure} />
      <button
        type="button"
        class="button"
        disabled={action.isRunning}
        onClick={() => action.run(() => change(!isEnabled).then(changed))}
      >
        {isEnabled ? common.disable : common.enable}
      </button>
    </>
  );
};

const TRACE_MINUTES = 15;

interface TraceProps {
  readonly kind: 'partner' | 'remoteServer';
  readonly id: string;
  readonly until: string | null;
  readonly changed: () => void;
}

export const isTraced = (until: string | null): boolean => until !== null && Date.parse(until) > Date.now();

export const TracePill = ({ until }: { readonly until: string | null }) =>
  isTraced(until) ? <Pill mood="warn">{configuration.value.trace.pill}</Pill> : null;

/** The trace of its sessions, on for a while or off. */
export const TraceSwitch = ({ kind, id, until, changed }: TraceProps) => {
  const { trace } = configuration.value;
  const action = useAction();
  const isOn = isTraced(until);
  const to = (minutes: number) => () => action.run(() => switchTrace(kind, id, minutes).then(changed));
  return (
    <Card title={trace.title}>
      <p class={isOn ? '' : 'quiet'}>{isOn && until !== null ? trace.until(time(until)) : trace.off}</p>
      <FailureNote failure={action.failure} />
      {may('operator') && (
        <div class="row">
          <button type="button" class="button" disabled={action.isRunning} onClick={to(TRACE_MINUTES)}>
            {trace.on(number(TRACE_MINUTES))}
          </button>
          {isOn && (
            <button type="button" class="button" disabled={action.isRunning} onClick={to(0)}>
              {trace.stop}
            </button>
          )}
        </div>
      )}
    </Card>
  );
};

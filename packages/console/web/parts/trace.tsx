import { useState } from 'preact/hooks';

import { useAnswer } from '../api/answer.ts';
import { may } from '../api/session.ts';
import { ownerOf, readTrace, sessionsOf, switchTrace, traceOf } from '../api/trace.ts';
import type { Owner, TracedSession, TraceLine } from '../api/trace.ts';
import type { Detail } from '../api/transfers.ts';
import { dateTime, exactTime, number, time } from '../texts/format.ts';
import { recordWords } from '../texts/record.ts';
import { traceWords } from '../texts/trace.ts';
import { useAction } from './action.tsx';
import { FailureNote } from './failure-note.tsx';
import { Card, Loading } from './page.tsx';
import '../style/trace.css';

/** Lines that are shown at first. */
const FIRST = 200;
const MINUTES = 60;

/** An FPDU in words; an acknowledgement says what it acknowledges. */
const wordsOf = (name: string): string => {
  const trace = traceWords.value;
  const fpdus: Readonly<Record<string, string>> = trace.fpdus;
  const acknowledged = /^ACK\((.+)\)$/.exec(name)?.[1];
  return acknowledged === undefined ? (fpdus[name] ?? '') : trace.acknowledges(acknowledged);
};

const Line = ({ of }: { readonly of: TraceLine }) => {
  const trace = traceWords.value;
  return (
    <tr class={of.direction === 'note' ? 'happened' : undefined}>
      <td class="number">{exactTime(of.time)}</td>
      <td class="together">
        {of.direction === 'note' ? '' : <span aria-hidden="true">{of.direction === 'sent' ? '→' : '←'} </span>}
        {trace.directions[of.direction]}
      </td>
      <td>
        {of.name !== '' && (
          <>
            <strong>{of.name}</strong> <span class="quiet">{wordsOf(of.name)}</span>
          </>
        )}
        {of.parts.length > 0 && (
          <ul class={of.direction === 'note' ? undefined : 'pis'}>
            {of.parts.map((part) => (
              <li key={part}>{part}</li>
            ))}
          </ul>
        )}
      </td>
    </tr>
  );
};

interface LinesProps {
  readonly owner: Owner;
  readonly session: string;
}

const Lines = ({ owner, session }: LinesProps) => {
  const trace = traceWords.value;
  const [isWhole, setWhole] = useState(false);
  const { value, failure, ask } = useAnswer(`trace ${session}`, (signal) => readTrace(owner, session, signal));
  if (value === undefined) return failure === undefined ? <Loading /> : <FailureNote failure={failure} again={ask} />;
  return (
    <div class="frame">
      <table class="trace">
        <thead>
          <tr>
            <th scope="col">{trace.time}</th>
            <th scope="col">{trace.direction}</th>
            <th scope="col">{trace.fpdu}</th>
          </tr>
        </thead>
        <tbody>
          {(isWhole ? value : value.slice(0, FIRST)).map((line, index) => (
            <Line key={index} of={line} />
          ))}
        </tbody>
      </table>
      {!isWhole && value.length > FIRST && (
        <button type="button" class="button" onClick={() => setWhole(true)}>
          {trace.whole(number(value.length))}
        </button>
      )}
    </div>
  );
};

interface SessionProps {
  readonly owner: Owner;
  readonly of: TracedSession;
}

/** A session, whose lines are fetched when somebody opens it. */
const Session = ({ owner, of }: SessionProps) => {
  const trace = traceWords.value;
  const [isOpen, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        {dateTime(of.startTime)} · {trace.lines(number(of.lines))} · {of.outcome ?? trace.runs}
      </summary>
      {isOpen && <Lines owner={owner} session={of.session} />}
    </details>
  );
};

/** What went over the wire in the sessions of a record, and how to have it recorded. */
export const Trace = ({ detail }: { readonly detail: Detail }) => {
  const trace = traceWords.value;
  const record = recordWords.value;
  const owner = ownerOf(detail);
  const key = `traces ${owner?.app ?? ''} ${owner?.id ?? ''} ${detail.of.status}`;
  const { value, failure, ask } = useAnswer(key, async (signal) =>
    owner === undefined ? undefined : { list: await traceOf(owner, signal) },
  );
  const action = useAction();
  if (owner === undefined || !may('operator')) return null;
  const list = value?.list;
  if (value !== undefined && list === undefined) return null;
  const sessions = list === undefined ? [] : sessionsOf(detail, list);
  const turn = (minutes: number) => () => action.run(() => switchTrace(owner, minutes).then(ask));
  return (
    <Card
      title={record.trace}
      actions={
        list !== undefined && (
          <span class="row">
            {list.active && <span class="quiet">{trace.until(time(list.until ?? ''))}</span>}
            <button type="button" class="button" disabled={action.isRunning} onClick={turn(list.active ? 0 : MINUTES)}>
              {list.active ? trace.off : trace.on}
            </button>
          </span>
        )
      }
    >
      <FailureNote failure={action.failure} />
      <FailureNote failure={failure} again={ask} isStale={value !== undefined} />
      {list === undefined
        ? failure === undefined && <Loading />
        : sessions.map((one) => <Session key={one.session} owner={owner} of={one} />)}
      {list !== undefined && sessions.length === 0 && <p class="quiet">{list.active ? trace.waits : record.noTrace}</p>}
    </Card>
  );
};

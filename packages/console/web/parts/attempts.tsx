import type { Attempt } from '../api/transfers.ts';
import { bytes, dateTime, number, span, time } from '../texts/format.ts';
import { recordWords } from '../texts/record.ts';
import { MOODS, StatusPill } from './pills.tsx';

const One = ({ of }: { readonly of: Attempt }) => {
  const record = recordWords.value;
  const from = of.terms?.fromPoint ?? 0;
  const isFailure = of.diagnostic !== null && of.diagnostic !== '0-000';
  return (
    <li class={MOODS[of.status]}>
      <div class="row">
        <h3>{record.attempt(number(of.number))}</h3>
        <StatusPill status={of.status} />
        {of.startTime !== null && (
          <time class="quiet" dateTime={of.startTime} title={dateTime(of.startTime)}>
            {time(of.startTime)}
          </time>
        )}
        {of.duration !== null && <span class="quiet">{span(of.duration)}</span>}
      </div>
      <p class="quiet">
        {[
          from === 0 ? record.fromStart : record.fromPoint(number(from)),
          ...(of.syncPoint === null || of.syncPoint === 0 ? [] : [record.reached(number(of.syncPoint))]),
          ...(of.bytesTransferred === null ? [] : [bytes(of.bytesTransferred)]),
          ...(of.node === null ? [] : [of.node]),
          ...('remoteAddress' in of && of.remoteAddress !== null ? [of.remoteAddress] : []),
        ].join(' · ')}
      </p>
      {isFailure && (
        <p>
          <code>{of.diagnostic}</code> {of.diagnosticText}
        </p>
      )}
      {of.errorMessage !== null && <p>{of.errorMessage}</p>}
    </li>
  );
};

/** The attempts of a transfer, newest first. */
export const Attempts = ({ of }: { readonly of: readonly Attempt[] }) =>
  of.length === 0 ? (
    <p class="quiet">{recordWords.value.noAttempt}</p>
  ) : (
    <ol class="timeline">
      {[...of].reverse().map((attempt) => (
        <One key={attempt.number} of={attempt} />
      ))}
    </ol>
  );

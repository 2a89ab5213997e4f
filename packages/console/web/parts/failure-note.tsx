import type { Failure } from '../api/failure.ts';
import { texts } from '../texts/index.ts';

interface Props {
  readonly failure: Failure | undefined;
  readonly again?: (() => void) | undefined;
  /** Whether an older answer is still shown. */
  readonly isStale?: boolean;
}

/** @param isAsked it is asked again by itself; else somebody did something, once */
const wordsOf = ({ code, status, message }: Failure, isAsked: boolean): string => {
  const { failure } = texts.value;
  if (code === 'TIMEOUT') return isAsked ? failure.timeout : failure.timeoutOnce;
  if (code === 'UNREACHABLE') return isAsked ? failure.unreachable : failure.unreachableOnce;
  if (code === 'TOO_LARGE_HERE') return failure.tooLargeHere;
  if (status === 403) return `${failure.forbidden} ${message}`;
  return message;
};

/** Why something is not shown, or could not be done; with the id under which the log of the service has it. */
export const FailureNote = ({ failure, again, isStale = false }: Props) => {
  if (failure === undefined) return null;
  const words = texts.value.failure;
  return (
    <div class="note bad" role="alert">
      <strong>{wordsOf(failure, again !== undefined)}</strong>
      {failure.code === 'TOO_LARGE_HERE' && <code>{failure.message}</code>}
      {failure.status === 402 && <a href="/license">{words.toLicense}</a>}
      {failure.details.length > 0 && (
        <ul>
          {failure.details.map(({ field, message }) => (
            <li key={field}>
              <code>{field}</code>: {message}
            </li>
          ))}
        </ul>
      )}
      <span class="row">
        {isStale && <span>{words.stale}</span>}
        {failure.requestId !== null && (
          <span class="quiet">
            {words.request} <code>{failure.requestId}</code>
          </span>
        )}
        {again !== undefined && (
          <button type="button" class="button" onClick={again}>
            {words.again}
          </button>
        )}
      </span>
    </div>
  );
};

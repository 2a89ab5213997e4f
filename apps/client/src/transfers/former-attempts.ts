import { FORMER_ATTEMPTS, FORMER_REASON } from '@pesit-node/transfers';

/** SQL for what is kept of an attempt that ends. */
interface EndedAttempt {
  readonly status: string;
  readonly diagnostic: string;
  readonly errorMessage: string;
  readonly bytesTransferred: string;
  readonly articles: string;
  readonly syncPoint: string;
  /** `AttemptPlace`. */
  readonly place: string;
}

/** `former_attempts` of the row `t` with one more: written by the statement that ends the attempt, so it costs none. */
export const withAttempt = (one: EndedAttempt): string => `
  case when jsonb_array_length(t.former_attempts) >= ${FORMER_ATTEMPTS} then t.former_attempts - 0
    else coalesce(t.former_attempts, '[]') end || (
    jsonb_build_object('status', ${one.status}, 'startTime', t.attempt_time, 'endTime', now(), 'node', t.node,
      'diagnostic', ${one.diagnostic}, 'errorMessage', left(${one.errorMessage}, ${FORMER_REASON}),
      'bytesTransferred', ${one.bytesTransferred}, 'articles', ${one.articles}, 'syncPoint', ${one.syncPoint})
    || coalesce(${one.place}, '{"sessionId":null,"remoteAddress":null,"terms":null}'))`;

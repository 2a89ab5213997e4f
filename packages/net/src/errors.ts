import { PesitError } from '@pesit-node/protocol';
import type { DiagnosticCode, ErrorCondition, SyncPoint } from '@pesit-node/protocol';
import type { TlsError } from './tls-failures.js';

const textOf = (error: unknown): string => `internal error: ${error instanceof Error ? error.message : String(error)}`;

/** The error to tell the partner for anything that an application's method rejected with. */
export const asPesitError = (error: unknown, diagnostic: DiagnosticCode): PesitError => {
  if (error instanceof PesitError) return error;
  return new PesitError(textOf(error), { fault: 'local', diagnostic, cause: error });
};

/** The same where an operation of ours ends with it: another attempt would meet the same fault of the program. */
export const asFinalError = (error: unknown): PesitError => {
  if (error instanceof PesitError) return error;
  return new PesitError(textOf(error), { fault: 'local', diagnostic: '2-215', condition: 'unexpected', cause: error });
};

/** Why a signal was aborted: its reason when that is a `PesitError`, otherwise 2-216. */
export const cancellation = (signal: AbortSignal): PesitError => {
  const reason: unknown = signal.reason;
  if (reason instanceof PesitError) return reason;
  return new PesitError('cancelled by the program', {
    fault: 'local',
    diagnostic: '2-216',
    condition: 'cancelled',
    cause: reason,
  });
};

/** A resynchronisation that the file cannot follow. */
export const cannotGoBack = ({ number }: SyncPoint): PesitError =>
  new PesitError(`this transfer cannot go back to sync point ${number} within its session: it has to be restarted`, {
    fault: 'local',
    diagnostic: '2-218',
  });

const CONDITIONS = {
  certificate: 'certificate refused',
  terms: 'TLS not agreed',
  passing: undefined,
} as const satisfies Record<TlsError['kind'], ErrorCondition | undefined>;

/** TLS did not let a connection through, when it was opened or behind it. @param what before the reason, e.g. `no connection to …` */
export const tlsFailure = (what: string, error: TlsError): PesitError =>
  new PesitError(`${what}: ${error.message}`, {
    fault: 'transport',
    diagnostic: '3-310',
    condition: CONDITIONS[error.kind],
    cause: error,
  });

import { DIAGNOSTICS, PesitError, retryOf } from '@pesit-node/protocol';
import type { DiagnosticCode, ErrorCondition, PeerDiagnostic } from '@pesit-node/protocol';
import type { ApiErrorCode } from '@pesit-node/service';

import type { Direction } from './vocabulary.js';

/** `final`: another attempt would end the same way; `later`: the partner asks to come again, which is no failure. */
export type Verdict = 'final' | 'again' | 'later';

/** The codes of the interface specification for a contact with a remote server that failed (Errors). */
export type ContactErrorCode = Extract<
  ApiErrorCode,
  'CONNECTION_FAILED' | 'AUTH_FAILED' | 'PARTNER_UNKNOWN' | 'TIMEOUT' | 'TRANSFER_FAILED'
>;
export type TransferErrorCode = ContactErrorCode | Extract<ApiErrorCode, 'FILE_NOT_FOUND'>;

/** `connecting`: no session yet. `transferring`: a session is there. */
export type Phase = 'connecting' | 'transferring';

/** Meaning of a diagnostic for the transfer that it ended. */
export interface Outcome {
  /** Whether another attempt of the same transfer may succeed. */
  readonly verdict: Verdict;
  /** As an answer to a restart: not from here, but perhaps from the start. `when reading`: only to the one who reads. */
  readonly refusesRestart: 'no' | 'when reading' | 'yes';
  /** The transfer may continue under its PI 13, but the named point is not known: read from the start (`pesit-e.md` §5). */
  readonly unknownPoint: boolean;
  /** Whether what is staged can be trusted afterwards; if not, the next attempt begins at the start. */
  readonly distrusts: 'nobody' | 'the receiver' | 'both';
  /** An attempt that came no point further and ends so twice in a row is taken for a misunderstanding of its point. */
  readonly misunderstandsPoint: boolean;
  /** Somebody ended the transfer on purpose. */
  readonly cancels: boolean;
  /** The partner has the whole file: the confirmation of its end was lost on the way. */
  readonly delivered: boolean;
  /** As an answer to a file: the session is no longer trusted; one that proves itself anew may be (pesit-e.md §9). */
  readonly outdatesSession: boolean;
  /** The client error code, where the diagnostic alone decides it. */
  readonly errorCode: TransferErrorCode | undefined;
}

const VERDICTS = { no: 'final', yes: 'again', later: 'later' } as const;

/**
 * Where a diagnostic means more than whether to come again. 2-204 is what Connect:Express answers to every CREATE with PI 15
 * (`pesit-e.md` §5), 2-233 Axway without a context; with 2-215 the partner's file is another one now.
 */
const MEANINGS: Readonly<Partial<Record<DiagnosticCode, Partial<Omit<Outcome, 'verdict'>>>>> = {
  '1-100': { distrusts: 'the receiver' },
  '2-204': { refusesRestart: 'yes' },
  '2-205': { errorCode: 'FILE_NOT_FOUND' },
  '2-214': { refusesRestart: 'yes', unknownPoint: true },
  '2-215': { refusesRestart: 'when reading' },
  '2-216': { cancels: true },
  '2-218': { refusesRestart: 'yes' },
  '2-233': { refusesRestart: 'yes' },
  '2-250': { delivered: true },
  '3-301': { errorCode: 'PARTNER_UNKNOWN' },
  '3-304': { outdatesSession: true, errorCode: 'AUTH_FAILED' },
  // Nothing is wrong with the connection: the partner speaks another version.
  '3-308': { errorCode: 'TRANSFER_FAILED' },
  '3-311': { misunderstandsPoint: true },
  '3-317': { errorCode: 'TIMEOUT' },
  '3-319': { distrusts: 'both' },
};

const outcome = (code: PeerDiagnostic): Outcome => ({
  verdict: VERDICTS[retryOf(code)],
  refusesRestart: 'no',
  unknownPoint: false,
  distrusts: 'nobody',
  misunderstandsPoint: false,
  cancels: false,
  delivered: false,
  outdatesSession: false,
  errorCode: undefined,
  ...MEANINGS[code as DiagnosticCode],
});

/** The outcome table: one row a diagnostic of the specification. */
export const OUTCOMES = Object.fromEntries(
  Object.keys(DIAGNOSTICS).map((code) => [code, outcome(code as DiagnosticCode)]),
) as Readonly<Record<DiagnosticCode, Outcome>>;

/** Nothing is known of a partner's own code that would make another attempt better. */
const UNLISTED = outcome('' as PeerDiagnostic);

/** Meaning of `code` for a transfer; a code that is not in the specification is final. */
export const outcomeOf = (code: PeerDiagnostic): Outcome =>
  Object.hasOwn(OUTCOMES, code) ? OUTCOMES[code as DiagnosticCode] : UNLISTED;

/** Conditions that another attempt does not mend, whatever the partner is told. */
const FINAL_HERE: ReadonlySet<ErrorCondition | undefined> = new Set([
  'certificate refused',
  'TLS not agreed',
  'source changed',
  'setting unusable',
  'unexpected',
]);

/** PI 19 of an IDT (§4.5.19): error, a restart follows. */
const RESTART_FOLLOWS = 4;

/** Whether, and how soon, another attempt may follow `error`. */
export const verdictOn = (error: PesitError): Verdict => {
  if (FINAL_HERE.has(error.condition)) return 'final';
  const { verdict } = outcomeOf(error.diagnostic);
  return verdict === 'final' && error.endCode === RESTART_FOLLOWS ? 'again' : verdict;
};

/** Whether the file may go as a new transfer after this answer to its restart. @param direction seen by this side */
export const refusesRestart = (error: PesitError, direction: Direction): boolean => {
  if (error.fault === 'local') return direction === 'SEND' && error.condition === 'point unknown';
  if (error.fault !== 'refused') return false;
  const { refusesRestart: refuses } = outcomeOf(error.diagnostic);
  return refuses === 'yes' || (refuses === 'when reading' && direction === 'RECEIVE');
};

/** Whether what this side has of the file can be continued after `diagnostic`. @param direction seen by this side */
export const keepsTrust = (diagnostic: PeerDiagnostic, direction: Direction): boolean => {
  const { distrusts } = outcomeOf(diagnostic);
  return distrusts === 'nobody' || (distrusts === 'the receiver' && direction === 'SEND');
};

/**
 * Whether the partner has refused a file for the session that asked: what proves this side, or its rights, may have been
 * changed since the session was opened.
 */
export const outdatesSession = (error: PesitError): boolean =>
  error.fault === 'refused' && outcomeOf(error.diagnostic).outdatesSession;

/** The client error code of a failed contact or transfer. */
export const errorCodeOf = (error: PesitError, phase: Phase): TransferErrorCode => {
  if (error.fault === 'timeout') return 'TIMEOUT';
  if (error.condition === 'certificate refused') return 'AUTH_FAILED';
  const { errorCode } = outcomeOf(error.diagnostic);
  if (errorCode !== undefined) return errorCode;
  const notReached = error.fault === 'transport' || error.fault === 'refused';
  return phase === 'connecting' && notReached ? 'CONNECTION_FAILED' : 'TRANSFER_FAILED';
};

/** `error` when it is a `PesitError`; anything else that was thrown is an unexpected failure of this side (2-215). */
export const toPesitError = (thrown: unknown): PesitError =>
  thrown instanceof PesitError
    ? thrown
    : new PesitError(thrown instanceof Error ? thrown.message : String(thrown), {
        fault: 'local',
        diagnostic: '2-215',
        condition: 'unexpected',
        cause: thrown,
      });

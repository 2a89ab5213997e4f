import { PesitError } from '@pesit-node/protocol';
import type { ApiErrorCode } from '@pesit-node/service';

/** The codes of the specification for a contact with a remote server that failed (Errors). */
export type ContactErrorCode = Extract<
  ApiErrorCode,
  'CONNECTION_FAILED' | 'AUTH_FAILED' | 'PARTNER_UNKNOWN' | 'TIMEOUT' | 'TRANSFER_FAILED'
>;
export type TransferErrorCode = ContactErrorCode | Extract<ApiErrorCode, 'FILE_NOT_FOUND'>;

/** `connecting`: no session yet. `transferring`: a session is there. */
export type Phase = 'connecting' | 'transferring';

/** Diagnostics that mean the same wherever they come from. */
const CODES: Readonly<Record<string, TransferErrorCode>> = {
  '2-205': 'FILE_NOT_FOUND',
  '3-301': 'PARTNER_UNKNOWN',
  '3-304': 'AUTH_FAILED',
  // The partner was reached, and speaks another version.
  '3-308': 'TRANSFER_FAILED',
  '3-317': 'TIMEOUT',
};

/** The client error code of a failed contact or transfer. */
export const errorCodeOf = (error: PesitError, phase: Phase): TransferErrorCode => {
  if (error.fault === 'timeout') return 'TIMEOUT';
  const known = CODES[error.diagnostic];
  if (known !== undefined) return known;
  const notReached = error.fault === 'transport' || error.fault === 'refused';
  return phase === 'connecting' && notReached ? 'CONNECTION_FAILED' : 'TRANSFER_FAILED';
};

/** Whatever was thrown, as a `PesitError`: anything else is a fault of this side (2-215). */
export const toPesitError = (thrown: unknown): PesitError =>
  thrown instanceof PesitError
    ? thrown
    : new PesitError(thrown instanceof Error ? thrown.message : String(thrown), {
        fault: 'local',
        diagnostic: '2-215',
        cause: thrown,
      });

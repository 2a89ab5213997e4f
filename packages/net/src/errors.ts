import { PesitError } from '@pesit-node/protocol';
import type { DiagnosticCode } from '@pesit-node/protocol';

/** Whatever an application's method rejected with, as what to tell the partner. */
export function asPesitError(error: unknown, diagnostic: DiagnosticCode): PesitError {
  if (error instanceof PesitError) return error;
  return new PesitError(`internal error: ${error instanceof Error ? error.message : String(error)}`, {
    fault: 'local',
    diagnostic,
    cause: error,
  });
}

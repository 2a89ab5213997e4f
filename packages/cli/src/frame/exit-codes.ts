/** Exit codes by cause: a script decides by them whether to come again, and whom to call. */
import { PesitError } from '@pesit-node/protocol';

interface ExitCode {
  readonly code: number;
  readonly name: string;
  /** For docs/cli.md. */
  readonly help: string;
}

const rows = [
  ['done', 0, 'It is done.'],
  ['unexpected', 1, 'A fault of the program; the message is for its makers.'],
  ['usage', 2, 'The command line is wrong: nothing was begun.'],
  [
    'local',
    3,
    'Something of this machine is in the way: a file, the disk, a profile, a certificate of ours. The same command continues what can be continued.',
  ],
  ['notReached', 4, 'Nobody answers at that address, or TLS could not be agreed.'],
  ['login', 5, 'The other side does not let us in: partner, password, certificate, user or role.'],
  ['notFound', 6, 'The other side does not have it: the file, the record, the resource.'],
  [
    'failed',
    7,
    'The transfer was refused, or was cut off in every attempt. The same command continues what can be continued.',
  ],
  ['timeout', 8, 'The other side did not answer in time. The same command continues what can be continued.'],
  ['refused', 9, 'The service refused the request: a field, a conflict, a limit, its license.'],
  ['unavailable', 10, 'The service cannot answer now: come again later.'],
  ['interrupted', 130, 'Interrupted (Ctrl-C, SIGTERM). The same command continues what can be continued.'],
] as const;

export type Cause = (typeof rows)[number][0];

export const EXIT_CODES: readonly ExitCode[] = rows.map(([name, code, help]) => ({ name, code, help }));

const codes = Object.fromEntries(rows.map(([name, code]) => [name, code])) as Readonly<Record<Cause, number>>;

export const exitCode = (cause: Cause): number => codes[cause];

/** A failure whose cause is known; the message is for the user. */
export class CliError extends Error {
  override readonly name = 'CliError';
  readonly reason: Cause;
  /** The answer of the service, for `--json`. */
  readonly body: unknown;

  constructor(reason: Cause, message: string, options?: { readonly cause?: unknown; readonly body?: unknown }) {
    super(message, options?.cause === undefined ? undefined : { cause: options.cause });
    this.reason = reason;
    this.body = options?.body;
  }
}

export const usageError = (message: string): CliError => new CliError('usage', message);

/** @param connecting no session was open yet */
export const causeOf = async (error: unknown, connecting: boolean): Promise<Cause> => {
  if (error instanceof CliError) return error.reason;
  if (!(error instanceof PesitError)) return 'unexpected';
  if (error.condition === 'unexpected') return 'unexpected';
  if (error.condition === 'TLS not agreed') return 'notReached';
  // Loaded late: commands that do not transfer anything start without it.
  const { errorCodeOf } = await import('@pesit-node/transfers');
  const code = errorCodeOf(error, connecting ? 'connecting' : 'transferring');
  if (error.fault === 'local' && code !== 'FILE_NOT_FOUND') return 'local';
  const causes = {
    CONNECTION_FAILED: 'notReached',
    AUTH_FAILED: 'login',
    PARTNER_UNKNOWN: 'login',
    TIMEOUT: 'timeout',
    FILE_NOT_FOUND: error.fault === 'local' ? 'local' : 'notFound',
    TRANSFER_FAILED: 'failed',
  } as const satisfies Record<typeof code, Cause>;
  return causes[code];
};

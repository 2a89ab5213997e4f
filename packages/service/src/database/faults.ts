import { codeOf, isError } from '@pesit-node/ground';

/** SQLSTATE and Node codes of a database that serves nobody: connection lost or refused; no socket yet (ENOENT); starting, stopping, full. */
const AWAY_CODES = new Set([
  'ECONNREFUSED',
  'ENOENT',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  '57P01',
  '57P02',
  '57P03',
  '53300',
]);

/** SQLSTATE codes of one statement that may succeed later: too slow, on a standby after a failover, or the loser of a deadlock. */
const NOT_NOW_CODES = new Set(['25P03', '57014', '25006', '40001', '40P01']);

const AWAY_MESSAGES =
  /Connection terminated|timeout expired|timeout exceeded when trying to connect|Timeout acquiring a connection|Unable to acquire a connection|not queryable|did not answer within/;

/** ENOENT of a file, and not of the socket of the database. */
const isOfFile = (error: Error): boolean => 'syscall' in error && error.syscall !== 'connect' && 'path' in error;

/** Whether a failed query found the database out of reach: what the supervisor says of it once, whoever else finds it. */
export const isDatabaseAway = (error: unknown): boolean => {
  if (!isError(error)) return false;
  const code = codeOf(error);
  if (code !== undefined && (AWAY_CODES.has(code) || code.startsWith('08'))) return !isOfFile(error);
  return AWAY_MESSAGES.test(error.message) || error.name === 'KnexTimeoutError';
};

/**
 * Whether the same query may succeed later: the database is out of reach, or the statement lost to others.
 * Only for errors of queries: a partner's refused connection has the same codes, and is a `PesitError` before it gets here.
 */
export const isDatabaseUnavailable = (error: unknown): boolean =>
  isDatabaseAway(error) || NOT_NOW_CODES.has(codeOf(error) ?? '');

/** A row with this key exists already (SQLSTATE 23505); `constraint` narrows it to one. */
export const isUniqueViolation = (error: unknown, constraint?: string): boolean =>
  codeOf(error) === '23505' &&
  (constraint === undefined || (error as { readonly constraint?: string }).constraint === constraint);

/** A row would not be as its table wants it (SQLSTATE 23514); `constraint` narrows it to one. */
export const isCheckViolation = (error: unknown, constraint?: string): boolean =>
  codeOf(error) === '23514' &&
  (constraint === undefined || (error as { readonly constraint?: string }).constraint === constraint);

/** A row is still referred to, or refers to nothing (SQLSTATE 23503). */
export const isForeignKeyViolation = (error: unknown): boolean => codeOf(error) === '23503';

/** Text or number that PostgreSQL cannot store: NUL in text, number out of range. The request was wrong, not the service. */
export const isUnstorableValue = (error: unknown): boolean =>
  ['22021', '22P05', '22003', '22007', '22008', '22001'].includes(codeOf(error) ?? '');

import { codeOf, isError } from '../thrown.js';

/**
 * SQLSTATE and Node codes that mean "not now": connection lost or refused; no socket yet (ENOENT); server starting, stopping, full,
 * too slow, or a standby after a failover; a deadlock that this side lost.
 */
const UNAVAILABLE_CODES = new Set([
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
  '25P03',
  '57014',
  '25006',
  '40001',
  '40P01',
]);

const UNAVAILABLE_MESSAGES =
  /Connection terminated|timeout expired|timeout exceeded when trying to connect|Timeout acquiring a connection|Unable to acquire a connection|not queryable|did not answer within/;

/**
 * Whether a failed query found the database out of reach, so that the same request may succeed later.
 * Only for errors of queries: a partner's refused connection has the same codes, and is a `PesitError` before it gets here.
 */
export const isDatabaseUnavailable = (error: unknown): boolean => {
  if (!isError(error)) return false;
  const code = codeOf(error);
  if (code !== undefined && (UNAVAILABLE_CODES.has(code) || code.startsWith('08'))) return true;
  return UNAVAILABLE_MESSAGES.test(error.message) || error.name === 'KnexTimeoutError';
};

/** A row with this key exists already (SQLSTATE 23505); `constraint` narrows it to one. */
export const isUniqueViolation = (error: unknown, constraint?: string): boolean =>
  codeOf(error) === '23505' &&
  (constraint === undefined || (error as { readonly constraint?: string }).constraint === constraint);

/** A row is still referred to, or refers to nothing (SQLSTATE 23503). */
export const isForeignKeyViolation = (error: unknown): boolean => codeOf(error) === '23503';

/** Text or number that PostgreSQL cannot store: NUL in text, number out of range. The request was wrong, not the service. */
export const isUnstorableValue = (error: unknown): boolean =>
  ['22021', '22P05', '22003', '22007', '22008', '22001'].includes(codeOf(error) ?? '');

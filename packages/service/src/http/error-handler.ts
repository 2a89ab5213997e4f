import type { ErrorRequestHandler, Request, RequestHandler, Response } from 'express';

import { isDatabaseUnavailable, isUniqueViolation, isUnstorableValue } from '../database/faults.js';
import { API_ERRORS, ApiError, conflict, unavailable } from '../errors.js';
import type { ApiErrorCode } from '../errors.js';
import type { Logger } from '../logging.js';
import { isError } from '@pesit-node/ground';
import type { ErrorBody } from './error-body.js';
import { answerEarly } from './rest-of-body.js';

/** The path as it was asked for, without its query. */
export const pathOf = (req: Request): string => req.originalUrl.split('?', 1)[0] ?? '/';

const CODE_OF_STATUS = new Map<number, ApiErrorCode>(
  (
    [
      'VALIDATION_ERROR',
      'UNAUTHORIZED',
      'FORBIDDEN',
      'NOT_FOUND',
      'METHOD_NOT_ALLOWED',
      'CONFLICT',
      'PAYLOAD_TOO_LARGE',
      'UNSUPPORTED_MEDIA_TYPE',
      'UNPROCESSABLE',
      'TOO_MANY_REQUESTS',
    ] as const
  ).map((code) => [API_ERRORS[code].status, code]),
);

const number = (value: unknown): string => (typeof value === 'number' ? String(value) : 'an unknown number');

/** The message of a parser of JSON, without the piece of the body that it quotes: there may be a secret in it. */
const withoutContent = (message: string): string => message.replace(/, (?:\.\.\.)?".*$/s, '').slice(0, 200);

/** Refuses what could not even be read: `(body)` or `(path)` is at fault as a whole. */
const unreadable = (field: '(body)' | '(path)', text: string, cause?: unknown): ApiError =>
  new ApiError('VALIDATION_ERROR', text, { details: [{ field, message: text }], cause });

/** Codes of zlib and of Brotli in Node.js. */
const isOfDecompression = (code: unknown): boolean => typeof code === 'string' && /^(?:Z_|ERR_|ZSTD_)/.test(code);

/** Errors of Express and its body parser carry `status`, `type`, and figures. */
const fromExpress = (error: Error & { readonly status?: unknown; readonly type?: unknown }): ApiError | undefined => {
  const details = error as unknown as Readonly<Record<string, unknown>>;
  switch (error.type) {
    case 'entity.too.large':
      return new ApiError(
        'PAYLOAD_TOO_LARGE',
        `The body is too large: at most ${number(details['limit'])} bytes are accepted (http.max-body)`,
      );
    case 'entity.parse.failed':
      return unreadable('(body)', `The body is not a JSON object: ${withoutContent(error.message)}`);
    case 'charset.unsupported':
    case 'encoding.unsupported':
      return new ApiError(
        'UNSUPPORTED_MEDIA_TYPE',
        `${error.message}: expected UTF-8, with gzip, deflate, br or no encoding`,
      );
  }
  if (error instanceof URIError) {
    return unreadable('(path)', `The path is not UTF-8 with percent-encoding: ${error.message}`);
  }
  if (error.status === 400 && isOfDecompression(details['code'])) {
    return unreadable('(body)', 'The body is not in the encoding that Content-Encoding names, or not whole', error);
  }
  const code = typeof error.status === 'number' ? CODE_OF_STATUS.get(error.status) : undefined;
  return code === undefined ? undefined : new ApiError(code, error.message, { cause: error });
};

const toApiError = (error: unknown): ApiError => {
  if (error instanceof ApiError) return error;
  if (isDatabaseUnavailable(error)) return unavailable('The database is not available: try again', 5, error);
  if (isUniqueViolation(error))
    return conflict('Another object has this name or identifier already: choose another one', { cause: error });
  if (isUnstorableValue(error)) {
    // The driver's message begins with the whole statement.
    const message =
      'A value cannot be stored: expected text without NUL, and numbers and times that the database can hold';
    return new ApiError('VALIDATION_ERROR', message, { cause: error });
  }
  const known = isError(error) ? fromExpress(error) : undefined;
  return (
    known ??
    new ApiError('INTERNAL_ERROR', 'Something went wrong here: the log of the service has the reason', { cause: error })
  );
};

const bodyOf = (error: ApiError, req: Request): ErrorBody => ({
  error: error.code,
  message: error.message,
  path: pathOf(req),
  timestamp: new Date().toISOString(),
  ...(error.details === undefined ? {} : { details: [...error.details] }),
  ...(error.diagnostic === undefined ? {} : { diagnostic: error.diagnostic }),
});

export const sendError = (error: ApiError, req: Request, res: Response): void => {
  // The handler may have set the content type already, before it failed.
  res.status(error.status).type('json').set(error.headers);
  answerEarly(req, res, JSON.stringify(bodyOf(error, req)));
};

/** Last of the middlewares. Logs every fault that is not the caller's in full; the answer never has a stack. */
export const errorHandler =
  (logger: Logger): ErrorRequestHandler =>
  (thrown: unknown, req, res, next) => {
    const error = toApiError(thrown);
    if (error.status >= 500) {
      const bindings = { err: error.cause ?? error, requestId: res.get('X-Request-Id'), path: pathOf(req) };
      if (error.code === 'INTERNAL_ERROR') logger.error(bindings, 'request failed');
      else logger.warn(bindings, 'request not served');
    }
    if (res.headersSent) {
      // Too late for an answer: Express ends the connection.
      next(thrown);
      return;
    }
    sendError(error, req, res);
  };

export const notFoundHandler: RequestHandler = (req) => {
  throw new ApiError('NOT_FOUND', `There is nothing at ${pathOf(req)}: GET /openapi.json lists what there is`);
};

import type { Request, RequestHandler } from 'express';
import { Passport } from 'passport';

import { ApiError } from '../errors.js';
import { parseBasic, Rfc7617BasicStrategy } from './basic-strategy.js';
import type { VerifyCredentials } from './basic-strategy.js';
import { LoginAttempt } from './login-guard.js';
import type { LoginGuard } from './login-guard.js';
import type { VerifyApiKey } from './logins.js';
import { rememberCheck } from './still-in.js';

/**
 * Lets requests with the right credentials pass, answers 401 with a challenge otherwise, and 429 to a user that failed too often
 * from this address. A request without credentials is a question, not a failure. `X-API-Key` is looked at where there is no
 * `Authorization`.
 */
export const basicAuth = (verify: VerifyCredentials, guard: LoginGuard, apiKey: VerifyApiKey): RequestHandler => {
  const passport = new Passport();
  passport.use(new Rfc7617BasicStrategy(verify));
  return (req, res, next) => {
    const attempt = attemptOf(req);
    const seconds = attempt === undefined ? 0 : guard.refusedFor(attempt);
    if (seconds > 0) {
      next(tooMany(seconds));
      return;
    }
    const done = (error: unknown, user?: unknown): void => {
      if (error !== null && error !== undefined) {
        next(error);
      } else if (user !== undefined && user !== false) {
        if (attempt !== undefined) guard.succeeded(attempt);
        req.user = user as Express.User;
        rememberCheck(req, () => {
          const given = apiKeyOf(req);
          if (given !== undefined) return apiKey(given);
          const credentials = parseBasic(req.headers.authorization);
          return credentials && verify(credentials.username, credentials.password, req.ip ?? 'unknown');
        });
        next();
      } else {
        const blocked = attempt === undefined ? 0 : guard.failed(attempt);
        next(blocked > 0 ? tooMany(blocked) : wrong(attempt !== undefined));
      }
    };
    const key = apiKeyOf(req);
    if (key !== undefined) {
      done(null, apiKey(key));
      return;
    }
    // With a callback passport decides nothing itself: no session, no body of its own.
    (passport.authenticate('basic', { session: false }, done) as RequestHandler)(req, res, next);
  };
};

const API_KEY_HEADER = 'x-api-key';

/** Undefined: none, or it does not count. */
const apiKeyOf = ({ headers }: Request): string | undefined =>
  headers.authorization === undefined && headers[API_KEY_HEADER] !== undefined
    ? String(headers[API_KEY_HEADER])
    : undefined;

/** Whether a caller gives credentials, right or wrong. */
export const givesCredentials = ({ headers }: Request): boolean =>
  headers.authorization !== undefined || headers[API_KEY_HEADER] !== undefined;

/** Undefined: no credentials were given. */
const attemptOf = (req: Request): LoginAttempt | undefined => {
  if (!givesCredentials(req)) return undefined;
  const user = apiKeyOf(req) === undefined ? (parseBasic(req.headers.authorization)?.username ?? '') : 'X-API-Key';
  return new LoginAttempt(req.ip ?? 'unknown', user);
};

const tooMany = (seconds: number): ApiError =>
  new ApiError(
    'TOO_MANY_REQUESTS',
    `Too many failed logins of this user from this address: try again in ${seconds} s`,
    { headers: { 'Retry-After': String(seconds) } },
  );

const wrong = (given: boolean): ApiError =>
  new ApiError(
    'UNAUTHORIZED',
    given
      ? 'Wrong user name or password, not HTTP Basic, or wrong X-API-Key'
      : 'Log in with HTTP Basic (admin.username, admin.users) or X-API-Key (admin.api-key)',
    { headers: { 'WWW-Authenticate': Rfc7617BasicStrategy.CHALLENGE } },
  );

import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

import type { Request, RequestHandler } from 'express';
import { Passport } from 'passport';

import type { CommonConfig } from '../config/keys.js';
import { ApiError } from '../errors.js';
import { parseBasic, Rfc7617BasicStrategy } from './basic-strategy.js';
import type { VerifyCredentials } from './basic-strategy.js';
import type { LoginAttempt, LoginGuard } from './login-guard.js';

/** An admin: compares with `admin.username` and `admin.password` in constant time, whatever differs and wherever. */
export const configuredAdmin = (config: Pick<CommonConfig, 'admin.username' | 'admin.password'>): VerifyCredentials => {
  const key = randomBytes(32);
  const digest = (text: string): Buffer => createHmac('sha256', key).update(text.normalize('NFC')).digest();
  return (givenName, givenPassword) => {
    const nameFits = timingSafeEqual(digest(givenName), digest(config['admin.username']));
    const passwordFits = timingSafeEqual(digest(givenPassword), digest(config['admin.password']));
    return nameFits && passwordFits ? { username: givenName, role: 'admin' } : undefined;
  };
};

/**
 * Lets requests with the right credentials pass, answers 401 with a challenge otherwise, and 429 to a user that failed too often
 * from this address. A request without credentials is a question, not a failure.
 */
export const basicAuth = (verify: VerifyCredentials, guard: LoginGuard): RequestHandler => {
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
        next();
      } else {
        const blocked = attempt === undefined ? 0 : guard.failed(attempt);
        next(blocked > 0 ? tooMany(blocked) : wrong(attempt !== undefined));
      }
    };
    // With a callback passport decides nothing itself: no session, no body of its own.
    (passport.authenticate('basic', { session: false }, done) as RequestHandler)(req, res, next);
  };
};

/** Undefined: no credentials were given. */
const attemptOf = (req: Request): LoginAttempt | undefined => {
  const { authorization } = req.headers;
  if (authorization === undefined) return undefined;
  return { address: req.ip ?? 'unknown', user: parseBasic(authorization)?.username ?? '' };
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
      ? 'Wrong user name or password, or not HTTP Basic'
      : 'Log in with HTTP Basic (admin.username, admin.password)',
    { headers: { 'WWW-Authenticate': Rfc7617BasicStrategy.CHALLENGE } },
  );

import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

import type { RequestHandler } from 'express';
import { ipKeyGenerator } from 'express-rate-limit';
import { Passport } from 'passport';

import type { CommonConfig } from '../config/keys.js';
import { ApiError } from '../errors.js';
import { Rfc7617BasicStrategy } from './basic-strategy.js';
import type { VerifyCredentials } from './basic-strategy.js';
import type { FailureLimiter } from './failure-limiter.js';

/** Compares with `admin.username` and `admin.password` in constant time, whatever differs and wherever. */
export const configuredAdmin = (config: Pick<CommonConfig, 'admin.username' | 'admin.password'>): VerifyCredentials => {
  const key = randomBytes(32);
  const digest = (text: string): Buffer => createHmac('sha256', key).update(text.normalize('NFC')).digest();
  const username = digest(config['admin.username']);
  const password = digest(config['admin.password']);
  return (givenName, givenPassword) => {
    const nameFits = timingSafeEqual(digest(givenName), username);
    const passwordFits = timingSafeEqual(digest(givenPassword), password);
    return nameFits && passwordFits;
  };
};

/**
 * Lets requests with the right credentials pass, answers 401 with a challenge otherwise, and 429 to an address that failed
 * too often. A request without credentials is a question, not a failure.
 */
export const basicAuth = (verify: VerifyCredentials, limiter: FailureLimiter): RequestHandler => {
  const passport = new Passport();
  passport.use(new Rfc7617BasicStrategy(verify));
  return (req, res, next) => {
    // IPv6: one subscriber has a whole network to send from.
    const address = ipKeyGenerator(req.ip ?? 'unknown');
    const seconds = limiter.blockedFor(address);
    if (seconds > 0) {
      const message = `Too many failed logins from this address: try again in ${seconds} s`;
      next(new ApiError('TOO_MANY_REQUESTS', message, { headers: { 'Retry-After': String(seconds) } }));
      return;
    }
    const done = (error: unknown, user?: unknown): void => {
      if (error !== null && error !== undefined) {
        next(error);
        return;
      }
      if (user !== undefined && user !== false) {
        req.user = user as Express.User;
        next();
        return;
      }
      const given = req.headers.authorization !== undefined;
      if (given) limiter.failed(address);
      const message = given
        ? 'Wrong user name or password, or not HTTP Basic'
        : 'Log in with HTTP Basic (admin.username, admin.password)';
      const headers = { 'WWW-Authenticate': Rfc7617BasicStrategy.CHALLENGE };
      next(new ApiError('UNAUTHORIZED', message, { headers }));
    };
    // With a callback passport decides nothing itself: no session, no body of its own.
    (passport.authenticate('basic', { session: false }, done) as RequestHandler)(req, res, next);
  };
};

import { unavailable } from '@pesit-node/service';
import type { HealthComponent } from '@pesit-node/service';
import type { RequestHandler } from 'express';

import type { LicenseKeeper } from './keeper.js';
import { WARNING_DAYS } from './state.js';
import type { LicenseStatus } from './state.js';

export const LICENSE_PATH = '/api/v1/license';
export const EXTEND_PATH = `${LICENSE_PATH}/extend-evaluation`;

/** As Express matches them: in any case, with or without a slash at the end. */
const OPEN = /^(?:\/api\/v1\/license(?:\/extend-evaluation)?|\/actuator\/health(?:\/[a-z]+)?)\/?$/i;

/** The 402 of the specification (Errors), with the fields that every error body has. */
export interface LicenseRequiredBody {
  readonly error: 'LICENSE_REQUIRED';
  readonly message: string;
  readonly licenseUrl: typeof LICENSE_PATH;
  readonly path: string;
  /** ISO 8601 UTC. */
  readonly timestamp: string;
}

type Known = Pick<LicenseKeeper, 'status'>;

/**
 * Answers 402 to everything but the license endpoints and the probes while the license does not allow more, and 503 before it
 * was read. Mount it behind the login (401 comes before 402) and before anything of the body is read.
 */
export const licenseGate =
  (license: Known): RequestHandler =>
  (req, res, next) => {
    const { status } = license;
    if (status !== undefined) {
      if (status.daysUntilExpiration <= WARNING_DAYS) {
        res.setHeader('X-License-Days-Remaining', status.daysUntilExpiration);
      }
      if (!status.blocked) {
        next();
        return;
      }
    }
    if (OPEN.test(req.path)) {
      next();
      return;
    }
    if (status === undefined) {
      next(unavailable('The license has not been read yet: try again'));
      return;
    }
    const body: LicenseRequiredBody = {
      error: 'LICENSE_REQUIRED',
      message: status.message,
      licenseUrl: LICENSE_PATH,
      path: req.originalUrl.split('?', 1)[0] ?? '/',
      timestamp: new Date().toISOString(),
    };
    res.status(402).json(body);
  };

const modeOf = ({ blocked, evaluation }: LicenseStatus): string =>
  blocked ? 'BLOCKED' : evaluation ? 'EVALUATION' : 'VALID';

/**
 * For `HealthRegistry`: component `license`, DOWN only until it was read once. A blocked service stays ready, so that a
 * license can be installed through the Kubernetes service.
 */
export const licenseHealth = ({ status }: Known): HealthComponent => ({
  status: status === undefined ? 'DOWN' : status.blocked ? 'BLOCKED' : 'UP',
  details:
    status === undefined
      ? { license: 'UNKNOWN', reason: 'not read yet' }
      : { license: modeOf(status), daysRemaining: status.daysUntilExpiration, reason: status.message },
});

import type { Express } from 'express';

import type { AppName } from '../config/keys.js';
import { unavailable } from '../errors.js';
import { HealthRegistry } from '../health/registry.js';
import { Metrics } from '../metrics/metrics.js';
import { createHttpApp } from './app.js';
import type { HttpAppOptions } from './app.js';

export interface StartingAppOptions extends Pick<HttpAppOptions, 'config' | 'info' | 'logger'> {
  readonly app: AppName;
}

/**
 * The app that answers at the port until the service is put together: it lives, is not ready, and everything else is 503. So the port is
 * taken first, and a port that is in use is noticed before a database is started.
 */
export const startingApp = ({ app, config, info, logger }: StartingAppOptions): Express => {
  const health = new HealthRegistry();
  health.register('startup', () => ({ status: 'DOWN', details: { reason: 'the database is being opened' } }), {
    readiness: true,
  });
  return createHttpApp({
    ...{ config, info, logger, health },
    metrics: new Metrics({ app, version: info.version, logger }),
    gate: (_req, _res, next) => next(unavailable('The service is starting: try again')),
    routes: () => undefined,
  });
};

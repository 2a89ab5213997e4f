import { Router } from 'express';
import type { Response } from 'express';

import { endpoint } from '../http/validate.js';
import { resource } from '../http/resource.js';
import type { HealthRegistry, HealthReport } from './registry.js';

const answer = (res: Response, report: HealthReport): void => {
  res
    .status(report.status === 'UP' ? 200 : 503)
    .set('Cache-Control', 'no-store')
    .json(report);
};

/** The probes, open without login. */
export const healthRoutes = (health: HealthRegistry): Router => {
  const router = Router();
  resource(router, '/actuator/health', {
    get: endpoint({}, async ({ res }) => answer(res, await health.health())),
  });
  resource(router, '/actuator/health/liveness', {
    get: endpoint({}, ({ res }) => answer(res, { status: 'UP', components: {} })),
  });
  resource(router, '/actuator/health/readiness', {
    get: endpoint({}, async ({ res }) => answer(res, await health.readiness())),
  });
  return router;
};

export interface ServiceInfo {
  readonly name: string;
  readonly version: string;
}

/** `/actuator/info`: name, version, and the version of Node. */
export const infoRoutes = ({ name, version }: ServiceInfo): Router => {
  const router = Router();
  resource(router, '/actuator/info', {
    get: endpoint({}, ({ res }) => {
      res.json({ name, version, node: process.version });
    }),
  });
  return router;
};

import { Router } from 'express';

import { endpoint } from '../http/validate.js';
import { resource } from '../http/resource.js';
import type { Metrics } from './metrics.js';

/** The metrics, under the paths of both editions of the interface. */
export const metricsRoutes = (metrics: Metrics): Router => {
  const router = Router();
  resource(router, ['/actuator/prometheus', '/metrics'], {
    get: endpoint({}, async ({ res }) => {
      const text = await metrics.scrape();
      res.set({ 'Content-Type': metrics.contentType, 'Cache-Control': 'no-store' }).send(text);
    }),
  });
  return router;
};

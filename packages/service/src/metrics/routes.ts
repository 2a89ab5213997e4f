import { ANY_QUERY, endpoint } from '../http/validate.js';
import type { Access, Routes } from '../http/routes.js';
import type { Metrics } from './metrics.js';

/** The metrics, under the paths of both editions of the interface. */
export const metricsRoutes = (routes: Routes, metrics: Metrics, access: Access): void => {
  routes.resource(['/actuator/prometheus', '/metrics'], {
    get: endpoint(
      {
        summary: 'Metrics',
        description: 'Each is explained in docs/metrics.md.',
        access,
        query: ANY_QUERY,
        answers: { 200: { contentType: 'application/openmetrics-text', description: 'OpenMetrics 1.0.' } },
      },
      async ({ res }) => {
        const text = await metrics.scrape();
        res.set('Content-Type', metrics.contentType).send(text);
      },
    ),
  });
};

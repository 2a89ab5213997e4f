import type { Response } from 'express';
import { z } from 'zod';

import { ANY_QUERY, endpoint } from '../http/validate.js';
import type { Access, Routes } from '../http/routes.js';
import type { HealthRegistry, HealthReport } from './registry.js';

const answer = (res: Response, report: HealthReport): void => {
  res.status(report.status === 'UP' ? 200 : 503).json(report);
};

const report = z
  .object({
    status: z.enum(['UP', 'DOWN']),
    components: z.record(
      z.string(),
      z.object({
        status: z
          .enum(['UP', 'DOWN', 'BLOCKED'])
          .meta({ description: 'BLOCKED: works, but the license lets it not serve.' }),
        details: z.record(z.string(), z.unknown()).optional(),
      }),
    ),
  })
  .meta({ id: 'Health' });

const probe = (summary: string) =>
  ({ summary, access: 'open', query: ANY_QUERY, answers: { 200: report, 503: report } }) as const;

/** The probes, open without login. */
export const healthRoutes = (routes: Routes, health: HealthRegistry): void => {
  routes.resource('/actuator/health', {
    get: endpoint(probe('All components'), async ({ res }) => answer(res, await health.health())),
  });
  routes.resource('/actuator/health/liveness', {
    get: endpoint(
      { summary: 'Whether the process answers', access: 'open', query: ANY_QUERY, answers: { 200: report } },
      ({ res }) => answer(res, { status: 'UP', components: {} }),
    ),
  });
  routes.resource('/actuator/health/readiness', {
    get: endpoint(probe('Whether work can be sent here'), async ({ res }) => answer(res, await health.readiness())),
  });
};

export interface ServiceInfo {
  readonly name: string;
  readonly version: string;
}

const information = z
  .object({
    name: z.string(),
    version: z.string(),
    node: z.string().meta({ description: 'Version of Node.js.' }),
  })
  .meta({ id: 'Info' });

/** `/actuator/info`: name, version, and the version of Node. */
export const infoRoutes = (routes: Routes, { name, version }: ServiceInfo, access: Access): void => {
  routes.resource('/actuator/info', {
    get: endpoint({ summary: 'What runs here', access, query: ANY_QUERY, answers: { 200: information } }, ({ res }) => {
      res.json({ name, version, node: process.version });
    }),
  });
};

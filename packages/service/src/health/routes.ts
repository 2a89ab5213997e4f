import type { Request, RequestHandler, Response } from 'express';
import { z } from 'zod';

import { ANY_QUERY, endpoint } from '../http/validate.js';
import type { Access, Routes } from '../http/routes.js';
import type { KeyWithoutEffect } from '../config/unused.js';
import { isError, reasonOf } from '../thrown.js';
import { statusAlone } from './registry.js';
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
        details: z
          .record(z.string(), z.unknown())
          .optional()
          .meta({ description: 'Reasons, names and counts; with a login alone.' }),
      }),
    ),
  })
  .meta({ id: 'Health' });

const probe = (summary: string) =>
  ({
    summary,
    description: 'Without a login the components with their status alone.',
    access: 'open',
    query: ANY_QUERY,
    answers: {
      200: report,
      503: report,
      401: 'A login was given, and is wrong.',
      429: 'A login was given, after too many wrong ones: see Retry-After.',
    },
  }) as const;

/** Whether the caller has logged in. @throws {ApiError} when credentials were given that are wrong */
const hasLoggedIn = async (login: RequestHandler, req: Request, res: Response): Promise<boolean> => {
  if (req.headers.authorization === undefined) return false;
  await new Promise<void>((resolve, reject) => {
    void login(req, res, (error?: unknown) => {
      if (error === undefined) resolve();
      else reject(isError(error) ? error : new Error(reasonOf(error)));
    });
  });
  return true;
};

/** The probes, open without login; who has one sees the reasons. */
export const healthRoutes = (routes: Routes, health: HealthRegistry, login: RequestHandler): void => {
  const show = async (
    { req, res }: { readonly req: Request; readonly res: Response },
    read: () => Promise<HealthReport>,
  ): Promise<void> => {
    const isKnown = await hasLoggedIn(login, req, res);
    const whole = await read();
    answer(res, isKnown ? whole : statusAlone(whole));
  };
  routes.resource('/actuator/health', {
    get: endpoint(probe('All components'), (input) => show(input, () => health.health())),
  });
  routes.resource('/actuator/health/liveness', {
    get: endpoint(
      { summary: 'Whether the process answers', access: 'open', query: ANY_QUERY, answers: { 200: report } },
      ({ res }) => answer(res, { status: 'UP', components: {} }),
    ),
  });
  routes.resource('/actuator/health/readiness', {
    get: endpoint(probe('Whether work can be sent here'), (input) => show(input, () => health.readiness())),
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
    keysWithoutEffect: z
      .array(z.object({ key: z.string(), reason: z.string() }))
      .meta({ description: 'Keys of the configuration that are set and do nothing, and why.' }),
  })
  .meta({ id: 'Info' });

/** `/actuator/info`: name, version, the version of Node, and what is configured for nothing. */
export const infoRoutes = (
  routes: Routes,
  { name, version }: ServiceInfo,
  access: Access,
  keysWithoutEffect: () => readonly KeyWithoutEffect[],
): void => {
  routes.resource('/actuator/info', {
    get: endpoint(
      {
        summary: 'Name and versions of the service, and keys without effect',
        access,
        query: ANY_QUERY,
        answers: { 200: information },
      },
      ({ res }) => {
        res.json({ name, version, node: process.version, keysWithoutEffect: keysWithoutEffect() });
      },
    ),
  });
};

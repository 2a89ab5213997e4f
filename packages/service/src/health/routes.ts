import type { Request, RequestHandler, Response } from 'express';
import { z } from 'zod';

import { givesCredentials } from '../auth/basic-auth.js';
import { ANY_QUERY, endpoint } from '../http/validate.js';
import type { Access, Routes } from '../http/routes.js';
import type { KeyWithoutEffect } from '../config/unused.js';
import type { PeriodicStatus } from '../periodic/periodic-work.js';
import { isError, reasonOf } from '@pesit-node/ground';
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

/** Answers of routes that need no login. */
const WRONG_LOGIN = {
  401: 'A login was given, and is wrong.',
  429: 'A login was given, after too many wrong ones: see Retry-After.',
} as const;

const probe = (summary: string) =>
  ({
    summary,
    description: 'Without a login the components with their status alone.',
    access: 'open',
    query: ANY_QUERY,
    answers: {
      200: report,
      503: report,
      ...WRONG_LOGIN,
    },
  }) as const;

/** Whether the caller has logged in. @throws {ApiError} when credentials were given that are wrong */
const hasLoggedIn = async (login: RequestHandler, req: Request, res: Response): Promise<boolean> => {
  if (!givesCredentials(req)) return false;
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
    periodicWork: z
      .array(
        z.object({
          name: z.string(),
          running: z.boolean(),
          lastEnd: z.iso.datetime().nullable().meta({ description: 'Null before the first run ended.' }),
          failure: z.string().nullable().meta({ description: 'Why the last run failed; null when it did not.' }),
          failures: z.int().min(0).meta({ description: 'Runs that failed in a row.' }),
        }),
      )
      .optional()
      .meta({ description: 'What this process does again and again by itself; with a login alone.' }),
  })
  .meta({ id: 'Info' });

export interface InfoRoutesOptions {
  readonly info: ServiceInfo;
  readonly access: Access;
  /** Checks a login where `access` asks for none. */
  readonly login: RequestHandler;
  readonly keysWithoutEffect: () => readonly KeyWithoutEffect[];
  readonly periodicWork: () => readonly PeriodicStatus[];
}

/** `/actuator/info`: name, version, the version of Node, what is configured for nothing, and what happens by itself. */
export const infoRoutes = (
  routes: Routes,
  { info: { name, version }, access, login, keysWithoutEffect, periodicWork }: InfoRoutesOptions,
): void => {
  const isOpen = access === 'open';
  const answers = { 200: information, ...(isOpen ? WRONG_LOGIN : {}) };
  routes.resource('/actuator/info', {
    get: endpoint(
      {
        summary: 'Name and versions of the service, keys without effect, periodic work',
        access,
        query: ANY_QUERY,
        answers,
      },
      async ({ req, res }) => {
        const shown = { name, version, node: process.version, keysWithoutEffect: keysWithoutEffect() };
        // Reasons name directories and hosts.
        const isKnown = !isOpen || (await hasLoggedIn(login, req, res));
        res.json(isKnown ? { ...shown, periodicWork: periodicWork().map(shownStatus) } : shown);
      },
    ),
  });
};

const shownStatus = ({ name, running, lastEnd, failure, failures }: PeriodicStatus) => ({
  ...{ name, running, failures },
  lastEnd: lastEnd?.toISOString() ?? null,
  failure: failure ?? null,
});

/** An app with a few routes, and what it has logged. */
import { z } from 'zod';

import {
  ApiError,
  conflict,
  createHttpApp,
  endpoint,
  HealthRegistry,
  notBuiltYet,
  unavailable,
} from '@pesit-node/service';
import type { HttpAppOptions } from '@pesit-node/service';
import { captureLog, testConfig, testMetrics } from '@pesit-node/service/testing';

export const ANSWERS = { summary: 'Answers', answers: { 200: 'ok' } } as const;

export const build = (overrides: Partial<HttpAppOptions> = {}) => {
  const log = captureLog();
  const health = new HealthRegistry();
  const app = createHttpApp({
    config: testConfig('server', { 'data.directory': '/nowhere', 'http.max-body': 1024 }),
    info: { name: 'pesit-server', version: '1.2.3' },
    logger: log.logger,
    health,
    metrics: testMetrics('server'),
    routes: (routes) => {
      routes.resource('/api/v1/things', {
        get: endpoint(ANSWERS, ({ res }) => res.json([])),
        post: endpoint(
          { ...ANSWERS, body: z.strictObject({ name: z.string(), sizes: z.array(z.int()).optional() }) },
          ({ body, res }) => res.status(201).location(`/api/v1/things/${body.name}`).json(body),
        ),
      });
      routes.resource('/api/v1/things/file', {
        post: endpoint({ ...ANSWERS, upload: z.strictObject({}) }, async ({ req, res }) => {
          let size = 0;
          for await (const piece of req) size += (piece as Buffer).length;
          res.json({ size });
        }),
      });
      routes.resource('/api/v1/things/act', { post: endpoint(ANSWERS, ({ res }) => res.json({})) });
      routes.resource('/api/v1/things/:id', {
        get: endpoint(ANSWERS, ({ req }) => {
          switch (req.params['id']) {
            case 'conflict':
              throw conflict('It runs', { diagnostic: '3-304' });
            case 'unbuilt':
              throw notBuiltYet('ebcdic');
            case 'later':
              throw unavailable('The queue is full', 7);
            case 'remote':
              throw new ApiError('TIMEOUT', 'The partner was silent for 30 s', { diagnostic: '3-311' });
            default:
              throw new Error('secret inside');
          }
        }),
      });
    },
    ...overrides,
  });
  return { app, health, log };
};

export const auth = { Authorization: `Basic ${Buffer.from('admin:admin').toString('base64')}` };

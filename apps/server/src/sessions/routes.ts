import { callerOf, endpoint } from '@pesit-node/service';
import type { Routes } from '@pesit-node/service';
import { z } from 'zod';

import { serverId } from '../schemas.js';
import { sessionList } from './schema.js';
import type { SessionService } from './service.js';

const BELOW = ['/api/v1/servers/:serverId/sessions', '/api/servers/:serverId/sessions'];

export const sessionRoutes = (routes: Routes, sessions: SessionService): void => {
  routes.resource(BELOW, {
    get: endpoint(
      {
        summary: 'The sessions of a listener, on all pods',
        params: z.strictObject({ serverId: serverId() }),
        answers: { 200: sessionList, 404: 'There is no such listener.' },
      },
      async ({ params, res }) => {
        res.json(await sessions.list(params.serverId));
      },
    ),
  });
  routes.resource(
    BELOW.map((path) => `${path}/:sessionId`),
    {
      delete: endpoint(
        {
          summary: 'Ends a session, on whatever pod it runs',
          description:
            'The partner hears ABORT 3-316. A file that runs is FAILED, and can be restarted; one whose end was being made last completes.',
          role: 'operator',
          audit: ['session', 'ended'],
          params: z.strictObject({ serverId: serverId(), sessionId: z.string().min(1).max(100) }),
          answers: { 204: 'Ended.', 404: 'There is no such session.', 503: 'A pod that may have it did not answer.' },
        },
        async ({ params, req, res }) => {
          await sessions.end(params.serverId, params.sessionId, callerOf(req));
          res.status(204).end();
        },
      ),
    },
  );
};

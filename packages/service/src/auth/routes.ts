import { z } from 'zod';

import type { ServiceInfo } from '../health/routes.js';
import { endpoint } from '../http/validate.js';
import type { Routes } from '../http/routes.js';
import { loginOf, ROLES } from './roles.js';

const login = z
  .object({
    username: z.string(),
    role: z.enum(ROLES),
    name: z.string().meta({ description: 'Of this service, as in `/actuator/info`.' }),
    version: z.string(),
    peerUrl: z.string().nullable().meta({ description: '`console.peer-url`: where the console of the other app is.' }),
  })
  .meta({ id: 'Login' });

/** `/api/v1/login`: who asks, with which role, and of which service. */
export const loginRoutes = (
  routes: Routes,
  { name, version }: ServiceInfo,
  peerUrl: () => string | undefined,
): void => {
  routes.resource('/api/v1/login', {
    get: endpoint({ summary: 'Who asks, with which role', answers: { 200: login } }, ({ req, res }) => {
      const { username, role } = loginOf(req) ?? { username: '', role: 'viewer' as const };
      res.json({ username, role, name, version, peerUrl: peerUrl() || null });
    }),
  });
};

import { endpoint, timestamp } from '@pesit-node/service';
import type { Routes } from '@pesit-node/service';
import { z } from 'zod';

import type { Cluster } from './cluster.js';

const PATHS = ['/api/v1/cluster/status', '/api/cluster/status'];

const member = z
  .object({
    name: z.string(),
    address: z.string().nullable().meta({ description: 'Host and port of its REST interface.' }),
    isLeader: z.boolean(),
    app: z.enum(['server', 'client']),
    version: z.string().nullable(),
    ready: z.boolean().nullable().meta({ description: 'Its readiness, some seconds old for other pods.' }),
    notReadyReason: z.string().nullable().meta({ description: 'Why it is not ready; null when it is.' }),
    sessions: z
      .int()
      .nullable()
      .meta({ description: 'PeSIT sessions that it has open, some seconds old for other pods.' }),
    startedAt: timestamp(),
  })
  .meta({ id: 'ClusterMember', description: 'A pod; null: it has not said so yet.' });

const status = z
  .object({
    enabled: z
      .boolean()
      .meta({ description: '`cluster.enabled`; without it the pod that answers is the only member.' }),
    clusterName: z.string(),
    nodeName: z.string().meta({ description: 'Name of the pod that answers.' }),
    isLeader: z.boolean().meta({ description: 'Whether the pod that answers is the leader.' }),
    members: z.array(member).meta({ description: 'Oldest first.' }),
    memberCount: z.int(),
    redis: z
      .object({
        connected: z.boolean(),
        since: timestamp().meta({ description: 'Since when it is connected, or is not.' }),
      })
      .nullable()
      .meta({ description: 'Connection of the pod that answers to Redis; null where there is none.' }),
  })
  .meta({ id: 'ClusterStatus' });

const overview = status
  .omit({ nodeName: true, isLeader: true, redis: true })
  .extend({ members: z.array(member).meta({ description: 'Those of the server app first, each app oldest first.' }) })
  .meta({ id: 'ClusterOverview' });

export const clusterRoutes = (routes: Routes, cluster: Pick<Cluster, 'status' | 'overview'>): void => {
  routes.resource('/api/v1/cluster', {
    get: endpoint(
      {
        summary: 'The pods of both apps in the cluster',
        description: 'Without `cluster.enabled` the pod that answers alone.',
        answers: { 200: overview },
      },
      async ({ res }) => {
        res.json(await cluster.overview());
      },
    ),
  });
  routes.resource(PATHS, {
    get: endpoint(
      { summary: 'The pods of this app in the cluster, and which of them leads', answers: { 200: status } },
      async ({ res }) => {
        res.json(await cluster.status());
      },
    ),
  });
};

import { count, endpoint, fieldRoutes, identifier, notFound, timestamp } from '@pesit-node/service';
import type { Routes } from '@pesit-node/service';
import { z } from 'zod';

import type { ListAvailable } from '../files/available.js';
import { VIRTUAL_FILES } from './service.js';
import type { VirtualFileService } from './service.js';
import { VIRTUAL_FILE_USES } from './uses.js';

export const virtualFileRoutes = (
  routes: Routes,
  service: VirtualFileService,
  /** `cluster.name` */
  cluster: string,
  available: ListAvailable,
): void => {
  const { operation, handle } = fieldRoutes(routes, {
    ...{ ...VIRTUAL_FILES, service, computed: () => ({}), uses: VIRTUAL_FILE_USES },
    answers: { 422: 'A field whose behaviour this version does not have.' },
  });
  routes.resource('/api/v1/config/files/:fileId/available', {
    get: endpoint(
      {
        summary: 'The files that a partner would be sent by this virtual file now',
        description:
          'In the order in which one SELECT after the other would get them: the file named as the virtual file each time again; else those that are new to the partner and that it is not reading, the oldest first.',
        params: z.strictObject({ fileId: z.string() }),
        query: z.strictObject({
          partnerId: identifier(24),
          serverId: identifier(24)
            .optional()
            .meta({ description: 'Its `sendDirectory` counts where the virtual file has none.' }),
          size: count(1, 500, 20),
        }),
        answers: {
          200: z.object({
            content: z.array(
              z.object({
                name: z.string().meta({ examples: ['invoices-0401.csv'] }),
                size: z.int().meta({ description: 'Bytes.', examples: [48_213] }),
                modified: timestamp(),
                fault: z
                  .string()
                  .nullable()
                  .meta({
                    description: 'Why the SELECT that comes to this file would be refused; null: it would be sent.',
                    examples: [null],
                  }),
              }),
            ),
            more: z.boolean().meta({ description: 'There are others behind them.', examples: [false] }),
          }),
          404: 'There is no such virtual file, partner or listener.',
          409: 'A SELECT would be refused, for which `diagnostic` is the PeSIT diagnostic; or the partner has no session.',
        },
      },
      async ({ params: { fileId }, query, res }) => {
        res.json(await available(fileId, query));
      },
    ),
  });
  routes.resource('/api/v1/clusters/:clusterId/virtual-files', {
    post: {
      operation: {
        ...operation,
        summary: 'Creates a virtual file of this cluster',
        params: z.strictObject({ clusterId: z.string() }),
        answers: { ...operation.answers, 404: 'This pod is in no such cluster.' },
      },
      handle: (req, res, next) => {
        const { clusterId } = req.params;
        if (clusterId !== cluster) throw notFound('Cluster', String(clusterId), '/api/v1/cluster/status');
        return handle(req, res, next);
      },
    },
  });
};

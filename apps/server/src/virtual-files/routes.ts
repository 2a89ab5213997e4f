import { fieldRoutes, notFound } from '@pesit-node/service';
import type { ChangeAudit, EventStream, Routes } from '@pesit-node/service';
import { z } from 'zod';

import type { Directories } from '../files/directories.js';
import { VIRTUAL_FILE } from './fields.js';
import { VIRTUAL_FILE_USES } from './uses.js';
import type { VirtualFileStore } from './store.js';

export const virtualFileRoutes = (
  routes: Routes,
  store: VirtualFileStore,
  directories: Directories,
  events: EventStream,
  audit: ChangeAudit,
  /** `cluster.name` */
  cluster: string,
): void => {
  const { operation, handle } = fieldRoutes(routes, {
    path: '/api/v1/config/files',
    fields: VIRTUAL_FILE,
    store,
    computed: () => ({}),
    uses: VIRTUAL_FILE_USES,
    admit: ({ receiveDirectory, sendDirectory, sendFile }) =>
      directories.admit([
        { field: 'receiveDirectory', path: receiveDirectory, create: true },
        { field: 'sendDirectory', path: sendDirectory, create: sendFile === undefined },
        // It may name one file, which need not be there yet.
        { field: 'sendFile', path: sendFile, create: false },
      ]),
    answers: { 422: 'A field whose behaviour this version does not have.' },
    ...{ events, audit },
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

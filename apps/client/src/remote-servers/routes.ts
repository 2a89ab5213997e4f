import { endpoint, resource, rowId } from '@pesit-node/service';
import type { IRouter } from 'express';
import { z } from 'zod';

import { createRemoteServer, updateRemoteServer } from './schema.js';
import type { RemoteServerService } from './service.js';

const params = z.strictObject({ id: rowId() });

export const remoteServerRoutes = (router: IRouter, servers: RemoteServerService): void => {
  resource(router, '/api/v1/servers', {
    get: endpoint({}, async ({ res }) => res.json(await servers.list())),
    post: endpoint({ body: createRemoteServer }, async ({ body, res }) => {
      const server = await servers.create(body);
      res.status(201).location(`/api/v1/servers/${server.id}`).json(server);
    }),
  });
  resource(router, '/api/v1/servers/:id', {
    get: endpoint({ params }, async ({ params: { id }, res }) => res.json(await servers.get(id))),
    put: endpoint({ params, body: updateRemoteServer }, async ({ params: { id }, body, res }) =>
      res.json(await servers.update(id, body)),
    ),
    delete: endpoint({ params }, async ({ params: { id }, res }) => {
      await servers.remove(id);
      res.status(204).end();
    }),
  });
  resource(router, '/api/v1/servers/:id/test', {
    post: endpoint({ params }, async ({ params: { id }, res }) => res.json(await servers.test(id))),
  });
};

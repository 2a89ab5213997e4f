import { callerOf, deletionQuery, endpoint, IN_USE, listAnswer, listed, rowId } from '@pesit-node/service';
import type { Routes } from '@pesit-node/service';
import { connectionTest } from '@pesit-node/transfers';
import { z } from 'zod';

import { REMOTE_SERVER } from './fields.js';
import { FORCED_REMOVAL } from './service.js';
import type { RemoteServerService } from './service.js';

const { create, update, answer } = REMOTE_SERVER;

const params = z.strictObject({ id: rowId() });

const NOT_FOUND = { 404: 'There is no such remote server.' };
const UNBUILT = { 422: 'A field whose behaviour this version does not have.' };

export const remoteServerRoutes = (routes: Routes, servers: RemoteServerService): void => {
  routes.resource('/api/v1/servers', {
    get: endpoint(
      { summary: 'All remote servers', query: REMOTE_SERVER.list, answers: { 200: listAnswer(answer) } },
      async ({ query, res }) => {
        const { rows, total } = await servers.list(query);
        res.json(listed(query, total, rows));
      },
    ),
    post: endpoint(
      {
        summary: 'Creates a remote server',
        body: create,
        answers: { 201: answer, 409: 'The name is taken, or there is no such store.', ...UNBUILT },
      },
      async ({ body, req, res }) => {
        const server = await servers.create(body, callerOf(req));
        res.status(201).location(`/api/v1/servers/${server.id}`).json(server);
      },
    ),
  });
  routes.resource('/api/v1/servers/:id', {
    get: endpoint(
      { summary: 'A remote server', params, answers: { 200: answer, ...NOT_FOUND } },
      async ({ params: { id }, res }) => res.json(await servers.get(id)),
    ),
    put: endpoint(
      {
        summary: 'Changes a remote server',
        params,
        body: update,
        answers: { 200: answer, ...NOT_FOUND, 409: 'The name is taken, or there is no such store.', ...UNBUILT },
      },
      async ({ params: { id }, body, req, res }) => res.json(await servers.update(id, body, callerOf(req))),
    ),
    delete: endpoint(
      {
        summary: 'Removes a remote server',
        params,
        query: deletionQuery(FORCED_REMOVAL),
        answers: { 204: 'Removed.', ...NOT_FOUND, 409: IN_USE },
      },
      async ({ params: { id }, query: { force = false }, req, res }) => {
        await servers.remove(id, force, callerOf(req));
        res.status(204).end();
      },
    ),
  });
  routes.resource('/api/v1/servers/:id/close-circuit', {
    post: endpoint(
      {
        summary: 'Closes the circuit of a remote server: its transfers go again',
        role: 'operator',
        audit: ['remote server', 'circuit closed'],
        params,
        answers: { 200: answer, ...NOT_FOUND },
      },
      async ({ params: { id }, res }) => res.json(await servers.closeCircuit(id)),
    ),
  });
  routes.resource('/api/v1/servers/:id/test', {
    post: endpoint(
      {
        summary: 'Opens a PeSIT session and releases it',
        audit: ['remote server', 'tested'],
        role: 'operator',
        params,
        answers: { 200: connectionTest, ...NOT_FOUND },
      },
      async ({ params: { id }, res }) => res.json(await servers.test(id)),
    ),
  });
};

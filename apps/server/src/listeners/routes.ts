import { endpoint, refuseUnbuilt } from '@pesit-node/service';
import type { Config, Routes } from '@pesit-node/service';
import { z } from 'zod';

import { columnsOf } from '../configured-store.js';
import type { Directories } from '../directories.js';
import { renames, serverId } from '../schemas.js';
import { createListener, listenerAnswer, listenerOutcome, listenerStatus, updateListener } from './schema.js';
import type { UpdateListener } from './schema.js';
import { renamed } from './service.js';
import type { ListenerService, ListenerView } from './service.js';
import type { ListenerValues } from './store.js';

const PATH = '/api/v1/servers';
/** One page of the specification leaves the version out. */
const PATHS = [PATH, '/api/servers'];
const below = (rest: string) => PATHS.map((path) => `${path}/:serverId${rest}`);

const NOT_FOUND = { 404: 'There is no such listener.' };
const UNBUILT = { 422: 'A field whose behaviour this version does not have.' };

type Defaults = Pick<
  Config<'server'>,
  'transfer.max-entity-size' | 'transfer.sync-point-interval' | 'transfer.sync-window'
>;

const statusOf = ({
  row,
  status,
  statusReason,
  activeConnections,
  refusedConnections,
  uptime,
  nextAttemptAt,
}: ListenerView): z.output<typeof listenerStatus> => ({
  serverId: row.server_id,
  status,
  statusReason: statusReason ?? null,
  nextAttemptAt: nextAttemptAt?.toISOString() ?? null,
  port: row.port,
  // TLS is not built yet: no TLS port is ever open.
  tlsPort: null,
  activeConnections,
  refusedConnections,
  totalTransfers: row.total_transfers,
  uptime,
});

const toListener = (view: ListenerView, defaults: Defaults): z.output<typeof listenerAnswer> => ({
  ...statusOf(view),
  sslEnabled: false,
  sslClientAuth: false,
  autoStart: view.row.auto_start,
  maxConnections: view.row.max_connections,
  readTimeout: view.row.read_timeout,
  receiveDirectory: view.row.receive_directory,
  sendDirectory: view.row.send_directory,
  strictServerId: view.row.strict_server_id,
  tcpipHeader: view.row.tcpip_header,
  maxEntitySize: view.row.max_entity_size ?? defaults['transfer.max-entity-size'],
  syncInterval: view.row.sync_interval ?? defaults['transfer.sync-point-interval'],
  syncWindow: view.row.sync_window ?? defaults['transfer.sync-window'],
});

const COLUMNS = {
  port: 'port',
  autoStart: 'auto_start',
  maxConnections: 'max_connections',
  readTimeout: 'read_timeout',
  receiveDirectory: 'receive_directory',
  sendDirectory: 'send_directory',
  strictServerId: 'strict_server_id',
  tcpipHeader: 'tcpip_header',
  maxEntitySize: 'max_entity_size',
  syncInterval: 'sync_interval',
  syncWindow: 'sync_window',
} as const satisfies Partial<Record<keyof UpdateListener, keyof ListenerValues>>;

const valuesOf = (body: UpdateListener): Partial<ListenerValues> => columnsOf(body, COLUMNS);

const DEFAULTS: ListenerValues = {
  port: 6502,
  auto_start: true,
  max_connections: 100,
  read_timeout: 60_000,
  receive_directory: null,
  send_directory: null,
  strict_server_id: false,
  tcpip_header: 'auto',
  max_entity_size: null,
  sync_interval: null,
  sync_window: null,
};

export const listenerRoutes = (
  routes: Routes,
  listeners: ListenerService,
  directories: Directories,
  defaults: Defaults,
): void => {
  const params = z.strictObject({ serverId: serverId() });

  const admit = async (body: UpdateListener): Promise<void> => {
    refuseUnbuilt(body, { tlsPort: [], sslEnabled: [false], sslClientAuth: [false, 'false'] });
    await directories.admit([
      { field: 'receiveDirectory', path: body.receiveDirectory, create: true },
      { field: 'sendDirectory', path: body.sendDirectory, create: true },
    ]);
  };

  routes.resource(PATHS, {
    get: endpoint({ summary: 'All listeners', answers: { 200: z.array(listenerAnswer) } }, async ({ res }) => {
      res.json((await listeners.list()).map((view) => toListener(view, defaults)));
    }),
    post: endpoint(
      {
        summary: 'Creates a listener; it is not started',
        body: createListener,
        answers: { 201: listenerAnswer, 409: 'It exists already.', ...UNBUILT },
      },
      async ({ body, res }) => {
        await admit(body);
        const view = await listeners.create(body.serverId, { ...DEFAULTS, ...valuesOf(body) });
        res
          .status(201)
          .location(`${PATH}/${encodeURIComponent(body.serverId)}`)
          .json(toListener(view, defaults));
      },
    ),
  });

  routes.resource(below(''), {
    get: endpoint(
      { summary: 'A listener', params, answers: { 200: listenerAnswer, ...NOT_FOUND } },
      async ({ params: { serverId: id }, res }) => {
        res.json(toListener(await listeners.get(id), defaults));
      },
    ),
    put: endpoint(
      {
        summary: 'Changes a listener',
        description: 'New sessions have the new settings; another port is taken at once.',
        params,
        body: updateListener,
        answers: { 200: listenerAnswer, ...NOT_FOUND, 409: 'The port cannot be had.', ...UNBUILT },
      },
      async ({ params: { serverId: id }, body, res }) => {
        if (renames([body.serverId], id)) throw renamed(id);
        await listeners.get(id);
        await admit(body);
        res.json(toListener(await listeners.update(id, valuesOf(body)), defaults));
      },
    ),
    delete: endpoint(
      { summary: 'Stops and deletes a listener', params, answers: { 204: 'Deleted.', ...NOT_FOUND } },
      async ({ params: { serverId: id }, res }) => {
        await listeners.delete(id);
        res.status(204).end();
      },
    ),
  });

  routes.resource(below('/start'), {
    post: endpoint(
      {
        summary: 'Starts a listener',
        params,
        answers: { 200: listenerOutcome, ...NOT_FOUND, 409: 'The port cannot be had.' },
      },
      async ({ params: { serverId: id }, res }) => {
        const outcome = await listeners.start(id);
        res.json({ ...statusOf(outcome), message: outcome.message });
      },
    ),
  });
  routes.resource(below('/stop'), {
    post: endpoint(
      {
        summary: 'Stops a listener',
        description: 'STOPPING while running transfers come to their end.',
        params,
        answers: { 200: listenerOutcome, ...NOT_FOUND },
      },
      async ({ params: { serverId: id }, res }) => {
        const outcome = await listeners.stop(id);
        res.json({ ...statusOf(outcome), message: outcome.message });
      },
    ),
  });
  routes.resource(below('/status'), {
    get: endpoint(
      { summary: 'What a listener does now', params, answers: { 200: listenerStatus, ...NOT_FOUND } },
      async ({ params: { serverId: id }, res }) => {
        res.json(statusOf(await listeners.get(id)));
      },
    ),
  });
};

import { callerOf, deletionQuery, endpoint, IN_USE, listAnswer, listed } from '@pesit-node/service';
import type { Routes } from '@pesit-node/service';
import { z } from 'zod';

import { serverId } from '../schemas.js';
import type { SessionService } from '../sessions/service.js';
import { LISTENER } from './fields.js';
import type { ListenerRequests } from './requests.js';
import { LISTENER_USES } from './uses.js';
import type { ListenerService, ListenerView } from './service.js';

const PATH = '/api/v1/servers';
/** One page of the specification leaves the version out. */
const PATHS = [PATH, '/api/servers'];
const below = (rest: string) => PATHS.map((path) => `${path}/:serverId${rest}`);

const NOT_FOUND = { 404: 'There is no such listener.' };
const UNBUILT = { 422: 'A field whose behaviour this version does not have.' };

const { create, update, answer } = LISTENER;

/** State of a listener at the moment. */
const listenerStatus = answer
  .pick({
    ...{ serverId: true, status: true, statusReason: true, wanted: true, nextAttemptAt: true },
    ...{ port: true, tlsPort: true, maxBytesPerSecond: true },
    ...{ activeConnections: true, refusedConnections: true, totalTransfers: true, uptime: true, pods: true },
  })
  .meta({ id: 'ListenerStatus' });
const listenerOutcome = listenerStatus.extend({ message: z.string() }).meta({ id: 'ListenerOutcome' });

const iso = (time: Date | null): string | null => time?.toISOString() ?? null;

const toListener = (view: ListenerView): z.output<typeof answer> => {
  const { row, status, statusReason, nextAttemptAt, sessions, refused, uptime } = view;
  return LISTENER.view(row, {
    ...{ status, statusReason, nextAttemptAt: iso(nextAttemptAt) },
    ...{ activeConnections: sessions, refusedConnections: refused },
    uptime,
    pods: view.pods.map((line) => ({
      ...{ name: line.pod, status: line.status, statusReason: line.statusReason },
      nextAttemptAt: iso(line.nextAttemptAt),
      ...{ activeConnections: line.sessions, refusedConnections: line.refused, since: iso(line.since) },
    })),
  });
};

const statusOf = (view: ListenerView): z.output<typeof listenerStatus> => {
  const { serverId, status, statusReason, wanted, nextAttemptAt, port, tlsPort, ...more } = toListener(view);
  const { maxBytesPerSecond, activeConnections, refusedConnections, totalTransfers, uptime, pods } = more;
  return {
    ...{ serverId, status, statusReason, wanted, nextAttemptAt, port, tlsPort, maxBytesPerSecond },
    ...{ activeConnections, refusedConnections, totalTransfers, uptime, pods },
  };
};

export interface ListenerRoutesDeps {
  readonly listeners: ListenerService;
  readonly listenerRequests: ListenerRequests;
  readonly sessions: Pick<SessionService, 'endAll'>;
}

export const listenerRoutes = (
  routes: Routes,
  { listeners, listenerRequests: requests, sessions }: ListenerRoutesDeps,
): void => {
  const params = z.strictObject({ serverId: serverId() });

  routes.resource(PATHS, {
    get: endpoint(
      { summary: 'All listeners', query: LISTENER.list, answers: { 200: listAnswer(answer) } },
      async ({ query, res }) => {
        const { rows, total } = await listeners.list(query);
        res.json(listed(query, total, rows.map(toListener)));
      },
    ),
    post: endpoint(
      {
        summary: 'Creates a listener, and starts it unless `autoStart` or `start` is false',
        description: 'FAILED, with the reason, when its port cannot be taken: it is tried again by itself.',
        query: z.strictObject({ start: z.enum(['true', 'false']).default('true') }),
        body: create,
        answers: { 201: answer, 409: 'It exists already, or names a store that does not.', ...UNBUILT },
      },
      async ({ query, body, req, res }) => {
        const view = await requests.create(body, query.start === 'true', callerOf(req));
        res
          .status(201)
          .location(`${PATH}/${encodeURIComponent(body.serverId)}`)
          .json(toListener(view));
      },
    ),
  });

  routes.resource(below(''), {
    get: endpoint(
      { summary: 'A listener', params, answers: { 200: answer, ...NOT_FOUND } },
      async ({ params: { serverId: id }, res }) => {
        res.json(toListener(await listeners.get(id)));
      },
    ),
    put: endpoint(
      {
        summary: 'Changes a listener',
        description: 'New sessions have the new settings, on every pod; another port is taken at once.',
        params,
        body: update,
        answers: { 200: answer, ...NOT_FOUND, 409: 'The port cannot be taken, or there is no such store.', ...UNBUILT },
      },
      async ({ params: { serverId: id }, body, req, res }) => {
        res.json(toListener(await requests.change(id, body, callerOf(req))));
      },
    ),
    delete: endpoint(
      {
        summary: 'Deletes a listener on every pod',
        params,
        query: deletionQuery(LISTENER_USES.forced),
        answers: { 204: 'Deleted.', ...NOT_FOUND, 409: IN_USE },
      },
      async ({ params: { serverId: id }, query: { force = false }, req, res }) => {
        await listeners.delete(id, force, callerOf(req));
        res.status(204).end();
      },
    ),
  });

  routes.resource(below('/start'), {
    post: endpoint(
      {
        summary: 'Starts a listener on every pod',
        role: 'operator',
        audit: ['listener', 'started'],
        recorded: true,
        description: 'Answered when this pod has it; `message` and `pods` say what the others do.',
        params,
        answers: { 200: listenerOutcome, ...NOT_FOUND, 409: 'The port cannot be taken, or there is no such store.' },
      },
      async ({ params: { serverId: id }, req, res }) => {
        const outcome = await listeners.start(id, callerOf(req));
        res.json({ ...statusOf(outcome), message: outcome.message });
      },
    ),
  });
  routes.resource(below('/stop'), {
    post: endpoint(
      {
        summary: 'Stops a listener on every pod',
        role: 'operator',
        audit: ['listener', 'stopped'],
        recorded: true,
        description:
          'STOPPING while running transfers come to their end. It stays stopped until it is started. With `force` its sessions end at once (ABORT 3-316).',
        params,
        query: z.strictObject({ force: z.enum(['true', 'false']).default('false') }),
        answers: { 200: listenerOutcome, ...NOT_FOUND },
      },
      async ({ params: { serverId: id }, query, req, res }) => {
        const force = async (): Promise<void> => sessions.endAll(id, callerOf(req));
        const outcome = await listeners.stop(id, callerOf(req), query.force === 'true' ? force : undefined);
        res.json({ ...statusOf(outcome), message: outcome.message });
      },
    ),
  });
  routes.resource(below('/restart'), {
    post: endpoint(
      {
        summary: 'Restarts a listener on every pod',
        role: 'operator',
        audit: ['listener', 'restarted'],
        recorded: true,
        description: 'Sessions end as when it is stopped; the port is taken again at once.',
        params,
        answers: { 200: listenerOutcome, ...NOT_FOUND, 409: 'It is stopped, or the port cannot be taken.' },
      },
      async ({ params: { serverId: id }, req, res }) => {
        const outcome = await listeners.restart(id, callerOf(req));
        res.json({ ...statusOf(outcome), message: outcome.message });
      },
    ),
  });
  routes.resource(below('/status'), {
    get: endpoint(
      { summary: 'Status and sessions of a listener', params, answers: { 200: listenerStatus, ...NOT_FOUND } },
      async ({ params: { serverId: id }, res }) => {
        res.json(statusOf(await listeners.get(id)));
      },
    ),
  });
};

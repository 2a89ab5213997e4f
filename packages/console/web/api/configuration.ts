/** What is configured: partners, virtual files and listeners of the server app, remote servers of the client app. */
import { answerOf, clientApp, rowsOf, serverApp } from './rest.ts';
import type { components as ClientParts, paths as ClientPaths } from './generated/client.ts';
import type { components as ServerParts, paths as ServerPaths } from './generated/server.ts';

type Server = ServerParts['schemas'];
type Client = ClientParts['schemas'];
export type Partner = Server['Partner'];
export type VirtualFile = Server['VirtualFile'];
export type Listener = Server['Listener'];
export type Session = Server['Session'];
export type RemoteServer = Client['RemoteServer'];
export type ConnectionTest = Client['ConnectionTest'];
export type PartnerTest = Server['PartnerTest'];

/** A body that a form has made: its fields are those of the document. */
export type Body = Readonly<Record<string, unknown>>;

export interface Rows<Row> {
  readonly content: readonly Row[];
  readonly total: number;
}

export interface Asked {
  readonly q: string;
  readonly page: number;
  /** Value of the one filter that the list has; empty: any. */
  readonly filter: string;
}

/** The verbs of one kind of resource. */
export interface Resource<Row> {
  readonly list: (asked: Asked, signal?: AbortSignal) => Promise<Rows<Row>>;
  readonly read: (id: string, signal?: AbortSignal) => Promise<Row>;
  readonly create: (body: Body) => Promise<Row>;
  readonly change: (id: string, body: Body) => Promise<Row>;
  /** @param force also while it is in use */
  readonly remove: (id: string, force: boolean) => Promise<unknown>;
}

export const PAGE_SIZE = 20;
/** More are not offered to choose from. */
const MOST = 500;

const query = ({ q, page }: Asked, filter: Readonly<Record<string, string>>) => ({
  ...{ page: String(page), size: String(PAGE_SIZE) },
  ...(q === '' ? {} : { q }),
  ...filter,
});

const filterBy = (name: string, value: string): Readonly<Record<string, string>> =>
  value === '' ? {} : { [name]: value };

const rows = <Row>(answer: readonly Row[] | { readonly content: readonly Row[]; readonly totalElements: number }) => ({
  content: rowsOf(answer),
  total: 'totalElements' in answer ? answer.totalElements : answer.length,
});

const asking = (signal: AbortSignal | undefined) => (signal === undefined ? {} : { signal });
const forced = (force: boolean) => (force ? { query: { force: 'true' as const } } : {});

type FileQuery = NonNullable<ServerPaths['/api/v1/config/files']['get']['parameters']['query']>;
type ServerQuery = NonNullable<ClientPaths['/api/v1/servers']['get']['parameters']['query']>;

export const partners: Resource<Partner> = {
  list: async (asked, signal) => {
    const params = { query: query(asked, filterBy('enabled', asked.filter)) };
    return rows(await answerOf(serverApp.GET('/api/v1/config/partners', { params, ...asking(signal) })));
  },
  read: (partnerId, signal) =>
    answerOf(
      serverApp.GET('/api/v1/config/partners/{partnerId}', { params: { path: { partnerId } }, ...asking(signal) }),
    ),
  create: (body) => answerOf(serverApp.POST('/api/v1/config/partners', { body: body as Server['CreatePartner'] })),
  change: (partnerId, body) =>
    answerOf(serverApp.PUT('/api/v1/config/partners/{partnerId}', { params: { path: { partnerId } }, body })),
  remove: (partnerId, force) =>
    answerOf(
      serverApp.DELETE('/api/v1/config/partners/{partnerId}', { params: { path: { partnerId }, ...forced(force) } }),
    ),
};

export const files: Resource<VirtualFile> = {
  list: async (asked, signal) => {
    const params = { query: query(asked, filterBy('direction', asked.filter)) as FileQuery };
    return rows(await answerOf(serverApp.GET('/api/v1/config/files', { params, ...asking(signal) })));
  },
  read: (fileId, signal) =>
    answerOf(serverApp.GET('/api/v1/config/files/{fileId}', { params: { path: { fileId } }, ...asking(signal) })),
  create: (body) => answerOf(serverApp.POST('/api/v1/config/files', { body: body as Server['CreateVirtualFile'] })),
  change: (fileId, body) =>
    answerOf(serverApp.PUT('/api/v1/config/files/{fileId}', { params: { path: { fileId } }, body })),
  remove: (fileId, force) =>
    answerOf(serverApp.DELETE('/api/v1/config/files/{fileId}', { params: { path: { fileId }, ...forced(force) } })),
};

export const listeners: Resource<Listener> = {
  list: async (asked, signal) => {
    const params = { query: query(asked, filterBy('wanted', asked.filter)) };
    return rows(await answerOf(serverApp.GET('/api/v1/servers', { params, ...asking(signal) })));
  },
  read: (serverId, signal) =>
    answerOf(serverApp.GET('/api/v1/servers/{serverId}', { params: { path: { serverId } }, ...asking(signal) })),
  create: (body) => answerOf(serverApp.POST('/api/v1/servers', { body: body as Server['CreateListener'] })),
  change: (serverId, body) =>
    answerOf(serverApp.PUT('/api/v1/servers/{serverId}', { params: { path: { serverId } }, body })),
  remove: (serverId, force) =>
    answerOf(serverApp.DELETE('/api/v1/servers/{serverId}', { params: { path: { serverId }, ...forced(force) } })),
};

export const remoteServers: Resource<RemoteServer> = {
  list: async (asked, signal) => {
    const params = { query: query(asked, filterBy('status', asked.filter)) as ServerQuery };
    return rows(await answerOf(clientApp.GET('/api/v1/servers', { params, ...asking(signal) })));
  },
  read: (id, signal) =>
    answerOf(clientApp.GET('/api/v1/servers/{id}', { params: { path: { id } }, ...asking(signal) })),
  create: (body) => answerOf(clientApp.POST('/api/v1/servers', { body: body as Client['CreateRemoteServer'] })),
  change: (id, body) => answerOf(clientApp.PUT('/api/v1/servers/{id}', { params: { path: { id } }, body })),
  remove: (id, force) =>
    answerOf(clientApp.DELETE('/api/v1/servers/{id}', { params: { path: { id }, ...forced(force) } })),
};

/** All that there are, to choose from. */
export const allFiles = async (signal: AbortSignal): Promise<readonly VirtualFile[]> =>
  rowsOf(await answerOf(serverApp.GET('/api/v1/config/files', { params: { query: { size: String(MOST) } }, signal })));

export const allListeners = async (signal: AbortSignal): Promise<readonly Listener[]> =>
  rowsOf(await answerOf(serverApp.GET('/api/v1/servers', { signal })));

export type ListenerVerb = 'start' | 'stop' | 'restart';

/** @param force `stop`: without waiting for what runs on it */
export const commandListener = async (serverId: string, verb: ListenerVerb, force: boolean): Promise<void> => {
  const path = { serverId };
  if (verb === 'start') await answerOf(serverApp.POST('/api/v1/servers/{serverId}/start', { params: { path } }));
  else if (verb === 'restart') {
    await answerOf(serverApp.POST('/api/v1/servers/{serverId}/restart', { params: { path } }));
  } else {
    await answerOf(serverApp.POST('/api/v1/servers/{serverId}/stop', { params: { path, ...forced(force) } }));
  }
};

export type Sessions = Server['SessionList'];

export const sessionsOf = (serverId: string, signal: AbortSignal): Promise<Sessions> =>
  answerOf(serverApp.GET('/api/v1/servers/{serverId}/sessions', { params: { path: { serverId } }, signal }));

export const endSession = (serverId: string, sessionId: string): Promise<unknown> =>
  answerOf(
    serverApp.DELETE('/api/v1/servers/{serverId}/sessions/{sessionId}', { params: { path: { serverId, sessionId } } }),
  );

export const testConnection = (id: string): Promise<ConnectionTest> =>
  answerOf(clientApp.POST('/api/v1/servers/{id}/test', { params: { path: { id } } }));

/** Tries the login of a partner, by a session of the service with itself. @param virtualFile whether the partner may use it is looked at */
export const testPartner = (
  partnerId: string,
  body: { readonly password: string; readonly serverId: string; readonly virtualFile: string },
): Promise<PartnerTest> =>
  answerOf(serverApp.POST('/api/v1/config/partners/{partnerId}/test', { params: { path: { partnerId } }, body }));

export const closeCircuit = (id: string): Promise<unknown> =>
  answerOf(clientApp.POST('/api/v1/servers/{id}/close-circuit', { params: { path: { id } } }));

/** Of a partner, or of a remote server. @param minutes 0: off */
export const switchTrace = async (kind: 'partner' | 'remoteServer', id: string, minutes: number): Promise<void> => {
  const body = { minutes };
  if (kind === 'partner') {
    const params = { path: { partnerId: id } };
    await answerOf(serverApp.PUT('/api/v1/config/partners/{partnerId}/trace', { params, body }));
  } else await answerOf(clientApp.PUT('/api/v1/servers/{id}/trace', { params: { path: { id } }, body }));
};

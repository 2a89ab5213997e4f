/** Transfers of both apps, in the one shape that the pages show. */
import { answerOf, clientApp, serverApp } from './rest.ts';
import { app } from './session.ts';
import type { components as ClientParts, paths as ClientPaths } from './generated/client.ts';
import type { components as ServerParts } from './generated/server.ts';

type ServerTransfer = ServerParts['schemas']['Transfer'];
type ClientTransfer = ClientParts['schemas']['Transfer'];
export type ServerDetail = ServerParts['schemas']['TransferDetail'];
export type ClientDetail = ClientParts['schemas']['TransferDetail'];
export type Progress = ServerParts['schemas']['TransferProgress'];
export type Attempt = ServerDetail['attemptList'][number] | ClientDetail['attemptList'][number];

export type Status = ServerTransfer['status'];
export type Direction = ServerTransfer['direction'];

/** A record as a list shows it. */
export interface Transfer {
  readonly id: string;
  readonly type: 'FILE' | 'MESSAGE';
  readonly status: Status;
  readonly direction: Direction;
  /** The partner, or the remote server. */
  readonly peer: string;
  readonly virtualFile: string | null;
  readonly filename: string | null;
  /** PI 37. */
  readonly label: string | null;
  readonly size: number | null;
  readonly bytes: number;
  /** Began, or was asked for. */
  readonly since: string;
  readonly ended: string | null;
  /** Milliseconds. */
  readonly duration: number | null;
  readonly diagnostic: string | null;
  readonly reason: string | null;
  readonly restartable: boolean;
  readonly nextAttempt: string | null;
}

/** Name of a transfer for a person: of its file, else its label, else its number. */
export const nameOf = ({ filename, label, id }: Pick<Transfer, 'filename' | 'label' | 'id'>): string =>
  filename ?? label ?? `#${id}`;

export interface Page {
  readonly content: readonly Transfer[];
  readonly total: number;
  readonly totalIsExact: boolean;
  readonly next: string | null;
}

/** Of both interfaces, by their names there; an absent one asks for all. */
export type Filters = Readonly<Partial<Record<FilterName, string>>>;
export const FILTERS = [
  'status',
  'direction',
  'peer',
  'virtualFile',
  'type',
  'diagnostic',
  'restartable',
  'from',
  'to',
  'node',
  'q',
] as const;
export type FilterName = (typeof FILTERS)[number];

type ClientQuery = NonNullable<ClientPaths['/api/v1/transfers/history']['get']['parameters']['query']>;

const ofServer = (one: ServerTransfer): Transfer => ({
  ...{ id: String(one.id), type: one.type, status: one.status, direction: one.direction, peer: one.partnerId },
  ...{
    virtualFile: one.virtualFileId,
    filename: one.filename,
    label: one.label,
    size: one.size,
    bytes: one.bytesTransferred,
  },
  ...{ since: one.startTime, ended: one.endTime, duration: one.duration, diagnostic: one.diagnostic },
  ...{ reason: one.errorMessage, restartable: one.restartable, nextAttempt: null },
});

const ofClient = (one: ClientTransfer): Transfer => ({
  ...{ id: one.id, type: one.type, status: one.status, direction: one.direction, peer: one.serverName },
  ...{
    virtualFile: one.virtualFile,
    filename: one.filename,
    label: one.label,
    size: one.size,
    bytes: one.bytesTransferred,
  },
  ...{ since: one.startTime ?? one.createdTime, ended: one.endTime, duration: one.duration },
  ...{ diagnostic: one.diagnostic, reason: one.errorMessage ?? one.statusReason },
  ...{ restartable: one.restartable, nextAttempt: one.nextAttemptAt },
});

/** A record that the app of the page answered or told. */
export const shown = (one: unknown): Transfer =>
  app.value === 'server' ? ofServer(one as ServerTransfer) : ofClient(one as ClientTransfer);

const named = ({ peer, virtualFile, ...rest }: Filters): Record<string, string | undefined> =>
  app.value === 'server'
    ? { ...rest, partnerId: peer, virtualFileId: virtualFile }
    : { ...rest, serverId: peer, virtualFileId: virtualFile };

/** A query without what is not asked. */
const present = (query: Readonly<Record<string, string | undefined>>): Record<string, string> =>
  Object.fromEntries(Object.entries(query).filter((one): one is [string, string] => !!one[1]));

export interface Paging {
  readonly page?: number;
  readonly after?: string;
  readonly size?: number;
  readonly sort?: string;
}

const queryOf = (filters: Filters, { page, after, size = 25, sort }: Paging): Record<string, string> =>
  present({
    ...named(filters),
    size: String(size),
    sort,
    ...(after === undefined ? { page: String(page ?? 0) } : { after }),
  });

export const listTransfers = async (filters: Filters, paging: Paging, signal?: AbortSignal): Promise<Page> => {
  const query = queryOf(filters, paging);
  const options = signal === undefined ? {} : { signal };
  if (app.value === 'server') {
    const page = await answerOf(serverApp.GET('/api/v1/transfers', { params: { query: query }, ...options }));
    const { totalElements: total, totalIsExact, next } = page;
    return { content: page.content.map(ofServer), total, totalIsExact, next };
  }
  const asked = { params: { query: query as ClientQuery }, ...options };
  const page = await answerOf(clientApp.GET('/api/v1/transfers/history', asked));
  const { totalElements: total, totalIsExact, next } = page;
  return { content: page.content.map(ofClient), total, totalIsExact, next };
};

/** Address of the records that the filters leave, as a file. */
export const exportPath = (filters: Filters, kind: 'csv' | 'jsonl'): string =>
  `/api/v1/transfers/export.${kind}?${new URLSearchParams(present(named(filters))).toString()}`;

export const activeTransfers = async (signal: AbortSignal): Promise<readonly Transfer[]> =>
  app.value === 'server'
    ? (await answerOf(serverApp.GET('/api/v1/transfers/active', { signal }))).content.map(ofServer)
    : (await answerOf(clientApp.GET('/api/v1/cluster/transfers', { signal }))).content.map(ofClient);

/** All that is known of a transfer; which app it is from says `app`. */
export type Detail =
  { readonly app: 'server'; readonly of: ServerDetail } | { readonly app: 'client'; readonly of: ClientDetail };

export const readTransfer = async (id: string, signal?: AbortSignal): Promise<Detail> => {
  const options = signal === undefined ? {} : { signal };
  return app.value === 'server'
    ? {
        app: 'server',
        of: await answerOf(serverApp.GET('/api/v1/transfers/{id}', { params: { path: { id } }, ...options })),
      }
    : {
        app: 'client',
        of: await answerOf(clientApp.GET('/api/v1/transfers/{id}', { params: { path: { id } }, ...options })),
      };
};

export const cancelTransfer = async (id: string): Promise<void> => {
  const path = { params: { path: { id } } };
  if (app.value === 'server') await answerOf(serverApp.POST('/api/v1/transfers/{id}/cancel', path));
  else await answerOf(clientApp.POST('/api/v1/transfers/{id}/cancel', path));
};

/** Of the client app. */
export const retryTransfer = async (id: string): Promise<void> => {
  await answerOf(clientApp.POST('/api/v1/transfers/{id}/retry', { params: { path: { id } } }));
};

/** Of the client app. @returns the identifier of the new transfer */
export const replayTransfer = async (id: string): Promise<string> => {
  const made = await answerOf(clientApp.POST('/api/v1/transfers/{id}/replay', { params: { path: { id } } }));
  return made.id;
};

/** Of the client app. */
export const releaseTransfer = async (id: string): Promise<void> => {
  await answerOf(clientApp.POST('/api/v1/transfers/{id}/release', { params: { path: { id } } }));
};

import { DEFAULT_CODE_PAGE } from '@pesit-node/protocol';
import { ApiError, conflict, isUniqueViolation, refuseUnbuilt, validation } from '@pesit-node/service';
import type { Logger } from '@pesit-node/service';

import type { ExchangeSettings } from '../exchange/settings.js';
import type { TestResult } from '../exchange/test-connection.js';
import type { CreateRemoteServer, RemoteServerFields } from './schema.js';
import { leadsElsewhere } from './secrets.js';
import type { SealedColumn } from './secrets.js';
import { productOf } from './seen.js';
import type { RemoteServerRow, RemoteServerStore } from './store.js';

/** What TLS would need; these values ask for none. */
const UNBUILT = { tlsPort: [], tlsEnabled: [false] };

/** A remote server as the interface shows it: without its passwords, defaults of the configuration filled in. */
const view = (row: RemoteServerRow, settings: ExchangeSettings) => ({
  id: row.id,
  name: row.name,
  host: row.host,
  port: row.port,
  tlsPort: null,
  tlsEnabled: false,
  serverId: row.server_id,
  clientId: row.client_id,
  enabled: row.enabled,
  description: row.description,
  maxConnections: row.max_connections ?? settings.maxConnectionsPerHost,
  tcpipHeader: row.dialect,
  maxEntitySize: row.max_entity_size ?? settings.maxEntitySize,
  syncInterval: row.sync_interval ?? settings.syncInterval,
  syncWindow: row.sync_window ?? settings.syncWindow,
  compression: row.compression ?? 'none',
  crc: row.crc ?? false,
  resync: row.resync ?? false,
  ebcdic: row.ebcdic ?? false,
  codePage: row.code_page ?? DEFAULT_CODE_PAGE,
  selectByName: row.select_by_name ?? false,
  multiArticle: row.multi_article ?? true,
  concatenation: row.concatenation ?? true,
  preconnectId: row.preconnect_id,
  recordLength: row.record_length,
  recordFormat: row.record_format,
  text: row.text,
  status: row.status,
  statusReason: row.status_reason,
  lastContact: row.last_contact,
  negotiated: row.negotiated,
  lastSeen: lastSeen(row),
  traceUntil: row.trace_until,
});

/** What its sessions have shown; null before the first. */
const lastSeen = ({ seen, single_article: singleArticle }: RemoteServerRow) =>
  seen.version === undefined
    ? null
    : {
        version: seen.version,
        maxEntitySize: seen.maxEntitySize ?? null,
        freeMessage: seen.freeMessage ?? null,
        singleArticle,
        product: productOf(seen, singleArticle),
      };

export type RemoteServerView = ReturnType<typeof view>;

export interface RemoteServerServiceDeps {
  readonly store: RemoteServerStore;
  readonly settings: ExchangeSettings;
  readonly logger: Logger;
  /** A real CONNECT and RELEASE. */
  readonly test: (server: RemoteServerRow) => Promise<TestResult>;
  /** The server was changed or removed: its idle sessions have the old terms, and its transfers may run now. */
  readonly changed: (id: number) => void;
}

export const serverNotFound = (ref: number | string): ApiError =>
  new ApiError('SERVER_NOT_FOUND', `Remote server ${JSON.stringify(ref)} does not exist: see GET /api/v1/servers`);

/** A password of a pre-connection without its identifier would be kept, and do nothing. */
const requirePreconnection = ({ preconnectPassword }: RemoteServerFields, id: string | null | undefined): void => {
  if (typeof preconnectPassword !== 'string' || typeof id === 'string') return;
  throw validation([{ field: 'preconnectId', message: 'expected beside preconnectPassword' }]);
};

/** Passwords were entered for one destination: whoever leads them elsewhere has to know them. */
const requirePasswords = (body: RemoteServerFields, before: RemoteServerRow): void => {
  const { host = before.host, port = before.port, serverId = before.server_id, clientId = before.client_id } = body;
  const { preconnectId = before.preconnect_id } = body;
  const after = { id: before.id, host, port, server_id: serverId, client_id: clientId, preconnect_id: preconnectId };
  const isCarried = (column: SealedColumn, given: string | null | undefined): boolean =>
    given === undefined && before[column] !== null && leadsElsewhere(column, before, after);
  const message = (of: string): string =>
    `expected again beside another ${of}: the one that is kept was given for ${before.host}:${before.port}; null removes it`;
  const problems = [
    ...(isCarried('password', body.password)
      ? [{ field: 'password', message: message('host, port, serverId or clientId') }]
      : []),
    ...(preconnectId !== null && isCarried('preconnect_password', body.preconnectPassword)
      ? [{ field: 'preconnectPassword', message: message('host, port or preconnectId') }]
      : []),
  ];
  if (problems.length > 0) throw validation(problems);
};

const CHECK_VIOLATION = '23514';
const isStillUsed = (error: unknown): boolean =>
  (error as { readonly code?: unknown }).code === CHECK_VIOLATION &&
  (error as { readonly constraint?: unknown }).constraint === 'transfers_of_a_server';

/** The remote servers: what an administrator may do with them. */
export const remoteServerService = ({ store, settings, logger, test, changed }: RemoteServerServiceDeps) => {
  const nameIsTaken = (error: unknown, name: string | undefined): unknown =>
    isUniqueViolation(error, 'remote_servers_name_unique')
      ? conflict(`A remote server named ${JSON.stringify(name)} exists already`)
      : error;
  const existing = async (id: number): Promise<RemoteServerRow> => {
    const row = await store.find(id);
    if (row === undefined) throw serverNotFound(id);
    return row;
  };

  return {
    list: async (): Promise<RemoteServerView[]> => (await store.list()).map((row) => view(row, settings)),

    get: async (id: number): Promise<RemoteServerView> => view(await existing(id), settings),

    create: async (body: CreateRemoteServer): Promise<RemoteServerView> => {
      refuseUnbuilt(body, UNBUILT);
      requirePreconnection(body, body.preconnectId);
      const defaults = { port: 6502, enabled: true, tcpipHeader: 'length-prefixed' } as const;
      try {
        const row = await store.create({ ...defaults, ...body });
        logger.info({ server: row.name, serverRow: row.id }, 'remote server created');
        return view(row, settings);
      } catch (error) {
        throw nameIsTaken(error, body.name);
      }
    },

    update: async (id: number, body: RemoteServerFields): Promise<RemoteServerView> => {
      refuseUnbuilt(body, UNBUILT);
      try {
        const row = await store.update(id, body, (before) => {
          requirePreconnection(body, body.preconnectId === undefined ? before.preconnect_id : body.preconnectId);
          requirePasswords(body, before);
        });
        if (row === undefined) throw serverNotFound(id);
        logger.info({ server: row.name, serverRow: id, fields: Object.keys(body) }, 'remote server changed');
        changed(id);
        return view(row, settings);
      } catch (error) {
        throw nameIsTaken(error, body.name);
      }
    },

    remove: async (id: number): Promise<void> => {
      try {
        if (!(await store.remove(id))) throw serverNotFound(id);
      } catch (error) {
        if (!isStillUsed(error)) throw error;
        throw conflict('Transfers with this server are pending or running: let them end first');
      }
      logger.info({ serverRow: id }, 'remote server removed');
      changed(id);
    },

    test: async (id: number): Promise<TestResult> => test(await existing(id)),
  };
};

export type RemoteServerService = ReturnType<typeof remoteServerService>;

import type { Certificates } from '@pesit-node/certificates';
import {
  CONFIGURATION_CHANGED,
  conflict,
  isCheckViolation,
  isUniqueViolation,
  notFound,
  refuseUsed,
  useOf,
  validation,
} from '@pesit-node/service';
import type { ApiError, Caller, ChangeAudit, EventStream, Listed, ListQuery } from '@pesit-node/service';
import { productOf } from '@pesit-node/transfers';

import type { TestResult } from '../sessions/test-connection.js';
import { REMOTE_SERVER } from './fields.js';
import type { CreateRemoteServer, RemoteServerChange, RemoteServerRow, RemoteServerView } from './fields.js';
import { leadsElsewhere } from './secrets.js';
import type { SealedColumn } from './secrets.js';
import type { RemoteServerStore, ServerTransfer } from './store.js';

/** Properties that its sessions have shown; null before the first. */
const lastSeen = ({ seen, single_article: singleArticle }: RemoteServerRow) =>
  seen.version === undefined
    ? null
    : {
        version: seen.version,
        maxEntitySize: seen.maxEntitySize ?? null,
        freeMessage: seen.freeMessage ?? null,
        singleArticle,
        product: productOf(singleArticle === null ? seen : { ...seen, singleArticle }),
      };

const circuitOf = (row: RemoteServerRow) => {
  const { circuit_until: until, circuit_opened_time: opened } = row;
  const open = until !== null && until.getTime() <= Date.now() ? ('HALF_OPEN' as const) : ('OPEN' as const);
  return {
    state: until === null ? ('CLOSED' as const) : open,
    failures: row.circuit_failures,
    since: opened?.toISOString() ?? null,
    nextTry: until?.toISOString() ?? null,
    reason: row.circuit_reason,
  };
};

const view = (row: RemoteServerRow): RemoteServerView =>
  REMOTE_SERVER.view(row, { lastSeen: lastSeen(row), circuit: circuitOf(row) });

/** The effect of `force=true`. */
export const FORCED_REMOVAL =
  'transfers with it that wait are cancelled; those that run are told to end, and as long as one does the answer is 409 again.';

const usesOf = (transfers: readonly ServerTransfer[]): readonly string[] => {
  const idsOf = (status: ServerTransfer['status']) =>
    transfers.filter((one) => one.status === status).map(({ id }) => id);
  const word = (count: number): string => (count === 1 ? 'transfer that' : 'transfers that');
  return [
    ...useOf((count) => `${count} ${word(count)} ${count === 1 ? 'runs' : 'run'}`, idsOf('IN_PROGRESS')),
    ...useOf((count) => `${count} ${word(count)} ${count === 1 ? 'waits' : 'wait'}`, idsOf('PENDING')),
  ];
};

export interface RemoteServerServiceDeps {
  readonly store: RemoteServerStore;
  readonly certificates: Pick<Certificates, 'require'>;
  readonly events: EventStream;
  readonly audit: ChangeAudit;
  /** A real CONNECT and RELEASE. */
  readonly test: (server: RemoteServerRow) => Promise<TestResult>;
  /** See `Circuits.close`. */
  readonly closeCircuit: (id: number) => Promise<void>;
  /** Cancels a transfer, unless it has ended. */
  readonly cancel: (id: string) => Promise<unknown>;
  /** The server was changed or removed: its idle sessions have the old terms, and its transfers may run now. */
  readonly changed: (id: number) => void;
}

export const serverNotFound = (ref: number | string): ApiError =>
  notFound('Remote server', ref, '/api/v1/servers', 'SERVER_NOT_FOUND');

/** Passwords were entered for one destination: whoever leads them elsewhere has to know them. */
const requirePasswords = (change: RemoteServerChange, before: RemoteServerRow): void => {
  const { host = before.host, port = before.port, serverId = before.server_id, clientId = before.client_id } = change;
  const { preconnectId = before.preconnect_id } = change;
  const after = { id: before.id, host, port, server_id: serverId, client_id: clientId, preconnect_id: preconnectId };
  const isCarried = (column: SealedColumn, given: string | null | undefined): boolean =>
    given === undefined && before[column] !== null && leadsElsewhere(column, before, after);
  const message = (of: string): string =>
    `expected again beside another ${of}: the one that is kept was given for ${before.host}:${before.port}; null removes it`;
  const problems = [
    ...(isCarried('password', change.password)
      ? [{ field: 'password', message: message('host, port, serverId or clientId') }]
      : []),
    ...(preconnectId !== null && isCarried('preconnect_password', change.preconnectPassword)
      ? [{ field: 'preconnectPassword', message: message('host, port or preconnectId') }]
      : []),
  ];
  if (problems.length > 0) throw validation(problems);
};

/** The remote servers: what an administrator may do with them. */
export const remoteServerService = ({
  store,
  certificates,
  events,
  audit,
  test,
  closeCircuit,
  cancel,
  changed,
}: RemoteServerServiceDeps) => {
  const say = (
    action: 'created' | 'changed' | 'deleted',
    facts: Readonly<Record<string, unknown>>,
    by: Caller | undefined,
  ): void => {
    events.publish(CONFIGURATION_CHANGED, { what: 'remote server', action, facts, by, recorded: true });
  };
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
    list: async (query: ListQuery): Promise<Listed<RemoteServerView>> => {
      const { rows, total } = await store.search(query);
      return { rows: rows.map(view), total };
    },

    get: async (id: number): Promise<RemoteServerView> => view(await existing(id)),

    create: async (body: CreateRemoteServer, by?: Caller): Promise<RemoteServerView> => {
      const asked = REMOTE_SERVER.asked(body);
      await certificates.require(asked);
      try {
        const row = await store.create(asked, audit.change(REMOTE_SERVER, by));
        say('created', { server: row.name, serverRow: row.id }, by);
        return view(row);
      } catch (error) {
        throw nameIsTaken(error, body.name);
      }
    },

    update: async (id: number, body: RemoteServerChange, by?: Caller): Promise<RemoteServerView> => {
      let fields: readonly string[] = [];
      await certificates.require(REMOTE_SERVER.changes(body, await existing(id)));
      try {
        const change = (before: RemoteServerRow): RemoteServerChange => {
          const changes = REMOTE_SERVER.changes(body, before);
          requirePasswords(changes, before);
          fields = Object.keys(changes);
          return changes;
        };
        const row = await store.update(id, change, audit.change(REMOTE_SERVER, by));
        if (row === undefined) throw serverNotFound(id);
        if (fields.length > 0) {
          say('changed', { server: row.name, serverRow: id, fields }, by);
          changed(id);
        }
        return view(row);
      } catch (error) {
        throw nameIsTaken(error, body.name);
      }
    },

    /** @param force ends the transfers with it: those that run are told to, and may keep it for a while */
    remove: async (id: number, force: boolean, by?: Caller): Promise<void> => {
      const { name: server } = await existing(id);
      if (force) for (const one of await store.transfersOf(id)) await cancel(one.id);
      try {
        if (!(await store.remove(id, audit.change(REMOTE_SERVER, by)))) throw serverNotFound(id);
      } catch (error) {
        if (!isCheckViolation(error, 'transfers_of_a_server')) throw error;
        const uses = usesOf(await store.transfersOf(id));
        if (!force) refuseUsed(REMOTE_SERVER.noun, server, uses, FORCED_REMOVAL);
        const told = `Remote server ${JSON.stringify(server)} is in use: ${uses.join('; ')}`;
        throw conflict(`${told}. They were told to end: ask again in a moment`);
      }
      say('deleted', { server, serverRow: id, ...(force ? { force } : {}) }, by);
      changed(id);
    },

    test: async (id: number): Promise<TestResult> => test(await existing(id)),

    /** Lets its transfers go, whatever contacts have failed. */
    closeCircuit: async (id: number): Promise<RemoteServerView> => {
      await existing(id);
      await closeCircuit(id);
      return view(await existing(id));
    },
  };
};

export type RemoteServerService = ReturnType<typeof remoteServerService>;

/** The configuration file may declare remote servers for this app, by their names. */
import { DeclaredList, isRemoteServer, SecretError } from '@pesit-node/service';
import type { DeclaredResource, SecretBox } from '@pesit-node/service';

import { REMOTE_SERVER } from './remote-servers/fields.js';
import type { CreateRemoteServer, RemoteServerRow } from './remote-servers/fields.js';
import { leadsElsewhere, openFor } from './remote-servers/secrets.js';
import type { Destination, SealedColumn } from './remote-servers/secrets.js';
import type { RemoteServerService } from './remote-servers/service.js';
import type { RemoteServerStore } from './remote-servers/store.js';

const SERVERS = new DeclaredList({ list: 'servers', fields: REMOTE_SERVER, identity: 'name', has: isRemoteServer });

export const DECLARED_LISTS = [SERVERS];

export interface DeclaredParts {
  readonly remoteServers: RemoteServerService;
  readonly servers: Pick<RemoteServerStore, 'named'>;
  readonly secrets: SecretBox;
}

export const declaredResources = ({ remoteServers, servers, secrets }: DeclaredParts): readonly DeclaredResource[] => [
  {
    list: SERVERS,
    existing: async (names) => (await servers.named(names)).map((row) => [row.name, row]),
    create: (body, by) => remoteServers.create(body as CreateRemoteServer, by),
    change: (row, body, by) => remoteServers.update((row as RemoteServerRow).id, body, by),
    matches: (row, column, password) => {
      const stored = (row as Readonly<Record<string, unknown>>)[column];
      if (typeof stored !== 'string') return Promise.resolve(false);
      try {
        const opened = openFor(secrets, column as SealedColumn, row as RemoteServerRow, stored);
        return Promise.resolve(opened === password);
      } catch (error) {
        if (error instanceof SecretError) return Promise.resolve(false);
        throw error;
      }
    },
    // A password is sealed for one destination: the file says whether it is meant for the next one, too.
    goesWith: (row, column, changes) => {
      const { host, port, serverId, clientId, preconnectId } = { ...destinationOf(row as RemoteServerRow), ...changes };
      const after = { host, port, server_id: serverId, client_id: clientId, preconnect_id: preconnectId };
      return leadsElsewhere(column as SealedColumn, row as RemoteServerRow, {
        ...{ id: (row as RemoteServerRow).id, ...after },
      });
    },
  },
];

/** By the names of the interface. */
const destinationOf = ({ host, port, server_id, client_id, preconnect_id }: Destination) => ({
  ...{ host, port, serverId: server_id, clientId: client_id, preconnectId: preconnect_id },
});

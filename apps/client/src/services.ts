import type { Certificates } from '@pesit-node/certificates';
import { ApiError } from '@pesit-node/service';
import type { ChangeAudit, EventStream } from '@pesit-node/service';

import type { Exchange } from './exchange/exchange.js';
import type { ReceivedTree } from './exchange/received-tree.js';
import type { ExchangeSettings } from './exchange/settings.js';
import { remoteServerService } from './remote-servers/service.js';
import type { RemoteServerService } from './remote-servers/service.js';
import type { RemoteServerStore } from './remote-servers/store.js';
import type { SendTree } from './transfers/send-tree.js';
import { transferService } from './transfers/service.js';
import type { TransferService } from './transfers/service.js';
import type { TransferStore } from './transfers/store.js';

export interface ServiceParts {
  readonly certificates: Pick<Certificates, 'require'>;
  readonly servers: RemoteServerStore;
  readonly transfers: TransferStore;
  readonly sendTree: SendTree;
  readonly receivedTree: ReceivedTree;
  readonly exchange: Exchange;
  readonly settings: Pick<ExchangeSettings, 'holdsOrder'>;
  readonly events: EventStream;
  readonly audit: ChangeAudit;
}

/** Everything that may be asked of this app, by REST or by its configuration file. */
export interface Services {
  readonly transferService: TransferService;
  readonly remoteServers: RemoteServerService;
}

const unlessConflict = (error: unknown): void => {
  if (!(error instanceof ApiError) || error.code !== 'CONFLICT') throw error;
};

export const createServices = (parts: ServiceParts): Services => {
  const { servers, sendTree, receivedTree, exchange, events, settings, audit, certificates } = parts;
  const { queue, test, closeCircuit, serverChanged: changed } = exchange;
  const transfers = transferService({
    ...{ store: parts.transfers, servers, sendTree, receivedTree, queue, events, settings },
  });
  const remoteServers = remoteServerService({
    ...{ store: servers, audit, certificates, events, test, closeCircuit, changed },
    // One that has ended meanwhile is a 409.
    cancel: (id) => transfers.cancel(id).catch(unlessConflict),
  });
  return { transferService: transfers, remoteServers };
};

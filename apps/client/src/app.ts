import { certificateRoutes } from '@pesit-node/certificates';
import type { Certificates } from '@pesit-node/certificates';
import { consolePages } from '@pesit-node/console';
import { hookRoutes } from '@pesit-node/hooks';
import type { Hooks } from '@pesit-node/hooks';
import { createLicensedApp } from '@pesit-node/license';
import type { LicensedAppOptions } from '@pesit-node/license';
import { ApiError } from '@pesit-node/service';
import type { Config, Traces } from '@pesit-node/service';
import type { LiveTransfers } from '@pesit-node/transfers';
import type { Express } from 'express';

import { storeUses } from './certificates/uses.js';
import type { ExchangeSettings } from './exchange/settings.js';
import type { Exchange } from './exchange/exchange.js';
import type { ReceivedTree } from './exchange/received-tree.js';
import { remoteServerRoutes } from './remote-servers/routes.js';
import { remoteServerService } from './remote-servers/service.js';
import type { RemoteServerStore } from './remote-servers/store.js';
import { serverTraceRoutes } from './traces/routes.js';
import { transferRoutes } from './transfers/routes.js';
import type { SendTree } from './transfers/send-tree.js';
import { transferService } from './transfers/service.js';
import type { TransferStore } from './transfers/store.js';

export interface AppDeps extends Omit<LicensedAppOptions, 'routes'> {
  readonly config: Config<'client'>;
  readonly certificates: Certificates;
  readonly servers: RemoteServerStore;
  readonly transfers: TransferStore;
  readonly sendTree: SendTree;
  readonly receivedTree: ReceivedTree;
  readonly exchange: Exchange;
  readonly settings: Pick<ExchangeSettings, 'holdsOrder'>;
  readonly traces: Traces;
  readonly live: LiveTransfers<unknown>;
  readonly hooks: Pick<Hooks, 'store' | 'rest'>;
}

const unlessConflict = (error: unknown): void => {
  if (!(error instanceof ApiError) || error.code !== 'CONFLICT') throw error;
};

/** The REST interface of the client app; it does not listen. */
export const createApp = (deps: AppDeps): Express => {
  const { logger, events, exchange, servers } = deps;
  const { queue, test, closeCircuit, serverChanged: changed } = exchange;
  const { sendTree, receivedTree, settings } = deps;
  const transfers = transferService({
    store: deps.transfers,
    servers,
    sendTree,
    receivedTree,
    queue,
    events,
    settings,
  });
  const remoteServers = remoteServerService({
    store: servers,
    audit: deps.audit,
    certificates: deps.certificates,
    events,
    test,
    closeCircuit,
    // One that has ended meanwhile is a 409.
    cancel: (id) => transfers.cancel(id).catch(unlessConflict),
    changed,
  });
  return createLicensedApp({
    ...deps,
    ...(deps.config['console.enabled'] ? { pages: consolePages() } : {}),
    routes: (routes) => {
      remoteServerRoutes(routes, remoteServers);
      serverTraceRoutes(routes, deps.traces, logger);
      transferRoutes(routes, transfers, deps.live, () => deps.config['storage.answer-timeout'] * 1000);
      hookRoutes(routes, deps.hooks.rest);
      certificateRoutes(routes, {
        certificates: deps.certificates,
        uses: storeUses(servers, deps.hooks.store, deps.config),
        events,
        audit: deps.audit,
      });
    },
  });
};

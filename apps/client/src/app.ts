import { certificateRoutes } from '@pesit-node/certificates';
import type { Certificates } from '@pesit-node/certificates';
import { consolePages } from '@pesit-node/console';
import { hookRoutes } from '@pesit-node/hooks';
import type { Hooks } from '@pesit-node/hooks';
import { createLicensedApp } from '@pesit-node/license';
import type { LicensedAppOptions } from '@pesit-node/license';
import type { Config, Traces } from '@pesit-node/service';
import type { LiveTransfers } from '@pesit-node/transfers';
import type { Express } from 'express';

import { storeUses } from './certificates/uses.js';
import { remoteServerRoutes } from './remote-servers/routes.js';
import type { RemoteServerStore } from './remote-servers/store.js';
import type { Services } from './services.js';
import { serverTraceRoutes } from './traces/routes.js';
import { transferRoutes } from './transfers/routes.js';

export interface AppDeps extends Omit<LicensedAppOptions, 'routes'>, Services {
  readonly config: Config<'client'>;
  readonly certificates: Certificates;
  readonly servers: RemoteServerStore;
  readonly traces: Traces;
  readonly live: LiveTransfers<unknown>;
  readonly hooks: Pick<Hooks, 'store' | 'rest'>;
}

/** The REST interface of the client app; it does not listen. */
export const createApp = (deps: AppDeps): Express => {
  const { logger, events, servers, transferService: transfers, remoteServers } = deps;
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

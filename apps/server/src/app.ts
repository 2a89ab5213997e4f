import { authorityRoutes, certificateRoutes, publicRoutes } from '@pesit-node/certificates';
import type { Certificates, LocalAuthority } from '@pesit-node/certificates';
import { consolePages } from '@pesit-node/console';
import { hookRoutes } from '@pesit-node/hooks';
import type { Hooks } from '@pesit-node/hooks';
import { createLicensedApp } from '@pesit-node/license';
import type { LicensedAppOptions } from '@pesit-node/license';
import type { Config, Traces } from '@pesit-node/service';
import type { LiveTransfers } from '@pesit-node/transfers';
import type { Express } from 'express';
import type { Knex } from 'knex';

import { storeUses } from './certificates/uses.js';
import type { ListAvailable } from './files/available.js';
import type { ListenerRequests } from './listeners/requests.js';
import { listenerRoutes } from './listeners/routes.js';
import type { ListenerService } from './listeners/service.js';
import { partnerRoutes } from './partners/routes.js';
import type { PartnerService } from './partners/service.js';
import { sessionRoutes } from './sessions/routes.js';
import type { SessionService } from './sessions/service.js';
import { partnerTraceRoutes } from './traces/routes.js';
import { transferRoutes } from './transfers/routes.js';
import type { CancelTransfer } from './transfers/cancel.js';
import type { OpenContent } from './transfers/content.js';
import type { TransferStore } from './transfers/store.js';
import type { TestPartner } from './trials/partner-tests.js';
import { partnerTestRoutes } from './trials/routes.js';
import { virtualFileRoutes } from './virtual-files/routes.js';
import type { VirtualFileService } from './virtual-files/service.js';

export interface AppDeps extends Omit<LicensedAppOptions, 'routes'> {
  readonly config: Config<'server'>;
  readonly certificates: Certificates;
  readonly authority: LocalAuthority;
  readonly knex: Knex;
  readonly partners: PartnerService;
  readonly testPartner: TestPartner;
  readonly virtualFiles: VirtualFileService;
  readonly listeners: ListenerService;
  readonly listenerRequests: ListenerRequests;
  readonly transfers: TransferStore;
  readonly live: LiveTransfers<unknown>;
  readonly cancel: CancelTransfer;
  readonly openContent: OpenContent;
  readonly sessions: SessionService;
  readonly traces: Traces;
  readonly available: ListAvailable;
  readonly hooks: Pick<Hooks, 'store' | 'rest'>;
}

/** The REST interface of the server app; it does not listen. */
export const createApp = (deps: AppDeps): Express => {
  const { logger, events, authority, knex } = deps;
  return createLicensedApp({
    ...deps,
    ...(deps.config['console.enabled'] ? { pages: consolePages() } : {}),
    open: (routes) => publicRoutes(routes, authority),
    routes: (routes) => {
      sessionRoutes(routes, deps.sessions);
      listenerRoutes(routes, deps);
      partnerRoutes(routes, deps.partners);
      partnerTestRoutes(routes, deps.testPartner);
      partnerTraceRoutes(routes, deps.traces, logger);
      virtualFileRoutes(routes, deps.virtualFiles, deps.config['cluster.name'], deps.available);
      transferRoutes(routes, deps);
      hookRoutes(routes, deps.hooks.rest);
      authorityRoutes(routes, { authority, knex, events, audit: deps.audit });
      certificateRoutes(routes, {
        certificates: deps.certificates,
        uses: storeUses(deps.listeners, deps.hooks.store, deps.config),
        events,
        audit: deps.audit,
      });
    },
  });
};

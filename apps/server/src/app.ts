import { keyWithoutEffect, licenseGate, licenseRoutes } from '@pesit-node/license';
import type { LicenseKeeper } from '@pesit-node/license';
import { createHttpApp, keysWithoutEffect } from '@pesit-node/service';
import type {
  Config,
  EventStream,
  HealthRegistry,
  HttpAppOptions,
  Logger,
  Metrics,
  PasswordHasher,
  PeriodicWork,
  ServiceInfo,
  Traces,
} from '@pesit-node/service';
import type { Express } from 'express';

import type { Directories } from './directories.js';
import { listenerRoutes } from './listeners/routes.js';
import type { ListenerService } from './listeners/service.js';
import { partnerRoutes } from './partners/routes.js';
import type { PartnerStore } from './partners/store.js';
import { partnerTraceRoutes } from './traces/routes.js';
import { transferRoutes } from './transfers/routes.js';
import type { TransferStore } from './transfers/store.js';
import { virtualFileRoutes } from './virtual-files/routes.js';
import type { VirtualFileStore } from './virtual-files/store.js';

export interface AppDeps {
  readonly config: Config<'server'>;
  readonly info: ServiceInfo;
  readonly logger: Logger;
  readonly health: HealthRegistry;
  readonly metrics: Metrics;
  readonly events: EventStream;
  /** While not ready, the routes answer 503 with the reason. */
  readonly database: NonNullable<HttpAppOptions['database']>;
  readonly periodic: Pick<PeriodicWork, 'status'>;
  readonly license: LicenseKeeper;
  readonly partners: PartnerStore;
  readonly passwords: PasswordHasher;
  readonly virtualFiles: VirtualFileStore;
  readonly listeners: ListenerService;
  readonly transfers: TransferStore;
  readonly traces: Traces;
  readonly directories: Directories;
}

/** The REST interface of the server app; it does not listen. */
export const createApp = (deps: AppDeps): Express => {
  const { config, info, logger, health, metrics, events, database, periodic, license, directories } = deps;
  return createHttpApp({
    config,
    info,
    logger,
    health,
    metrics,
    database,
    events,
    periodic,
    keysWithoutEffect: () => [
      ...keysWithoutEffect(config),
      ...keyWithoutEffect(config['license.public-key'], license.publicKey),
    ],
    gate: licenseGate(license),
    routes: (routes) => {
      licenseRoutes(routes, license);
      listenerRoutes(routes, deps.listeners, directories);
      partnerRoutes(routes, deps);
      partnerTraceRoutes(routes, deps.traces, logger);
      virtualFileRoutes(routes, deps.virtualFiles, directories, events);
      transferRoutes(routes, deps.transfers);
    },
  });
};

import { clusterRoutes } from '@pesit-node/cluster';
import type { Cluster } from '@pesit-node/cluster';
import { auditRoutes, auditService, createHttpApp, keysWithoutEffect } from '@pesit-node/service';
import type { Audit, CommonConfig, EventStream, HttpAppOptions } from '@pesit-node/service';
import type { Express } from 'express';

import { licenseGate } from './gate.js';
import type { LicenseKeeper } from './keeper.js';
import { keyWithoutEffect } from './public-key.js';
import { licenseRoutes } from './routes.js';

export interface LicensedAppOptions extends Pick<
  HttpAppOptions,
  'info' | 'logger' | 'health' | 'metrics' | 'open' | 'pages' | 'routes'
> {
  readonly config: CommonConfig;
  readonly events: EventStream;
  /** While not ready, the routes answer 503 with the reason. */
  readonly database: NonNullable<HttpAppOptions['database']>;
  readonly periodic: NonNullable<HttpAppOptions['periodic']>;
  readonly license: LicenseKeeper;
  readonly audit: Audit;
  readonly cluster: Pick<Cluster, 'status' | 'overview'>;
}

/** The REST interface of an app behind the 402 gate, with the endpoints of license and cluster before its own; it does not listen. */
export const createLicensedApp = (options: LicensedAppOptions): Express => {
  const { config, info, logger, health, metrics, events, database, periodic, license, audit, routes } = options;
  auditService(events, audit);
  return createHttpApp({
    ...{ config, info, logger, health, metrics, events, database, periodic },
    keysWithoutEffect: () => [
      ...keysWithoutEffect(config),
      ...keyWithoutEffect(config['license.public-key'], license.publicKey),
    ],
    ...(options.open === undefined ? {} : { open: options.open }),
    ...(options.pages === undefined ? {} : { pages: options.pages }),
    gate: licenseGate(license),
    routes: (mounted) => {
      licenseRoutes(mounted, license, audit);
      clusterRoutes(mounted, options.cluster);
      auditRoutes(mounted, audit);
      routes(mounted);
    },
  });
};

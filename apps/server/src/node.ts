import type { Certificates } from '@pesit-node/certificates';
import type { Cluster } from '@pesit-node/cluster';
import type { LicenseKeeper } from '@pesit-node/license';
import type { DatabaseSupervisor, LifecycleStep, Metrics } from '@pesit-node/service';
import { spansStep } from '@pesit-node/transfers';
import type { Express } from 'express';

import type { ListenersHere } from './listeners/listeners-here.js';
import type { NodeOptions } from './node/options.js';
import { orderOf } from './node/order.js';
import { createParts } from './node/parts.js';
import type { Housekeeping } from './recovery/housekeeping.js';

export type { NodeOptions } from './node/options.js';

export interface ServerNode {
  readonly app: Express;
  readonly license: LicenseKeeper;
  readonly cluster: Cluster;
  readonly metrics: Metrics<'server'>;
  /** The configuration was read again: the license is looked for where it says now, and the lists of the file are applied. */
  readonly reloaded: () => void;
  readonly certificates: Certificates;
  readonly listeners: ListenersHere;
  readonly supervisor: DatabaseSupervisor;
  readonly housekeeping: Housekeeping;
  /** Step of the foundation. To be started first, and stopped last. */
  readonly databaseStep: LifecycleStep;
  /** Spans to a collector, where there is one. To be started second, and stopped after the exchange. */
  readonly spansStep: LifecycleStep;
  /** Recovery, and the listeners with `autoStart`, as soon as the database is there. To be stopped first. */
  readonly exchangeStep: LifecycleStep;
  /** Resolves when `exchangeStep`, once started, has done all that, or was stopped. */
  readonly whenBegun: () => Promise<void>;
}

/** Everything of the server app that is not the process itself: its parts, and the order in which they begin and end. */
export const createNode = (options: NodeOptions): ServerNode => {
  const parts = createParts(options);
  const { app, certificates, housekeeping, foundation } = parts;
  const { license, cluster, metrics, supervisor, step } = foundation;
  const { step: exchangeStep, whenBegun } = orderOf(parts, options);
  return {
    ...{ app, license, cluster, metrics, certificates, supervisor, housekeeping },
    reloaded: () => {
      foundation.reloaded();
      parts.declared.reload();
    },
    listeners: parts.listenersHere,
    databaseStep: step,
    spansStep: spansStep({
      ...{ config: options.config, app: 'server', version: options.info.version },
      ...{ node: options.node, events: foundation.events },
    }),
    ...{ exchangeStep, whenBegun },
  };
};

import { DatabaseSupervisor } from '@pesit-node/service';
import type {
  Config,
  Database,
  HealthRegistry,
  LifecycleStep,
  Logger,
  SecretBox,
  ServiceInfo,
} from '@pesit-node/service';

import { createApp } from './app.js';
import { createExchange } from './exchange/exchange.js';
import type { ExchangeOptions } from './exchange/exchange.js';
import { ReceivedTree } from './exchange/received-tree.js';
import { exchangeSettings } from './exchange/settings.js';
import type { ExchangeSettings } from './exchange/settings.js';
import { CLIENT_MIGRATIONS } from './migrations/index.js';
import { remoteServerStore } from './remote-servers/store.js';
import { SendTree } from './transfers/send-tree.js';
import { transferStore } from './transfers/store.js';

/** What interrupting the last transfers and releasing the sessions may take beyond the drain. */
const STOP_MARGIN_MS = 20_000;

export interface NodeOptions extends Pick<ExchangeOptions, 'node' | 'pollMs' | 'progressMs'> {
  readonly config: Config<'client'>;
  /** Default: those of the configuration. */
  readonly settings?: ExchangeSettings;
  readonly logger: Logger;
  readonly health: HealthRegistry;
  readonly info: ServiceInfo;
  readonly database: Database;
  readonly secrets: SecretBox;
}

/** The client app over an open database: its REST interface, and what starts and stops, in order: database, files, exchange. */
export const createNode = (options: NodeOptions) => {
  const { config, logger, health, info, database, secrets } = options;
  const { settings = exchangeSettings(config) } = options;
  const supervisor = new DatabaseSupervisor({ database, migrations: [CLIENT_MIGRATIONS], logger });
  health.register('database', () => supervisor.health(), { readiness: true });

  const servers = remoteServerStore(database.knex, secrets);
  const transfers = transferStore(database.knex);
  const sendTree = new SendTree(config['data.directory']);
  const receivedTree = new ReceivedTree(config['data.directory']);
  const exchange = createExchange({ ...options, settings, transfers, servers, receivedTree });
  health.register('queue', () => ({ status: 'UP', details: { running: exchange.queue.running } }));
  const app = createApp({
    ...{ config, settings, info, logger, health, database: supervisor },
    ...{ servers, transfers, sendTree, receivedTree, exchange },
  });

  const begin = (): void => {
    exchange.queue.start().catch((error: unknown) => logger.error({ err: error }, 'the queue could not be started'));
  };
  const drainMs = config['shutdown.drain-timeout'] * 1000;
  const steps = {
    database: { name: 'database', start: () => supervisor.start(), stop: () => supervisor.stop() },
    files: {
      name: 'files',
      start: async () => {
        await sendTree.prepare();
        await receivedTree.prepare();
      },
    },
    exchange: {
      name: 'exchange',
      start: () => {
        // The service answers its probes while the database is still away; the queue begins when it is there.
        supervisor.on('ready', begin);
        if (supervisor.ready) begin();
      },
      stop: () => exchange.stop(drainMs),
      stopTimeoutMs: drainMs + STOP_MARGIN_MS,
    },
  } satisfies Record<string, LifecycleStep>;
  return { app, exchange, supervisor, servers, transfers, settings, steps };
};

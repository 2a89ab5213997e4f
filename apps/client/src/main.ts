/** The composition root of the client app, and the only reader of the environment. */
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';

import {
  ConfigError,
  configWarnings,
  createLogger,
  DatabaseSupervisor,
  HealthRegistry,
  Lifecycle,
  listen,
  loadConfig,
  openDatabase,
  openSecretBox,
} from '@pesit-node/service';
import type { Config, Logger } from '@pesit-node/service';

import { createApp } from './app.js';
import { createExchange } from './exchange/exchange.js';
import { ReceivedTree } from './exchange/received-tree.js';
import { exchangeSettings } from './exchange/settings.js';
import { CLIENT_MIGRATIONS } from './migrations/index.js';
import { remoteServerStore } from './remote-servers/store.js';
import { SendTree } from './transfers/send-tree.js';
import { transferStore } from './transfers/store.js';

/** How long a connection may be silent: longer than the longest `?wait`. */
const HTTP_SILENCE_MS = 310_000;
/** What interrupting the last transfers and releasing the sessions may take beyond the drain. */
const STOP_MARGIN_MS = 20_000;

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  readonly version: string;
};

const compose = async (config: Config<'client'>, logger: Logger): Promise<Lifecycle> => {
  const health = new HealthRegistry();
  const dataDirectory = config['data.directory'];
  const secrets = await openSecretBox(config);
  const database = await openDatabase({
    url: config['database.url'],
    dataDirectory,
    name: 'client',
    searchPath: [CLIENT_MIGRATIONS.schema],
    poolMax: config['database.pool-max'],
    logger,
  });
  const supervisor = new DatabaseSupervisor({ database, migrations: [CLIENT_MIGRATIONS], logger });
  health.register('database', () => supervisor.health(), { readiness: true });

  const settings = exchangeSettings(config);
  const servers = remoteServerStore(database.knex, secrets);
  const transfers = transferStore(database.knex);
  const sendTree = new SendTree(dataDirectory);
  const receivedTree = new ReceivedTree(dataDirectory);
  const node = process.env['POD_NAME'] ?? hostname();
  const exchange = createExchange({ settings, secrets, transfers, servers, receivedTree, node, logger });
  health.register('queue', () => ({ status: 'UP', details: { running: exchange.queue.running } }));
  const app = createApp({
    ...{ config, settings, version, logger, health, database: supervisor },
    ...{ servers, transfers, sendTree, receivedTree, exchange },
  });

  const begin = (): void => {
    exchange.queue.start().catch((error: unknown) => logger.error({ err: error }, 'the queue could not be started'));
  };
  let http: Awaited<ReturnType<typeof listen>> | undefined;
  const drainMs = config['shutdown.drain-timeout'] * 1000;
  return new Lifecycle({ logger, health })
    .add({
      name: 'database',
      start: () => supervisor.start(),
      stop: async () => {
        await supervisor.stop();
        await database.close();
      },
    })
    .add({
      name: 'directories',
      start: async () => {
        await sendTree.prepare();
        await receivedTree.prepare();
      },
    })
    .add({
      name: 'http',
      start: async () => {
        http = await listen(app, { host: config['server.host'], port: config['server.port'] });
        // An upload takes as long as it takes; what is silent is cut.
        http.server.requestTimeout = 0;
        http.server.setTimeout(HTTP_SILENCE_MS);
        logger.info({ host: config['server.host'], port: http.port }, 'REST interface listens');
      },
      stop: () => http?.close(),
    })
    .add({
      name: 'exchange',
      start: () => {
        // The service answers its probes while the database is still away; the queue begins when it is there.
        supervisor.on('ready', begin);
        if (supervisor.ready) begin();
      },
      stop: () => exchange.stop(drainMs),
      stopTimeoutMs: drainMs + STOP_MARGIN_MS,
    });
};

const run = async (): Promise<void> => {
  const config = loadConfig({ app: 'client', env: process.env, argv: process.argv.slice(2), cwd: process.cwd() });
  const logger = createLogger(config, { name: 'pesit-client' });
  for (const warning of configWarnings(config)) logger.warn(warning);
  const lifecycle = await compose(config, logger);
  lifecycle.handleSignals(process);
  await lifecycle.start();
};

try {
  await run();
} catch (error) {
  const known =
    error instanceof ConfigError || (error instanceof Error && error.name.endsWith('Error') && error.name !== 'Error');
  process.stderr.write(`${known ? (error as Error).message : String((error as Error).stack ?? error)}\n`);
  process.exit(1);
}

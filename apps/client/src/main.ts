/** The composition root of the client app, and the only reader of the environment. */
import { readFile } from 'node:fs/promises';
import { hostname } from 'node:os';

import { keyWithoutEffect, LicenseKeyError, loadPublicKey } from '@pesit-node/license';
import {
  commandLineAnswer,
  configWarnings,
  createLogger,
  HealthRegistry,
  Lifecycle,
  listen,
  LiveConfig,
  openDatabase,
  openSecretBox,
  prepareDataDirectory,
  reloadOnSignal,
  runMain,
  startingApp,
} from '@pesit-node/service';
import type { ServiceInfo } from '@pesit-node/service';

import { CLIENT_MIGRATIONS } from './migrations/index.js';
import { createNode } from './node.js';

const NAME = 'pesit-client';
/** How long an HTTP connection may be silent: longer than the longest `?wait`. */
const HTTP_SILENCE_MS = 310_000;

const run = async (live: LiveConfig<'client'>, info: ServiceInfo): Promise<void> => {
  const { config } = live;
  const logger = createLogger(config, { name: NAME });
  reloadOnSignal({ live, logger, source: process });
  for (const warning of configWarnings(config)) logger.warn(warning);
  const licenseKey = await loadPublicKey(config['license.public-key']);
  for (const { key, reason } of keyWithoutEffect(config['license.public-key'], licenseKey)) {
    logger.warn(`${key} is not used: ${reason}`);
  }
  // First of all: a port in use is said before a database is started for nothing.
  const http = await listen(startingApp({ app: 'client', config, info, logger }), {
    ...{ host: config['server.host'], port: config['server.port'] },
    ...{ maxConnections: () => config['http.max-connections'], logger },
  });
  const dataDirectory = config['data.directory'];
  await prepareDataDirectory(dataDirectory);
  const secrets = await openSecretBox(config);
  const database = await openDatabase({
    url: config['database.url'],
    dataDirectory,
    directory: config['database.directory'],
    name: 'client',
    searchPath: [CLIENT_MIGRATIONS.schema],
    poolMax: config['database.pool-max'],
    logger,
  });
  const health = new HealthRegistry();
  const node = config['pod.name'] || hostname();
  const namespace = config['pod.namespace'];
  const { app, license, metrics, steps } = createNode({
    ...{ config, logger, health, info, database, secrets, licenseKey, node, namespace },
  });
  live.on('reload', () => license.useSources({ file: config['license.file'], content: config['license.content'] }));
  metrics.watchProcess();
  const lifecycle = new Lifecycle({ logger, health })
    .add({ name: 'database connections', stop: () => database.close() })
    .add(steps.database)
    .add(steps.files)
    .add({
      name: 'http',
      start: () => {
        http.serve(app);
        // An upload takes as long as it takes; what is silent is cut.
        http.server.requestTimeout = 0;
        http.server.setTimeout(HTTP_SILENCE_MS);
        logger.info({ host: config['server.host'], port: http.port }, 'REST interface ready');
      },
      stop: () => http.close(),
    })
    .add(steps.exchange);
  lifecycle.handleSignals(process);
  await lifecycle.start();
};

await runMain(process, [LicenseKeyError], async () => {
  const { version } = JSON.parse(await readFile(new URL('../package.json', import.meta.url), 'utf8')) as {
    readonly version: string;
  };
  const info = { name: NAME, version };
  const argv = process.argv.slice(2);
  const answer = commandLineAnswer('client', info, argv);
  if (answer !== undefined) process.stdout.write(answer);
  else await run(new LiveConfig({ app: 'client', env: process.env, argv, cwd: process.cwd() }), info);
});

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

import { createNode } from './node.js';

const NAME = 'pesit-server';

const run = async (live: LiveConfig<'server'>, info: ServiceInfo): Promise<void> => {
  const { config } = live;
  const logger = createLogger(config, { name: NAME });
  reloadOnSignal({ live, logger, source: process });
  for (const warning of configWarnings(config)) logger.warn(warning);
  const licenseKey = await loadPublicKey(config['license.public-key']);
  for (const { key, reason } of keyWithoutEffect(config['license.public-key'], licenseKey)) {
    logger.warn(`${key} is not used: ${reason}`);
  }
  // First of all: a port in use is said before a database is started for nothing.
  const http = await listen(startingApp({ app: 'server', config, info, logger }), {
    ...{ host: config['server.host'], port: config['server.port'] },
    ...{ maxConnections: () => config['http.max-connections'], logger },
  });
  await prepareDataDirectory(config['data.directory']);
  const secrets = await openSecretBox(config);
  const database = await openDatabase({
    url: config['database.url'],
    dataDirectory: config['data.directory'],
    directory: config['database.directory'],
    name: 'server',
    searchPath: ['pesit_server'],
    poolMax: config['database.pool-max'],
    logger,
  });
  const health = new HealthRegistry();
  const node = createNode({
    config,
    logger,
    health,
    info,
    database,
    secrets,
    licenseKey,
    node: config['pod.name'] || hostname(),
    namespace: config['pod.namespace'],
  });
  live.on('reload', () =>
    node.license.useSources({ file: config['license.file'], content: config['license.content'] }),
  );
  node.metrics.watchProcess();
  const lifecycle = new Lifecycle({ logger, health })
    .add({ name: 'database connections', stop: () => database.close() })
    .add(node.databaseStep)
    .add({
      name: 'http',
      start: () => {
        http.serve(node.app);
        logger.info({ host: config['server.host'], port: http.port }, 'REST interface ready');
      },
      stop: () => http.close(),
    })
    .add(node.exchangeStep);
  lifecycle.handleSignals(process);
  await lifecycle.start();
};

await runMain(process, [LicenseKeyError], async () => {
  const { version } = JSON.parse(await readFile(new URL('../package.json', import.meta.url), 'utf8')) as {
    readonly version: string;
  };
  const info = { name: NAME, version };
  const argv = process.argv.slice(2);
  const answer = commandLineAnswer('server', info, argv);
  if (answer !== undefined) process.stdout.write(answer);
  else await run(new LiveConfig({ app: 'server', env: process.env, argv, cwd: process.cwd() }), info);
});

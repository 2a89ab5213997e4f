import { readFile } from 'node:fs/promises';
import type { RequestListener, Server } from 'node:http';
import { hostname } from 'node:os';

import { commandLineAnswer } from '../config/help.js';
import type { AppName, CommonConfig, Config } from '../config/keys.js';
import { LiveConfig } from '../config/live.js';
import { configWarnings } from '../config/load.js';
import type { ListCheck } from '../config/load.js';
import type { SchemaName } from '../database/migrate.js';
import { openDatabase } from '../database/open.js';
import type { Database } from '../database/types.js';
import { HealthRegistry } from '../health/registry.js';
import type { ServiceInfo } from '../health/routes.js';
import { startingApp } from '../http/starting-app.js';
import { CertificateFileError, RestCertificate } from '../https/certificate.js';
import type { HttpsTools, RestKeystores } from '../https/certificate.js';
import { createLogger } from '../logging.js';
import type { Logger } from '../logging.js';
import type { SecretBox } from '../secrets/secret-box.js';
import { openSecretBox } from '../secrets/secret-key.js';
import { prepareDataDirectory } from './data-directory.js';
import { Lifecycle } from './lifecycle.js';
import type { LifecycleStep } from './lifecycle.js';
import { listen } from './listen.js';
import { runMain } from './main-guard.js';
import type { ErrorClass, MainProcess } from './main-guard.js';
import { reloadOnSignal } from './reload.js';

/** The part of `process` that this needs; the environment is given beside it, by `main.ts` alone. */
export interface ServiceProcess extends MainProcess {
  readonly argv: readonly string[];
  readonly stdout: { write(text: string): unknown };
  cwd(): string;
  on(event: 'SIGHUP' | 'SIGTERM' | 'SIGINT', listener: (signal: NodeJS.Signals) => void): unknown;
}

/** Parts that exist before anything of the app is made. */
export interface ServiceGround<A extends AppName> {
  readonly config: Config<A>;
  readonly logger: Logger;
  readonly info: ServiceInfo;
  readonly health: HealthRegistry;
  /** Open, but perhaps not reachable yet, and not migrated. */
  readonly database: Database;
  readonly secrets: SecretBox;
  /** Name of this machine or pod: `pod.name`, else the name of the host. */
  readonly node: string;
  readonly namespace: string;
  /** The file that `PESIT_CONFIG` names. */
  readonly configFile?: string | undefined;
  /** Certificate of the REST interface, where it speaks HTTPS. */
  readonly https?: RestCertificate | undefined;
}

/** Parts that the app has made. */
export interface BuiltService {
  /** Answers at the port from its step on. */
  readonly app: RequestListener;
  readonly metrics: { watchProcess(): void };
  /** Started in this order before the REST interface answers, stopped in reverse after it. */
  readonly beforeHttp: readonly LifecycleStep[];
  /** Started when the REST interface answers, stopped before it. */
  readonly afterHttp: readonly LifecycleStep[];
  /** Where the certificate of the REST interface may be. */
  readonly keystores: RestKeystores;
  /** The sources of the configuration were read again (SIGHUP). */
  readonly reloaded: () => void;
}

/** A stage that an app does not write itself, as the license: what has to be read before anything is started. */
export interface FirstStage<Read> {
  /** @throws one of `explained` */
  readonly read: (config: CommonConfig, logger: Logger) => Promise<Read>;
  /** Errors that an operator can correct: their message is shown, without a stack. */
  readonly explained: readonly ErrorClass[];
}

/** Parts that differ from app to app. */
export interface ServiceDefinition<A extends AppName, Read> {
  /** Which keys of the configuration it has. */
  readonly app: A;
  /** In log lines and at `/actuator/info`. */
  readonly name: string;
  /** Its `package.json`, for the version. */
  readonly manifest: URL;
  /** Where its tables are. */
  readonly schema: SchemaName;
  readonly env: NodeJS.ProcessEnv;
  /** The lists of the configuration file that it has. Default: none. */
  readonly lists?: readonly ListCheck[];
  readonly first: FirstStage<Read>;
  readonly build: (ground: ServiceGround<A>, read: Read) => BuiltService;
  readonly https: HttpsTools;
  /** Settings of its HTTP servers that differ from Node's, such as time limits. */
  readonly http?: (server: Server) => void;
}

/**
 * A service, from its command line to its end: `--help` and `--version`; else configuration, logger, the app's first stage, the
 * port (answered 503 from here on), data directory, secrets, database, what the app builds; then all of it started in order, and
 * stopped in reverse on SIGTERM. Resolves when it is started. When that fails the process ends with code 1 and a sentence.
 */
export const runService = <A extends AppName, Read>(
  process: ServiceProcess,
  definition: ServiceDefinition<A, Read>,
): Promise<void> =>
  runMain(process, [CertificateFileError, ...definition.first.explained], async () => {
    const { app, name, manifest, env, lists = [] } = definition;
    const { version } = JSON.parse(await readFile(manifest, 'utf8')) as { readonly version: string };
    const info = { name, version };
    const argv = process.argv.slice(2);
    const answer = commandLineAnswer(app, info, argv);
    if (answer !== undefined) process.stdout.write(answer);
    else await start(process, definition, new LiveConfig({ app, env, argv, cwd: process.cwd(), lists }), info);
  });

const start = async <A extends AppName, Read>(
  process: ServiceProcess,
  { app, name, schema, env, first, build, https: tools, http: tune }: ServiceDefinition<A, Read>,
  live: LiveConfig<A>,
  info: ServiceInfo,
): Promise<void> => {
  // Each app has the common keys, which shows only when it is known which app.
  const config = live.config as Config<A> & CommonConfig;
  const logger = createLogger(config, { name });
  reloadOnSignal({ live: { config, reload: () => live.reload() }, logger, source: process });
  for (const warning of configWarnings(config)) logger.warn(warning);
  const read = await first.read(config, logger);
  // First of all: a port in use is said before a database is started for nothing.
  const https = config['server.ssl.enabled'] ? await RestCertificate.open({ config, tools, logger }) : undefined;
  const { 'server.host': host, 'server.ssl.http-port': plainPort } = config;
  const listening = { host, maxConnections: () => config['http.max-connections'], logger };
  const starting = startingApp({ app, config, info, logger });
  const http = await listen(starting, {
    ...{ ...listening, port: config['server.port'] },
    ...(https === undefined ? {} : { secure: () => https.context() }),
  });
  const plain =
    https === undefined || plainPort === 0
      ? undefined
      : await listen(starting, { ...listening, port: plainPort, portKey: 'server.ssl.http-port' });
  const dataDirectory = config['data.directory'];
  await prepareDataDirectory(dataDirectory);
  const secrets = await openSecretBox(config);
  const database = await openDatabase({
    ...{ url: config['database.url'], ssl: config, dataDirectory, directory: config['database.directory'], name: app },
    ...{ searchPath: [schema], poolMax: config['database.pool-max'], logger },
  });
  const health = new HealthRegistry();
  const node = config['pod.name'] || hostname();
  const namespace = config['pod.namespace'];
  const service = build(
    {
      ...{ config, logger, info, health, database, secrets, node, namespace, https },
      configFile: env['PESIT_CONFIG'],
    },
    read,
  );
  https?.useKeystores(service.keystores);
  if (https !== undefined) health.register('https', () => https.health());
  live.on('reload', service.reloaded);
  service.metrics.watchProcess();
  const lifecycle = new Lifecycle({ logger, health });
  lifecycle.add({ name: 'database connections', stop: () => database.close() });
  for (const step of service.beforeHttp) lifecycle.add(step);
  lifecycle.add({
    name: 'http',
    start: async () => {
      // Says at once which certificate callers see.
      await https?.context();
      for (const one of plain === undefined ? [http] : [http, plain]) {
        one.serve(service.app);
        tune?.(one.server);
      }
      const ports = { port: http.port, https: https !== undefined, ...(plain && { httpPort: plain.port }) };
      logger.info({ host, ...ports }, 'REST interface ready');
    },
    stop: async () => {
      await Promise.all([http.close(), plain?.close()]);
    },
  });
  for (const step of service.afterHttp) lifecycle.add(step);
  lifecycle.handleSignals(process);
  await lifecycle.start();
};

/** `npm start -- --cluster`: pods of both apps over one PostgreSQL, a balancer in front, and one pod that is killed. */
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { requireFreePort, RestClient, startApp } from './apps.mjs';
import { startBalancer, takesConnections } from './balancer.mjs';
import { atEnd, Failure, freePort, root } from './process.mjs';
import { findRedis, startRedis } from './redis.mjs';
import { createSample, exchange, SAMPLE } from './sample.mjs';

const SERVERS = 3;
const CLIENTS = 2;
/** From a word to one pod until all listen: they look every 5 s where nobody tells them. */
const LISTENING_WITHIN_MS = 60_000;
const MEBIBYTE = 1024 * 1024;

/** The PostgreSQL of the services, run by this process for all pods. @returns its URL */
async function startDatabase(directory) {
  const from = join(root, 'packages/service/dist/database/embedded');
  const { openEmbedded } = await import(join(from, 'embedded.js'));
  const { databaseFiles, readPassword, ROLE } = await import(join(from, 'files.js'));
  const quiet = () => undefined;
  const database = await openEmbedded({
    ...{ directory, name: 'cluster', predecessor: `${directory}-before`, searchPath: ['public'], poolMax: 2 },
    logger: { debug: quiet, info: quiet, warn: console.warn, error: console.error },
  });
  atEnd(() => database.close());
  const files = databaseFiles(directory);
  const url = new URL(`postgresql://${ROLE}:${await readPassword(files)}@localhost/${ROLE}`);
  url.searchParams.set('host', files.socket);
  return url.href;
}

/** @returns its URL; empty where there is none on this machine */
async function startRedisOrNot() {
  const program = findRedis();
  if (program !== undefined) return startRedis(program);
  console.log('no redis-server on this machine: the pods look at PostgreSQL every few seconds instead');
  return '';
}

function secretsKey(data) {
  const file = join(data, 'secrets.key');
  if (!existsSync(file)) writeFileSync(file, `${randomBytes(32).toString('base64')}\n`, { mode: 0o600 });
  return file;
}

/** Every second port from `first`: with the ports of the defaults, those of the two apps alternate. */
const portsFrom = async (first, count, { freePorts }, flag) => {
  const ports = [];
  for (let k = 0; k < count; k++) {
    const port = freePorts ? await freePort() : first + 2 * k;
    if (!freePorts) await requireFreePort(port, flag);
    ports.push(port);
  }
  return ports;
};

/** Each pod of the server app has an address of its own, since all listen on the same port. */
const addressOf = (k) => `127.0.0.${k + 2}`;

async function allListen(targets) {
  const until = performance.now() + LISTENING_WITHIN_MS;
  for (const target of targets) {
    while (!(await takesConnections(target))) {
      if (performance.now() > until)
        throw new Failure(
          `${target.name} does not listen on ${target.host}:${target.port}. Where the system has no such loopback address ` +
            `(macOS), add it first: ifconfig lo0 alias ${target.host}`,
        );
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

/** Makes the sample where it is not there. @returns the port of its listener: an earlier start may have chosen another one */
export async function samplePort(rest, options) {
  const hasSample = await createSample(rest, options);
  const listener = (await rest.server.get('/api/v1/servers')).find(({ serverId }) => serverId === SAMPLE.listener);
  if (hasSample && listener !== undefined) return listener.port;
  throw new Failure(
    'The node has a configuration of its own, from its configuration file (PESIT_CONFIG) or from earlier: no sample is made for it, and ' +
      'nothing can cross while a pod is killed. Start without PESIT_CONFIG and with another --data, or without --cluster.',
  );
}

/** @returns the exit code when `once`; else it stays until Ctrl-C, and throws when a pod ends. */
export async function startCluster(options) {
  const { data, pesitPort, megabytes, once } = options;
  const ports = {
    server: await portsFrom(options.serverPort, SERVERS, options, '--server-port'),
    client: await portsFrom(options.clientPort, CLIENTS, options, '--client-port'),
  };
  if (!options.freePorts) await requireFreePort(pesitPort, '--pesit-port');
  mkdirSync(data, { recursive: true });
  const shared = {
    DATABASE_URL: await startDatabase(join(data, 'database')),
    DATABASE_DIRECTORY: '',
    REDIS_URL: await startRedisOrNot(),
    SECRETS_KEY: secretsKey(data),
    CLUSTER_ENABLED: 'true',
    CLUSTER_NAME: 'start',
    TRANSFER_RETRY_INITIAL_DELAY: '500',
  };
  const start = (app, k) => {
    const pod = `${app}-${k + 1}`;
    const settings = { ...shared, POD_NAME: pod, ...(app === 'server' && { LISTENER_HOST: addressOf(k) }) };
    return startApp({ app, pod, port: ports[app][k], data: join(data, app), settings });
  };
  console.log(`starting ${SERVERS} pods of the server app and ${CLIENTS} of the client app …`);
  const pods = new Map();
  await Promise.all(
    [...ports.server.map((_, k) => ['server', k]), ...ports.client.map((_, k) => ['client', k])].map(
      async ([app, k]) => {
        const pod = await start(app, k);
        pods.set(pod.name, pod);
        console.log(`  ${pod.name}: http://127.0.0.1:${ports[app][k]}`);
      },
    ),
  );
  console.log(
    `data and logs: ${relative(process.cwd(), data) || '.'}/{server,client}, PostgreSQL in database beside them`,
  );

  const rest = {
    server: new RestClient('server app', ports.server),
    client: new RestClient('client app', ports.client),
  };
  const port = await samplePort(rest, { pesitPort });
  const targets = ports.server.map((_, k) => ({ name: `server-${k + 1}`, host: addressOf(k), port }));
  await allListen(targets);
  const balancer = await startBalancer(port, targets);
  console.log(`balancer on 127.0.0.1:${port}: each connection goes to the next of ${targets.length} pods`);

  let victim;
  balancer.when((megabytes * MEBIBYTE) / 2, ({ name }) => {
    victim = name;
    console.log(`killing ${name} (SIGKILL), which has received half of the file`);
    pods.get(name).kill();
  });
  await exchange(rest, options);
  if (victim === undefined) throw new Failure('No pod was killed: the file did not pass through the balancer.');
  const { content } = await rest.server.get('/api/v1/transfers?size=1&sort=id,desc&direction=RECEIVE');
  console.log(`${victim} was killed, ${content[0].node} received the rest; attempts: ${content[0].attempts}`);
  if (once) return 0;

  pods.set(victim, await start('server', Number(victim.split('-')[1]) - 1));
  const { members } = await rest.server.get('/api/v1/cluster/status');
  const leader = members.find(({ isLeader }) => isLeader)?.name ?? 'nobody at this moment';
  console.log(`
${victim} is back; ${leader} leads the pods of the server app. Ctrl-C stops all. Try next:
  curl -u admin:admin http://127.0.0.1:${ports.server[0]}/api/v1/cluster/status
  kill -9 ${pods.get(targets[0].name).pid}
The REST interfaces: http://127.0.0.1:${ports.server[0]}/docs and http://127.0.0.1:${ports.client[0]}/docs.`);
  // A pod that is killed is what this is for: the others continue.
  await Promise.all([...pods.values()].map(({ ended }) => ended));
  throw new Failure('All pods have ended.');
}

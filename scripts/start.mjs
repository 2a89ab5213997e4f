/**
 * `npm start`: from a fresh clone to a node that exchanges files. Installs and builds what is missing, starts the server
 * app and the client app over one embedded database, creates a sample on a fresh data directory, sends a file by PeSIT,
 * reads it back, and compares all hashes. Then both services stay up until Ctrl-C; with --once they stop at once.
 * With --cluster the same on three pods of the server app and two of the client app, one of which is killed meanwhile.
 */
import { mkdirSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { Failure, freePort, main, requireNode, root } from './lib/process.mjs';
import { createSample, exchange, SAMPLE } from './lib/sample.mjs';
import { requireFreePort, RestClient, startApp } from './lib/apps.mjs';
import { startCluster } from './lib/cluster.mjs';
import { buildConsole } from '../packages/console/build/site.mjs';
import { ensureBuilt, ensureInstalled } from './lib/workspace.mjs';

const USAGE = `npm start -- [flags]
  --once               send and read the sample, then stop: exit code 0 when all arrived whole
  --cluster            three server apps and two client apps behind a balancer; one is killed while the file crosses
  --data DIR           data directory                        (./data, with --cluster ./data-cluster)
  --free-ports         ports that are free, in place of the next three
  --server-port N      REST of the server app                (8080)
  --client-port N      REST of the client app                (8081)
                       of more pods: every second port after it
  --pesit-port N       PeSIT listener of the sample          (6502)
  --size MB            size of the sample file               (64)`;

function flags() {
  const number = (name, text, max) => {
    const value = Number(text);
    if (!Number.isInteger(value) || value < 1 || value > max) {
      throw new Failure(`--${name}: expected a whole number from 1 to ${max}, got ${text}`);
    }
    return value;
  };
  let values;
  try {
    ({ values } = parseArgs({
      options: {
        once: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
        cluster: { type: 'boolean', default: false },
        'free-ports': { type: 'boolean', default: false },
        data: { type: 'string' },
        'server-port': { type: 'string', default: '8080' },
        'client-port': { type: 'string', default: '8081' },
        'pesit-port': { type: 'string', default: '6502' },
        size: { type: 'string', default: '64' },
      },
    }));
  } catch (error) {
    throw new Failure(`${error.message}\n\n${USAGE}`);
  }
  return {
    once: values.once,
    help: values.help,
    cluster: values.cluster,
    freePorts: values['free-ports'],
    data: resolve(values.data ?? join(root, values.cluster ? 'data-cluster' : 'data')),
    serverPort: number('server-port', values['server-port'], 65_535),
    clientPort: number('client-port', values['client-port'], 65_535),
    pesitPort: number('pesit-port', values['pesit-port'], 65_535),
    megabytes: number('size', values.size, 1_000_000),
  };
}

/** A call that sends a file to the sample, as the last line of a list. */
const sampleCall = (clientPort) => `
  curl -u admin:admin -X POST -H 'Content-Type: application/json' \\
    -d '{"server":"${SAMPLE.remoteServer}","virtualFile":"${SAMPLE.inbox}","remoteFilename":"hello.txt","fileContent":"SGVsbG8sIFBlU0lUIQ=="}' \\
    'http://127.0.0.1:${clientPort}/api/v1/transfers/send?wait=30'`;

await main(async () => {
  requireNode();
  const given = flags();
  if (given.help) {
    console.log(USAGE);
    return 0;
  }
  const options = given.freePorts
    ? { ...given, serverPort: await freePort(), clientPort: await freePort(), pesitPort: await freePort() }
    : given;
  await ensureInstalled();
  await ensureBuilt(['apps/server', 'apps/client']);
  await buildConsole();

  if (options.cluster) return startCluster(options);

  await requireFreePort(options.serverPort, '--server-port');
  await requireFreePort(options.clientPort, '--client-port');
  mkdirSync(options.data, { recursive: true });
  const database = join(options.data, 'database');
  const [server, client] = await Promise.all([
    startApp({
      ...{ app: 'server', port: options.serverPort, data: join(options.data, 'server'), database },
      settings: { CONSOLE_PEER_URL: `http://127.0.0.1:${options.clientPort}/` },
    }),
    startApp({
      ...{ app: 'client', port: options.clientPort, data: join(options.data, 'client'), database },
      settings: { CONSOLE_PEER_URL: `http://127.0.0.1:${options.serverPort}/` },
    }),
  ]);
  const rest = {
    server: new RestClient('server app', options.serverPort),
    client: new RestClient('client app', options.clientPort),
  };
  console.log(
    `server app: http://127.0.0.1:${options.serverPort}   client app: http://127.0.0.1:${options.clientPort}`,
  );
  console.log(
    `data and logs: ${relative(process.cwd(), options.data) || '.'}/{server,client}, both on the PostgreSQL in database beside them`,
  );

  const hasSample = await createSample(rest, options);
  if (hasSample) await exchange(rest, options);
  else console.log('the node has a configuration of its own: no sample is made, and none crosses');
  if (options.once) return 0;

  console.log(`
Both services are up; Ctrl-C stops them. The consoles are at these addresses; log in as admin, password admin. Or try next:
  curl -u admin:admin http://127.0.0.1:${options.serverPort}/api/v1/transfers${hasSample ? sampleCall(options.clientPort) : ''}
The REST interfaces: http://127.0.0.1:${options.serverPort}/docs and http://127.0.0.1:${options.clientPort}/docs (OpenAPI 3.1: /openapi.json); metrics: /metrics.`);
  const gone = await Promise.race([server.ended, client.ended]);
  throw new Failure(`${gone.name} ended with ${gone.how}; its last lines:\n${gone.tail()}`);
});

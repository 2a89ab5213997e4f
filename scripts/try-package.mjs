/**
 * `npm run try-package`: unpacks the tarballs of `dist/` into an empty folder and runs both apps from there as a user without rights:
 * they become ready, a file crosses and comes back, SIGTERM ends both with exit code 0.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { RestClient } from './lib/apps.mjs';
import { findPostgres, startPostgres } from './lib/postgres.mjs';
import { atEnd, Failure, freePort, main, requireNode, root, runQuietly } from './lib/process.mjs';
import { createSample, exchange } from './lib/sample.mjs';
import { inImage, insidePid, layOutImage, sandboxFault, tryClaims } from './lib/sandbox.mjs';
import { findTarball, newSecrets, ownFolder, startUnpacked, unpack } from './lib/unpacked.mjs';

const USAGE = `npm run try-package -- [flags]
  --from DIR        where the tarballs are                            (./dist)
  --nodes LIST      major versions of Node.js, as 20,22,24, each as the npm package node-<platform>
                                                                      (the one that runs this)
  --embedded        without a PostgreSQL of this machine: the tarballs bring one
  --sandbox         in bubblewrap, with the claims of the image: another user, a read-only root, nothing but Node
  --size MB         size of the file that crosses                     (4)`;

const APPS = ['server', 'client'];

function flags() {
  try {
    const { values } = parseArgs({
      options: {
        from: { type: 'string', default: join(root, 'dist') },
        nodes: { type: 'string' },
        embedded: { type: 'boolean', default: false },
        sandbox: { type: 'boolean', default: false },
        size: { type: 'string', default: '4' },
        help: { type: 'boolean', default: false },
      },
    });
    if (values.nodes !== undefined && !/^\d+(?:,\d+)*$/.test(values.nodes)) {
      throw new Failure(`--nodes: expected major versions as 20,22,24, got ${values.nodes}`);
    }
    if (values.sandbox && values.embedded) throw new Failure('--sandbox: the image holds no embedded database');
    if (!/^[1-9]\d{0,4}$/.test(values.size)) throw new Failure(`--size: expected 1 to 99999 MB, got ${values.size}`);
    return { ...values, from: resolve(values.from), megabytes: Number(values.size) };
  } catch (error) {
    throw new Failure(`${error.message}\n\n${USAGE}`);
  }
}

/** Real Nodes come as npm packages. */
async function installNode(major, scratch) {
  const name = `node-${process.platform}-${process.arch}`;
  const prefix = join(scratch, `node-${major}`);
  mkdirSync(prefix, { recursive: true });
  await runQuietly('npm', ['install', '--no-save', '--no-audit', '--no-fund', '--prefix', prefix, `${name}@${major}`]);
  return join(prefix, 'node_modules', name, 'bin/node');
}

/** Ends an app by SIGTERM; anything but exit code 0 is a failure. */
async function stop(service, isBoxed) {
  process.kill(isBoxed ? insidePid(service.pid) : service.pid, 'SIGTERM');
  const { how } = await service.ended;
  if (how !== 'exit code 0') throw new Failure(`${service.name} ended with ${how} after SIGTERM:\n${service.tail()}`);
}

/** The key that licenses are verified with is the one of the build, as build.json says. */
async function requireKey(rest, tree) {
  const { kind, vendorKey } = JSON.parse(readFileSync(join(tree, 'build.json'), 'utf8'));
  const { publicKey } = await rest.get('/api/v1/license');
  const isRight =
    kind === 'customers'
      ? publicKey.source === 'BUILD' && publicKey.fingerprint === vendorKey
      : publicKey.source === 'EVALUATION';
  if (!isRight) throw new Failure(`a build for ${kind} (${vendorKey}) verifies with ${JSON.stringify(publicKey)}`);
}

/** The tool of the tarball, beside the running app and with what that has been given. */
async function rotate(node, app, tree, { data, database, secrets }) {
  const env = { ...secrets, DATABASE_URL: database, DATA_DIRECTORY: data };
  const said = await runQuietly(node, [join(tree, 'rotate-secrets.mjs')], { cwd: tree, env });
  if (!said.includes('Nothing needs an older key')) throw new Failure(`rotate-secrets.mjs of the ${app} app: ${said}`);
}

/** Lays out the images of both apps and tries what is said of them. */
async function makeImages(node, folder, options) {
  const images = {};
  for (const app of APPS) {
    images[app] = join(folder, `image-${app}`);
    await layOutImage(node, findTarball(options.from, app), images[app]);
    const { uid } = await tryClaims(images[app], ownFolder(join(folder, `probe-${app}`)));
    console.log(`${app} app: user ${uid}, process 1, no program but Node, /data alone can be written`);
  }
  return images;
}

async function tryOn(node, trees, folder, options) {
  const version = (await runQuietly(node, ['--version'])).trim();
  console.log(`Node ${version}, both apps from their tarballs:`);
  const database = options.embedded ? join(folder, 'database') : await startPostgres(findPostgres());
  const secrets = newSecrets();
  const images = options.sandbox ? await makeImages(node, folder, options) : undefined;
  // With the embedded database each node makes its own key; these two share one.
  const start = async (app) => {
    const port = await freePort();
    const data = join(folder, app);
    const command = images && inImage(images[app], data, ['main.js']);
    const service = await startUnpacked({ app, tree: trees[app], node, port, data, database, env: secrets, command });
    await runQuietly(node, [join(trees[app], 'healthcheck.mjs')], { env: { SERVER_PORT: String(port) } });
    return { service, rest: new RestClient(`${app} app`, port, secrets.ADMIN_PASSWORD) };
  };
  const [server, client] = await Promise.all(APPS.map(start));
  const rest = { server: server.rest, client: client.rest };
  for (const app of APPS) await requireKey(rest[app], trees[app]);
  await createSample(rest, { pesitPort: await freePort() });
  if (!options.embedded && !options.sandbox) {
    for (const app of APPS) await rotate(node, app, trees[app], { data: join(folder, app), database, secrets });
  }
  const pathHere = (path) => (images ? join(folder, 'client', relative('/data', path)) : path);
  await exchange(rest, { data: folder, megabytes: options.megabytes, pathHere });
  await Promise.all([server, client].map(({ service }) => stop(service, options.sandbox)));
  console.log(`Node ${version}: ready, exchanged, both ended with exit code 0 after SIGTERM`);
}

await main(async () => {
  requireNode();
  const options = flags();
  if (options.help) {
    console.log(USAGE);
    return 0;
  }
  const fault = options.sandbox ? await sandboxFault() : undefined;
  if (fault !== undefined) {
    console.log(`The image was not tried: ${fault}.`);
    return 0;
  }
  const scratch = mkdtempSync(join(tmpdir(), 'pesit-try-'));
  // The user of the services must get as far as their own folders.
  await runQuietly('chmod', ['755', scratch]);
  atEnd(() => rmSync(scratch, { recursive: true, force: true }));
  const trees = {};
  for (const app of APPS) trees[app] = await unpack(findTarball(options.from, app), join(scratch, `unpacked-${app}`));
  const nodes = options.nodes?.split(',') ?? [undefined];
  for (const [index, major] of nodes.entries()) {
    const node = major === undefined ? process.execPath : await installNode(major, scratch);
    const folder = join(scratch, `run-${index}`);
    mkdirSync(folder);
    await tryOn(node, trees, folder, options);
  }
  return 0;
});

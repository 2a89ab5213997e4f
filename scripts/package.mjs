/**
 * `npm run package`: one tarball an app in `dist/`, with all that it needs but Node.js, and its SHA-256 beside it. The same commit
 * makes the same bytes, with the same Node.js and npm (which compress, and write the SBOM).
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { layOut } from './lib/app-tree.mjs';
import { atEnd, Failure, main, requireNode, root } from './lib/process.mjs';
import { packFolder } from './lib/tar.mjs';
import { buildConsole } from '../packages/console/build/site.mjs';
import { ensureBuilt, ensureInstalled } from './lib/workspace.mjs';

const USAGE = `npm run package -- [flags]
  --app server|client       one of them                                        (both)
  --vendor-key FILE         the vendor's public key: a build for customers      (none: for evaluation)
  --max-extension-days N    most days that extend-evaluation adds in all        (any)
  --embedded                with the embedded PostgreSQL of this platform       (without)
  --out DIR                 where the tarballs go                               (./dist)`;

const APPS = ['server', 'client'];
/** Where nothing says when: the first moment that every archive format can hold. */
const NO_TIME = Date.UTC(1980, 0, 1) / 1000;

function flags() {
  let values;
  try {
    ({ values } = parseArgs({
      options: {
        app: { type: 'string' },
        'vendor-key': { type: 'string' },
        'max-extension-days': { type: 'string' },
        embedded: { type: 'boolean', default: false },
        out: { type: 'string', default: join(root, 'dist') },
        help: { type: 'boolean', default: false },
      },
    }));
  } catch (error) {
    throw new Failure(`${error.message}\n\n${USAGE}`);
  }
  const { app, 'vendor-key': vendorKey, 'max-extension-days': days, ...rest } = values;
  if (app !== undefined && !APPS.includes(app)) throw new Failure(`--app: expected server or client, got ${app}`);
  if (days !== undefined && vendorKey === undefined) {
    throw new Failure('--max-extension-days is for a build for customers: give --vendor-key, too');
  }
  if (days !== undefined && !/^\d{1,6}$/.test(days)) {
    throw new Failure(`--max-extension-days: expected a number of days, got ${days}`);
  }
  return { ...rest, apps: app === undefined ? APPS : [app], vendorKey, days };
}

/** The commit that is packed, its time, and whether files differ from it. */
function source() {
  const git = (...args) =>
    execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  try {
    const [commit, seconds] = git('show', '-s', '--format=%H %ct', 'HEAD').trim().split(' ');
    const inputs = ['package.json', 'package-lock.json', 'tsconfig.base.json', 'apps', 'packages', 'deploy', 'scripts'];
    return { commit, seconds: Number(seconds), modified: git('status', '--porcelain', '--', ...inputs) !== '' };
  } catch {
    return { commit: null, seconds: Number(process.env.SOURCE_DATE_EPOCH ?? NO_TIME), modified: false };
  }
}

/** Makes it a build for customers; without a key it stays one for evaluation. */
async function bake(tree, { vendorKey, days }) {
  if (vendorKey === undefined) return { kind: 'evaluation' };
  let pem;
  try {
    pem = readFileSync(vendorKey, 'utf8');
  } catch (error) {
    throw new Failure(`--vendor-key cannot be read: ${error.message}`);
  }
  const { bakeBuild, BakeError, LicenseKeyError } = await import(
    new URL('../packages/license/dist/index.js', import.meta.url).href
  );
  const maxExtensionDays = days === undefined ? undefined : Number(days);
  const dist = join(tree, 'node_modules/@pesit-node/license/dist');
  try {
    const { fingerprint } = await bakeBuild({ dist, vendorKey: pem, maxExtensionDays });
    return { kind: 'customers', vendorKey: fingerprint, maxExtensionDays };
  } catch (error) {
    if (error instanceof BakeError || error instanceof LicenseKeyError) throw new Failure(error.message);
    throw error;
  }
}

const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;

async function packApp(app, options, from, scratch) {
  const began = performance.now();
  const say = (text) => console.log(`${app} app: ${text} (${((performance.now() - began) / 1000).toFixed(1)} s)`);
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const platform = options.embedded ? `-embedded-${process.platform}-${process.arch}` : '';
  const name = `pesit-node-${app}-${version}${options.vendorKey === undefined ? '-evaluation' : ''}${platform}`;
  const folder = join(scratch, app);
  const tree = join(folder, 'tree', name);
  mkdirSync(join(folder, 'npm'), { recursive: true });
  const { packages, bytes } = await layOut({
    ...{ app, tree, scratch: join(folder, 'npm') },
    ...{ seconds: from.seconds, embedded: options.embedded },
  });
  say(`${packages} packages laid out, ${megabytes(bytes)} unpacked`);
  const build = { commit: from.commit, modified: from.modified, ...(await bake(tree, options)) };
  writeFileSync(join(tree, 'build.json'), `${JSON.stringify(build, undefined, 2)}\n`);
  mkdirSync(options.out, { recursive: true });
  const path = join(options.out, `${name}.tgz`);
  // Its name last: what has the name is whole.
  const packed = await packFolder(join(folder, 'tree'), `${path}.new`, from.seconds);
  renameSync(`${path}.new`, path);
  writeFileSync(`${path}.sha256`, `${packed.sha256}  ${basename(path)}\n`);
  const shown = relative(process.cwd(), path);
  say(`${shown.startsWith('..') ? path : shown}, ${megabytes(packed.bytes)}, sha256 ${packed.sha256}`);
}

await main(async () => {
  requireNode();
  const options = flags();
  if (options.help) {
    console.log(USAGE);
    return 0;
  }
  await ensureInstalled();
  await ensureBuilt(['apps/server', 'apps/client']);
  await buildConsole();
  const from = source();
  if (from.modified)
    console.log('Files differ from the commit: build.json says so, and nobody else can make these bytes.');
  if (options.vendorKey === undefined) console.log('A build for evaluation: for customers, give --vendor-key FILE.');
  const scratch = mkdtempSync(join(tmpdir(), 'pesit-package-'));
  atEnd(() => rmSync(scratch, { recursive: true, force: true }));
  const out = resolve(options.out);
  await Promise.all(options.apps.map((app) => packApp(app, { ...options, out }, from, scratch)));
  return 0;
});

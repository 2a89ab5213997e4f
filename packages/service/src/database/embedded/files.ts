import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, chown, lchown, open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { codeOf, makeDirectories, reasonOf } from '@pesit-node/ground';
import { databaseAccount, makerAccount, runAs } from './account.js';
import type { Account } from './account.js';
import { EmbeddedDatabaseError, OR_DATABASE_URL } from './error.js';
import { dataVersion, linkLibraries, programVersion } from './programs.js';
import type { PostgresPrograms } from './programs.js';
import { runToEnd } from './run.js';

/** User and database of the service. Not the superuser, which has no way to log in. */
export const ROLE = 'pesit';

/** Paths in the directory of the embedded database. */
export interface DatabaseFiles {
  readonly root: string;
  /** PostgreSQL's own data directory. */
  readonly data: string;
  /** Where its socket is, and the pipe of those that use it. */
  readonly socket: string;
  /** Password of the service's role. */
  readonly password: string;
  readonly log: string;
  readonly libraries: string;
}

export const databaseFiles = (root: string): DatabaseFiles => ({
  root,
  data: join(root, 'data'),
  socket: join(root, 'socket'),
  password: join(root, 'password'),
  log: join(root, 'postgresql.log'),
  libraries: join(root, 'libraries'),
});

const DRAFT = 'new-';
/** Names that this code gives; a directory with anything else in it, and no database, is somebody else's. */
const OURS = /^(?:password|socket|libraries|postgresql\.log(?:\.old)?|new-.*|.*\.lock(?:\..*)?|lost\+found)$/;

const ownerOf = async (path: string): Promise<number | undefined> => {
  try {
    return (await stat(path)).uid;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
};

const giveAll = async (path: string, account: number): Promise<void> => {
  await lchown(path, account, account);
  for (const entry of await readdir(path, { recursive: true })) await lchown(join(path, entry), account, account);
};

const ofAnotherUser = (root: string, owner: number | undefined): EmbeddedDatabaseError => {
  const own = process.getuid?.();
  return new EmbeddedDatabaseError(
    `The embedded database in ${root} belongs to user ${owner ?? 'unknown'}, and this service runs as user ${own ?? 'unknown'}: ` +
      `run it as that user, or give it the database with chown -R ${own ?? ''} ${root}, ${OR_DATABASE_URL}`,
  );
};

/**
 * Makes the directory itself, for the user of this process alone.
 * @throws {EmbeddedDatabaseError} when it is somebody else's, or holds something else
 */
export const prepareRoot = async ({ root, data }: DatabaseFiles): Promise<void> => {
  try {
    await makeDirectories(root, 0o700);
    const names = await readdir(root);
    const foreign = names.find((name) => !OURS.test(name));
    if (dataVersion(data) === undefined && foreign !== undefined) {
      throw new EmbeddedDatabaseError(
        `The embedded database needs a directory of its own, and ${root} holds something else (${foreign}): ` +
          `choose another --database.directory, ${OR_DATABASE_URL}`,
      );
    }
    await chmod(root, 0o700);
  } catch (error) {
    if (codeOf(error) === 'EACCES' || codeOf(error) === 'EPERM') throw ofAnotherUser(root, await ownerOf(root));
    throw error;
  }
};

/** Directories that a version of this product wrote whose embedded database was another program. */
export const refusePredecessor = ({ root, data }: DatabaseFiles, predecessor: string): void => {
  if (dataVersion(data) !== undefined || dataVersion(predecessor) === undefined) return;
  throw new EmbeddedDatabaseError(
    `${predecessor} holds the data of the embedded database of an earlier version (PGlite), which this version cannot read. ` +
      `To begin with an empty database in ${root}, move it away: mv ${predecessor} ${predecessor}.old. ` +
      'To keep partners, files and history, keep using the earlier version, or enter them again',
  );
};

/** PostgreSQL locks to others what is not the service's: one line, where the samples have many. */
const ACCESS = `# Written by PeSIT Node. Over the socket in a directory that is closed to others; the service's role alone, with its password.
local ${ROLE} ${ROLE} scram-sha-256
`;

const BOOTSTRAP = [
  '--username=postgres',
  '--auth=reject',
  '--encoding=UTF8',
  // Code points, as on every machine: what the C library thinks of a language changes with its version, and breaks indexes.
  '--locale-provider=builtin',
  '--locale=C.UTF-8',
  '--no-instructions',
];

const flushed = async (path: string, text: string): Promise<void> => {
  const file = await open(path, 'w', 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
};

const flushDirectory = async (path: string): Promise<void> => {
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
};

/** Root of a container may lack what makes root. */
const explainRights = (error: unknown, root: string): unknown => {
  const denied =
    codeOf(error) === 'EPERM' ||
    codeOf(error) === 'EACCES' ||
    /\bEPERM\b|Operation not permitted/.test(reasonOf(error));
  if (!denied || process.getuid?.() !== 0) return error;
  return new EmbeddedDatabaseError(
    `The embedded database in ${root} runs as another user, because PostgreSQL refuses root, and this root may not make it so (${reasonOf(error)}): ` +
      `give the container the capabilities CHOWN, SETUID, SETGID and DAC_OVERRIDE, run the service as an ordinary user, ${OR_DATABASE_URL}`,
    { cause: error },
  );
};

/** initdb wants to know its user by name; a container may run a service under a number alone. */
const explain = (error: unknown): unknown => {
  const text = reasonOf(error);
  if (!text.includes('could not look up effective user ID')) return error;
  return new EmbeddedDatabaseError(
    `The embedded database cannot be made by user ${process.getuid?.() ?? ''}, which has no name on this system: ` +
      `add an entry to /etc/passwd, run the service as root (the database then takes a user of its own), ${OR_DATABASE_URL}`,
    { cause: error },
  );
};

/** Makes a new database under another name and gives it its name last: one that can be seen is whole. */
const create = async (files: DatabaseFiles, programs: PostgresPrograms, libraries: string): Promise<void> => {
  const { root, data } = files;
  const draft = join(root, `${DRAFT}${randomBytes(6).toString('hex')}`);
  const maker = makerAccount();
  const account = databaseAccount(undefined);
  const password = randomBytes(24).toString('hex');
  if (maker !== undefined) await chown(root, maker, maker);
  const run = async (args: readonly string[], program: string, input = ''): Promise<void> => {
    const command = runAs(maker, [program, ...args], { directory: draft, runs: program });
    await runToEnd(command, { libraries, cwd: root, input });
  };
  try {
    await run(['-D', draft, ...BOOTSTRAP], programs.initdb);
    // A statement a line; the database of the service is the one that initdb made for whoever comes.
    const statements = [
      `create role ${ROLE} login password '${password}'`,
      `alter database postgres rename to ${ROLE}`,
      `alter database ${ROLE} owner to ${ROLE}`,
    ];
    await run(['--single', '-D', draft, 'template1'], programs.postgres, `${statements.join('\n')}\n`);
  } catch (error) {
    throw explain(error);
  }
  await writeFile(join(draft, 'pg_hba.conf'), ACCESS);
  await flushed(files.password, password);
  if (account !== undefined) await giveAll(draft, account);
  await rename(draft, data);
  await flushDirectory(root);
};

export interface Prepared {
  readonly account: Account;
  /** For the system's linker, as `linkLibraries` returns it. */
  readonly libraries: string;
}

/**
 * Sees that there is a database that these programs can run on; makes one where there is none, which takes half a second.
 * To be called under the lock of the directory.
 * @throws {EmbeddedDatabaseError}
 */
export const prepareDatabase = async (files: DatabaseFiles, programs: PostgresPrograms): Promise<Prepared> => {
  try {
    return await prepare(files, programs);
  } catch (error) {
    throw explainRights(error, files.root);
  }
};

const prepare = async (files: DatabaseFiles, programs: PostgresPrograms): Promise<Prepared> => {
  const { root, data } = files;
  const libraries = await linkLibraries(programs, files.libraries);
  const version = await programVersion(programs, libraries);
  for (const name of await readdir(root)) {
    if (name.startsWith(DRAFT)) await rm(join(root, name), { recursive: true, force: true });
  }
  const found = dataVersion(data);
  if (found === undefined) await create(files, programs, libraries);
  else if (found !== version.split('.')[0]) {
    throw new EmbeddedDatabaseError(
      `The embedded database in ${root} was made by PostgreSQL ${found}, and this version brings PostgreSQL ${version}. ` +
        `Start the version of PeSIT Node that made it and write a copy with pg_dump, or move the data with pg_upgrade, ${OR_DATABASE_URL}`,
    );
  }
  if (!existsSync(files.password)) {
    throw new EmbeddedDatabaseError(
      `${files.password} is missing: it holds the password of the embedded database. Put it back from a copy of ${root}`,
    );
  }
  const owner = await ownerOf(data);
  const account = databaseAccount(owner);
  if (account === undefined) {
    if (owner !== process.getuid?.()) throw ofAnotherUser(root, owner);
  } else {
    // Also one that came from a copy made by root.
    if (owner !== account) await giveAll(data, account);
    await chown(root, account, account);
  }
  return { account, libraries };
};

export const readPassword = async ({ password }: DatabaseFiles): Promise<string> =>
  (await readFile(password, 'utf8')).trim();

/** A tarball of `npm run package`, unpacked and run as whoever installs it would: by a user without rights, on a Node of choice. */
import { createHash, randomBytes } from 'node:crypto';
import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { NODE_FLAGS, startApp } from './apps.mjs';
import { Failure, runQuietly } from './process.mjs';

/** A number that no distribution gives to anybody, as in the image. */
export const STRANGER = 10001;
/** Debian's `nobody`: the embedded PostgreSQL is made by a user with a name alone (docs/embedded-database.md). */
const NOBODY = 65534;

/** The newest tarball of an app in a folder; several are a question that only their maker can answer. */
export function findTarball(directory, app) {
  let names = [];
  try {
    names = readdirSync(directory).filter((name) => name.startsWith(`pesit-node-${app}-`) && name.endsWith('.tgz'));
  } catch {
    // no such folder: there is none in it either
  }
  if (names.length === 1) return join(directory, names[0]);
  throw new Failure(
    names.length === 0
      ? `${directory} holds no tarball of the ${app} app: run npm run package first`
      : `${directory} holds several tarballs of the ${app} app (${names.join(', ')}): remove those that are not meant`,
  );
}

/** Compares the tarball with the SHA-256 beside it and unpacks it into `directory`. Returns the folder that it holds. */
export async function unpack(tarball, directory) {
  const wanted = readFileSync(`${tarball}.sha256`, 'utf8').split(' ')[0];
  const found = createHash('sha256').update(readFileSync(tarball)).digest('hex');
  if (found !== wanted) throw new Failure(`${tarball} has the SHA-256 ${found}, ${wanted} stands beside it`);
  mkdirSync(directory, { recursive: true });
  await runQuietly('tar', ['-xzf', tarball, '-C', directory, '--no-same-owner']);
  const [name] = readdirSync(directory);
  return join(directory, name);
}

/** Settings that both apps share: a database, and secrets that nobody else knows. */
export function newSecrets() {
  return { SECRETS_KEY: randomBytes(32).toString('base64'), ADMIN_PASSWORD: randomBytes(12).toString('base64url') };
}

/** A folder that this user alone may write to; who is not root is that user. */
export function ownFolder(path, user = STRANGER) {
  mkdirSync(path, { recursive: true });
  if (process.getuid?.() === 0) chownSync(path, user, user);
  chmodSync(path, 0o700);
  return path;
}

/**
 * Starts the app in `tree` with nothing of this machine's environment, and waits until it is ready.
 * @param options.database the URL of a PostgreSQL, or the folder of an embedded one
 * @param options.env settings beside those of addresses, directories and database
 * @param options.command what to run in place of `node main.js`, with its flags; it finds `data` at /data
 */
export function startUnpacked({ app, tree, node, port, data, database, env, command }) {
  const isEmbedded = !database.includes('://');
  const user = isEmbedded ? NOBODY : STRANGER;
  if (isEmbedded) ownFolder(database, user);
  const isRoot = process.getuid?.() === 0;
  return startApp({
    ...{ app, port, data: ownFolder(data, user), command: command ?? [node, ...NODE_FLAGS, join(tree, 'main.js')] },
    as: {
      cwd: tree,
      env: {
        ...{ NODE_ENV: 'production', SERVER_HOST: '127.0.0.1', SERVER_PORT: String(port) },
        DATA_DIRECTORY: command === undefined ? data : '/data',
        ...(isEmbedded ? { DATABASE_DIRECTORY: database } : { DATABASE_URL: database }),
        ...env,
      },
      ...(isRoot && { uid: user, gid: user }),
    },
  });
}

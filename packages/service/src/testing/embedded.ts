import { randomBytes } from 'node:crypto';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir, userInfo } from 'node:os';
import { dirname, join } from 'node:path';

import { PGlite } from '@electric-sql/pglite';

import { embeddedDatabase } from '../database/embedded.js';
import type { PgliteInstance } from '../database/pglite-process.js';
import type { Database } from '../database/types.js';
import type { Logger } from '../logging.js';
import { deferred } from '../deferred.js';

const pgliteVersion = async (): Promise<string> => {
  const entry = createRequire(import.meta.url).resolve('@electric-sql/pglite');
  const manifest = JSON.parse(await readFile(join(dirname(entry), '../package.json'), 'utf8')) as { version: string };
  return manifest.version;
};

/** An empty PostgreSQL, made once a machine and version: `initdb` costs seconds, loading its result a fraction. */
const dump = async (): Promise<Blob> => {
  const path = join(tmpdir(), `pesit-node-pglite-${await pgliteVersion()}-${userInfo().uid}.tar`);
  const cached = await readFile(path).catch(() => undefined);
  if (cached !== undefined) return new Blob([cached]);
  const database = await PGlite.create();
  const made = await database.dumpDataDir('none');
  await database.close();
  // Under another name first: parallel test processes read it whole or not at all.
  const draft = `${path}.${randomBytes(6).toString('hex')}`;
  await writeFile(draft, Buffer.from(await made.arrayBuffer()), { mode: 0o600 });
  await rename(draft, path);
  return made;
};

let loaded: Promise<Blob> | undefined;

/** PGlite in memory, in this process. */
export const startInMemory = async (): Promise<PgliteInstance> => {
  const database = await PGlite.create({ loadDataDir: await (loaded ??= dump()) });
  const ended = deferred<Error>();
  return {
    ended: ended.promise,
    exec: (message) => database.execProtocolRaw(message),
    close: async () => {
      await database.close();
      ended.resolve(new Error('closed'));
    },
  };
};

/** The embedded database as production has it, but in memory and in this process. */
export const openInMemory = (searchPath: readonly string[], logger: Logger): Promise<Database> =>
  embeddedDatabase({ start: startInMemory, description: 'memory', searchPath, logger });

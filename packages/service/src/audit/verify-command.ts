import { existsSync } from 'node:fs';
import { join } from 'node:path';

import type { AppName, CommonConfig } from '../config/keys.js';
import { ConfigError, loadConfig } from '../config/load.js';
import type { LoadConfigOptions } from '../config/load.js';
import { DirectoryLockedError } from '../database/directory-lock.js';
import { EmbeddedDatabaseError } from '../database/embedded/error.js';
import { openDatabase } from '../database/open.js';
import { DATA_MARK } from '../lifecycle/data-directory.js';
import { createLogger } from '../logging.js';
import { verifyAudit } from './verify.js';
import type { KnownEntry } from './verify.js';

const KNOWN = /^--known=(\d{1,15}):([0-9a-f]{64})$/;

/** `--known=ID:HASH` is of the command, all other flags are of the configuration. */
const split = (
  argv: readonly string[],
): { readonly known: readonly KnownEntry[]; readonly rest: readonly string[] } => {
  const isKnown = (flag: string): boolean => flag.startsWith('--known');
  const known = argv.filter(isKnown).map((flag) => {
    const [, id, hash] = KNOWN.exec(flag) ?? [];
    if (id === undefined || hash === undefined) throw new ConfigError([`${flag}: expected --known=ID:HASH`]);
    return { id: Number(id), hash };
  });
  return { known, rest: argv.filter((flag) => !isKnown(flag)) };
};

const verify = async (options: LoadConfigOptions<AppName>, say: (line: string) => void): Promise<number> => {
  const { app } = options;
  const { known, rest } = split(options.argv);
  const config: CommonConfig = loadConfig({ ...options, argv: rest });
  const { 'database.url': url, 'data.directory': dataDirectory, 'database.directory': directory } = config;
  // Nothing is made here, least of all a database that the app would then use.
  if (url === '' && !existsSync(join(dataDirectory, DATA_MARK))) {
    throw new ConfigError([
      `data.directory: the ${app} app has never run on ${dataDirectory}, and database.url is empty`,
    ]);
  }
  const database = await openDatabase({
    ...{ url, dataDirectory, directory, searchPath: [`pesit_${app}`], poolMax: 1 },
    // A name of its own: the app may be running.
    name: `audit-verify-${app}`,
    logger: createLogger({ 'log.level': 'silent' }, { name: 'audit-verify' }),
  });
  try {
    const { entries, first, last, problems, more } = await verifyAudit(database.knex, known);
    for (const problem of problems) say(problem);
    if (more > 0) say(`and ${more} more`);
    const range = first === null ? 'no entries' : `${entries} entries, ${first} to ${last.last_id}`;
    say(`${app} app: ${range}; ${problems.length + more === 0 ? 'the chain is whole' : 'THE CHAIN IS BROKEN'}`);
    // Kept elsewhere, it tells later that nobody wrote the whole log anew.
    say(`--known=${last.last_id}:${last.last_hash}`);
    return problems.length === 0 ? 0 : 1;
  } finally {
    await database.close();
  }
};

const isSentence = (error: unknown): error is Error =>
  [ConfigError, EmbeddedDatabaseError, DirectoryLockedError].some((kind) => error instanceof kind) ||
  // Errors of the system and of PostgreSQL, which is not reached or refuses.
  (error instanceof Error && 'code' in error);

/**
 * `npm run audit-verify`: looks at the whole audit log of one app, with the configuration of the app, beside its services or
 * without them.
 * @param say prints a line
 * @returns the exit code: 0 = the chain is whole, 1 = it is not, or could not be read
 */
export const auditVerify = async (
  options: LoadConfigOptions<AppName>,
  say: (line: string) => void,
): Promise<number> => {
  try {
    return await verify(options, say);
  } catch (error) {
    if (!isSentence(error)) throw error;
    say(error.message === '' ? String((error as { readonly code?: unknown }).code) : error.message);
    return 1;
  }
};

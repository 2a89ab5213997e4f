import { existsSync } from 'node:fs';
import { join } from 'node:path';

import type { Knex } from 'knex';

import type { AppName, CommonConfig } from '../config/keys.js';
import { ConfigError, loadConfig } from '../config/load.js';
import type { LoadConfigOptions } from '../config/load.js';
import { openDatabase } from '../database/open.js';
import { DATA_MARK } from '../lifecycle/data-directory.js';
import { createLogger } from '../logging.js';
import { keysInUse } from './key-use.js';
import type { KeyUse, SecretColumn } from './key-use.js';
import type { SecretBox } from './secret-box.js';
import { openSecretBox } from './secret-key.js';

/** The app whose secrets are sealed anew. */
export interface RotationOptions extends LoadConfigOptions<AppName> {
  /** Schema of the tables of the app. */
  readonly schema: string;
  readonly columns: readonly SecretColumn[];
  /** Seals everything anew that an older key has sealed; what an app stores hashes of alone need not say it. */
  readonly sealAnew?: (knex: Knex, secrets: SecretBox) => Promise<Pick<Rotation, 'sealed' | 'unreadable'>>;
}

/** Result of `npm run rotate-secrets`: secrets sealed anew, and those that are left. */
export interface Rotation {
  /** Id of the key that is for what is new. */
  readonly keyId: string;
  /** Ids of all keys in `secrets.key`. */
  readonly keyIds: readonly string[];
  /** How many were sealed anew. */
  readonly sealed: number;
  /** Owners of sealed secrets that cannot be opened: these stay as they are. */
  readonly unreadable: readonly string[];
  readonly columns: readonly KeyUse[];
}

/**
 * Finishes the rotation of `secrets.key` for one app, with its configuration, beside its services or without them: what an
 * older key has sealed is sealed with the first one. May be broken off, and begun again.
 * @throws {ConfigError} when the configuration names no database of this app
 */
export const rotateSecrets = async (options: RotationOptions): Promise<Rotation> => {
  const { app, schema, columns, sealAnew } = options;
  const config: CommonConfig = loadConfig(options);
  const url = config['database.url'];
  const dataDirectory = config['data.directory'];
  // Nothing is made here, least of all a key or a database that the app would then use.
  if (url === '' && !existsSync(join(dataDirectory, DATA_MARK))) {
    throw new ConfigError([
      `data.directory: the ${app} app has never run on ${dataDirectory}, and database.url is empty`,
    ]);
  }
  const secrets = await openSecretBox(config);
  const database = await openDatabase({
    ...{ url, ssl: config, dataDirectory, directory: config['database.directory'], searchPath: [schema] },
    // A name of its own: the app may be running.
    ...{ name: `rotate-secrets-${app}`, poolMax: 2 },
    logger: createLogger({ 'log.level': 'silent' }, { name: 'rotate-secrets' }),
  });
  try {
    const { knex } = database;
    for (const { table } of columns) {
      const there = await knex.raw<{ rows: { there: boolean }[] }>('select to_regclass(?) is not null as there', [
        table,
      ]);
      if (there.rows[0]?.there !== true) {
        throw new ConfigError([
          `database.url: this database has no table ${schema}.${table}: the ${app} app has never run on it`,
        ]);
      }
    }
    const done = (await sealAnew?.(knex, secrets)) ?? { sealed: 0, unreadable: [] };
    const { keyId, keyIds } = secrets;
    return { keyId, keyIds, ...done, columns: await keysInUse(knex, secrets, columns) };
  } finally {
    await database.close();
  }
};

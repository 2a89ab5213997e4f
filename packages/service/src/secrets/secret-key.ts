import { randomBytes } from 'node:crypto';
import { link, open, readFile, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';

import { ConfigError } from '../config/load.js';
import type { CommonConfig } from '../config/keys.js';
import { KEY_BYTES, SecretBox } from './secret-box.js';
import { codeOf, makeDirectories, reasonOf } from '@pesit-node/ground';

const BASE64_KEY = /^[A-Za-z0-9+/_-]{43}=?$/;

const decode = (part: string): Buffer | undefined => {
  const bytes = BASE64_KEY.test(part) ? Buffer.from(part, 'base64') : undefined;
  return bytes?.length === KEY_BYTES ? bytes : undefined;
};

const parts = (text: string): readonly string[] => text.split(/[\s,]+/).filter((part) => part !== '');

const fromFile = async (path: string): Promise<readonly Buffer[]> => {
  let content: Buffer;
  try {
    content = await readFile(path);
  } catch (error) {
    const code = codeOf(error) ?? reasonOf(error);
    throw new ConfigError([
      `secrets.key: expected 32 bytes in base64, or the path of a file that holds them; it is not such a key, and as a path it cannot be read (${code})`,
    ]);
  }
  if (content.length === KEY_BYTES) return [content];
  const keys = parts(content.toString('utf8')).map(decode);
  if (keys.length === 0 || keys.includes(undefined)) {
    throw new ConfigError(['secrets.key: the file must hold 32 bytes, or keys of 32 bytes in base64, one a line']);
  }
  return keys as Buffer[];
};

/**
 * Writes a new key whole before it gets its name: both apps may start at once on one data directory, and the second must
 * find either no key or all of it.
 */
const generate = async (path: string, directory: string): Promise<void> => {
  await makeDirectories(directory, 0o700);
  const draft = `${path}.${randomBytes(6).toString('hex')}`;
  const file = await open(draft, 'wx', 0o600);
  try {
    await file.writeFile(`${randomBytes(KEY_BYTES).toString('base64')}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
  try {
    await link(draft, path);
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
  } finally {
    await rm(draft);
  }
};

/** The file that `secrets.key` names; undefined when it holds the keys themselves, or nothing. */
export const secretKeyFile = (config: Pick<CommonConfig, 'secrets.key'>): string | undefined => {
  const configured = config['secrets.key'].trim();
  return configured === '' || !parts(configured).map(decode).includes(undefined) ? undefined : resolve(configured);
};

/**
 * The box under `secrets.key`. With the embedded database and no key configured, the key is `<data.directory>/secrets.key`,
 * made at the first start (mode 0600).
 * @throws {ConfigError} when the key is missing with PostgreSQL, cannot be read, or is not 32 bytes.
 */
export const openSecretBox = async (
  config: Pick<CommonConfig, 'secrets.key' | 'data.directory' | 'database.url'>,
): Promise<SecretBox> => {
  const configured = config['secrets.key'].trim();
  const directory = config['data.directory'];
  const file = secretKeyFile(config);
  if (file !== undefined) return new SecretBox(await fromFile(file));
  if (configured !== '') return new SecretBox(parts(configured).map(decode) as Buffer[]);
  if (config['database.url'] !== '') {
    throw new ConfigError([
      'secrets.key is required with PostgreSQL, the same for all pods: set SECRETS_KEY to the output of `openssl rand -base64 32`, or to the path of a file with it',
    ]);
  }
  const path = join(directory, 'secrets.key');
  const exists = await readFile(path).then(
    () => true,
    () => false,
  );
  if (!exists) await generate(path, directory);
  return new SecretBox(await fromFile(path));
};

import { readFileSync } from 'node:fs';
import type { ConnectionOptions } from 'node:tls';

import { ConfigError } from '@pesit-node/service';
import type { CommonConfig } from '@pesit-node/service';
import type { RedisOptions } from 'ioredis';

/** Where Redis is, how to log in, and who vouches for it: options of a connection. */
export type RedisServer = Pick<
  RedisOptions,
  | 'host'
  | 'port'
  | 'username'
  | 'password'
  | 'db'
  | 'tls'
  | 'sentinels'
  | 'name'
  | 'sentinelUsername'
  | 'sentinelPassword'
  | 'sentinelTLS'
  | 'enableTLSForSentinelMode'
>;

type Key =
  | 'url'
  | 'username'
  | 'password'
  | 'sentinels'
  | 'sentinel-name'
  | 'sentinel-username'
  | 'sentinel-password'
  | 'tls-ca'
  | 'tls-certificate'
  | 'tls-key';

export type RedisConfig = Pick<CommonConfig, 'cluster.enabled' | `redis.${Key}`>;

const PORT = 6379;
const SENTINEL_PORT = 26_379;

const hostOf = (name: string): string => name.replace(/^\[|\]$/g, '');

const given = <K extends string>(key: K, value: string): Partial<Record<K, string>> =>
  value === '' ? {} : ({ [key]: value } as Record<K, string>);

/** As ioredis reads it: a `%` that encodes nothing stands for itself. */
const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};

/** @param url `redis://` or `rediss://` */
export const redisAt = (url: string): RedisServer => {
  const { protocol, hostname, port, username, password, pathname } = new URL(url);
  return {
    host: hostOf(hostname),
    port: port === '' ? PORT : Number(port),
    ...given('username', decoded(username)),
    ...given('password', decoded(password)),
    db: Number(pathname.slice(1)),
    ...(protocol === 'rediss:' ? { tls: {} } : {}),
  };
};

const pem = (key: 'redis.tls-ca' | 'redis.tls-certificate' | 'redis.tls-key', path: string): Buffer => {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new ConfigError([`${key}: expected a file that can be read: ${(error as Error).message}`]);
  }
};

const tlsOf = (config: RedisConfig): ConnectionOptions => {
  const options: ConnectionOptions = {};
  for (const [key, option] of [
    ['redis.tls-ca', 'ca'],
    ['redis.tls-certificate', 'cert'],
    ['redis.tls-key', 'key'],
  ] as const) {
    if (config[key] !== '') options[option] = pem(key, config[key]);
  }
  return options;
};

const sentinelAt = (address: string): { readonly host: string; readonly port: number } => {
  const [, host = address, port = SENTINEL_PORT] = /^(.*):(\d+)$/.exec(address) ?? [];
  return address.endsWith(']')
    ? { host: hostOf(address), port: SENTINEL_PORT }
    : { host: hostOf(host), port: Number(port) };
};

/**
 * @returns undefined where none is configured, or the pods are no cluster
 * @throws {ConfigError} when a file that it names cannot be read
 */
export const redisServer = (config: RedisConfig): RedisServer | undefined => {
  const { 'redis.url': url, 'redis.sentinels': sentinels } = config;
  if (!config['cluster.enabled'] || (url === '' && sentinels.length === 0)) return undefined;
  const { host = '', port = PORT, tls, ...server } = redisAt(url === '' ? 'redis://' : url);
  const login = { ...given('username', config['redis.username']), ...given('password', config['redis.password']) };
  const security = tls === undefined ? undefined : tlsOf(config);
  const encrypted = security === undefined ? {} : { tls: security };
  if (sentinels.length === 0) return { host, port, ...server, ...login, ...encrypted };
  return {
    ...{ ...server, ...login, ...encrypted },
    sentinels: sentinels.map(sentinelAt),
    name: config['redis.sentinel-name'],
    ...given('sentinelUsername', config['redis.sentinel-username']),
    ...given('sentinelPassword', config['redis.sentinel-password']),
    ...(security === undefined ? {} : { sentinelTLS: security, enableTLSForSentinelMode: true }),
  };
};

import { configRows } from './keys.js';
import type { CommonConfig } from './keys.js';

/** A key that is set and does nothing, for the log and `/actuator/info`. */
export interface KeyWithoutEffect {
  readonly key: string;
  /** In words, with what to set instead. */
  readonly reason: string;
}

const REDIS = ['redis.url', 'redis.sentinels'] as const;
const REDIS_LOGIN = ['redis.username', 'redis.password'] as const;
const REDIS_SENTINEL = ['redis.sentinel-username', 'redis.sentinel-password'] as const;
const REDIS_TLS = ['redis.tls-ca', 'redis.tls-certificate', 'redis.tls-key'] as const;

const unusedOfRedis = (config: Partial<CommonConfig>): readonly KeyWithoutEffect[] => {
  const isSet = (key: keyof CommonConfig): boolean => {
    const value = config[key];
    return Array.isArray(value) ? value.length > 0 : (value ?? '') !== '';
  };
  const without = (keys: readonly (keyof CommonConfig)[], reason: string): readonly KeyWithoutEffect[] =>
    keys.filter(isSet).map((key) => ({ key, reason }));
  if (config['cluster.enabled'] === false)
    return without([...REDIS, ...REDIS_LOGIN, ...REDIS_SENTINEL, ...REDIS_TLS], 'cluster.enabled is false');
  const isEncrypted = (config['redis.url'] ?? '').startsWith('rediss:');
  return [
    ...(REDIS.some(isSet) ? [] : without(REDIS_LOGIN, 'redis.url and redis.sentinels are empty')),
    ...(isSet('redis.sentinels') ? [] : without(REDIS_SENTINEL, 'redis.sentinels is empty')),
    ...(isEncrypted ? [] : without(REDIS_TLS, 'redis.url does not begin with rediss://')),
  ];
};

/** How other keys make a key useless. */
const unusedHere = (config: Partial<CommonConfig>): readonly KeyWithoutEffect[] => {
  const unused: KeyWithoutEffect[] = [];
  const isEmbedded = config['database.url'] === '';
  for (const key of ['database.username', 'database.password'] as const) {
    if (isEmbedded && (config[key] ?? '') !== '')
      unused.push({ key, reason: 'the embedded database has its own user: set database.url' });
  }
  return [...unused, ...unusedOfRedis(config)];
};

/** The keys that are set and do nothing. A key that is not in `config` is not set. */
export const keysWithoutEffect = (config: Partial<CommonConfig>): readonly KeyWithoutEffect[] => {
  const values: Readonly<Partial<Record<string, unknown>>> = config;
  const rows = configRows().flatMap(([key, { withoutEffect: reason }]) =>
    reason === undefined || values[key] === undefined ? [] : [{ key, reason }],
  );
  return [...rows, ...unusedHere(config)];
};

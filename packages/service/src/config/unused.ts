import { configRows } from './keys.js';
import type { CommonConfig } from './keys.js';

/** A key that is set and does nothing, for the log and `/actuator/info`. */
export interface KeyWithoutEffect {
  readonly key: string;
  /** In words, with what to set instead. */
  readonly reason: string;
}

/** How other keys make a key useless. */
const unusedHere = (config: Partial<CommonConfig>): readonly KeyWithoutEffect[] => {
  const unused: KeyWithoutEffect[] = [];
  const isEmbedded = config['database.url'] === '';
  for (const key of ['database.username', 'database.password'] as const) {
    if (isEmbedded && (config[key] ?? '') !== '')
      unused.push({ key, reason: 'the embedded database has its own user: set database.url' });
  }
  if (config['cluster.enabled'] === false && (config['redis.url'] ?? '') !== '') {
    unused.push({ key: 'redis.url', reason: 'cluster.enabled is false' });
  }
  return unused;
};

/** The keys that are set and do nothing. A key that is not in `config` is not set. */
export const keysWithoutEffect = (config: Partial<CommonConfig>): readonly KeyWithoutEffect[] => {
  const values: Readonly<Partial<Record<string, unknown>>> = config;
  const rows = configRows().flatMap(([key, { withoutEffect: reason }]) =>
    reason === undefined || values[key] === undefined ? [] : [{ key, reason }],
  );
  return [...rows, ...unusedHere(config)];
};

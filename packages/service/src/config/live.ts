import { EventEmitter } from 'node:events';
import { isDeepStrictEqual } from 'node:util';

import { CONFIG_KEYS } from './keys.js';
import type { AppName, Config, ConfigKey, ConfigKeyName } from './keys.js';
import { loadConfig } from './load.js';
import type { LoadConfigOptions } from './load.js';
import { keysWithoutEffect } from './unused.js';
import type { KeyWithoutEffect } from './unused.js';

/** Result of reading the sources again. */
export interface Reloaded {
  /** Keys that have another value from now on. */
  readonly changed: readonly ConfigKeyName[];
  /** Keys whose new value counts after a restart alone. */
  readonly needRestart: readonly ConfigKeyName[];
  /** Those of `changed` that are set and do nothing. */
  readonly withoutEffect: readonly KeyWithoutEffect[];
}

interface LiveConfigEvents {
  /** The sources were read again and can be used, whether anything changed or not. */
  reload: [Reloaded];
}

/**
 * The configuration of one app that can be read again. Keys that may change while the service runs (`reload` in the table) are
 * looked up in `config` each time: who needs them must not copy them.
 */
export class LiveConfig<A extends AppName> extends EventEmitter<LiveConfigEvents> {
  readonly config: Config<A>;
  readonly #options: LoadConfigOptions<A>;
  #current: Config<A>;

  /** @throws {ConfigError} */
  constructor(options: LoadConfigOptions<A>) {
    super();
    this.#options = options;
    this.#current = loadConfig(options);
    const names = Object.keys(this.#current) as (keyof Config<A>)[];
    const view = {};
    for (const name of names) {
      Object.defineProperty(view, name, { enumerable: true, get: () => this.#current[name] });
    }
    this.config = Object.freeze(view) as Config<A>;
  }

  /** Reads all sources again. @throws {ConfigError} when they cannot be used: nothing changes then */
  reload(): Reloaded {
    const next = loadConfig(this.#options);
    const names = Object.keys(next) as (ConfigKeyName & keyof Config<A>)[];
    const differing = names.filter((name) => !isDeepStrictEqual(next[name], this.#current[name]));
    const mayChange = (name: ConfigKeyName): boolean => (CONFIG_KEYS[name] as ConfigKey).reload === true;
    const changed = differing.filter(mayChange);
    // Without their types: TypeScript would compare every key with every other.
    const all: Readonly<Record<string, unknown>> = next;
    const values = Object.fromEntries(changed.map((name) => [name, all[name]])) as Partial<Config<A>>;
    this.#current = Object.freeze({ ...this.#current, ...values });
    const unused = keysWithoutEffect(this.#current);
    const reloaded = {
      changed,
      needRestart: differing.filter((name) => !mayChange(name)),
      withoutEffect: unused.filter(({ key }) => changed.some((name) => name === key)),
    };
    this.emit('reload', reloaded);
    return reloaded;
  }
}

import { join, resolve, sep } from 'node:path';

import { databaseTls, DatabaseTlsError } from '../database/database-tls.js';
import { CONFIG_KEYS, configRows } from './keys.js';
import type { AppName, CommonConfig, Config, ConfigKey, ConfigKeyName } from './keys.js';
import { PASSWORD_LENGTH } from './login-keys.js';
import { nearest } from './nearest.js';
import { isLoopback } from '../networks.js';
import { serverSslProblems } from './server-ssl-keys.js';
import { fromEnvironment, fromFlags, fromYaml } from './sources.js';
import type { Given } from './sources.js';
import { keysWithoutEffect } from './unused.js';

/** Checks a list of the file whose items only the app knows. */
export interface ListCheck {
  readonly list: 'partners' | 'files' | 'servers';
  /** Says what is wrong with it, a sentence each; no value is shown. */
  read(items: readonly unknown[]): { readonly problems: readonly string[] };
}

export interface LoadConfigOptions<A extends AppName> {
  readonly app: A;
  /** Default: none, and the items of the lists are not looked at. */
  readonly lists?: readonly ListCheck[];
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Arguments after the script: `process.argv.slice(2)`. */
  readonly argv: readonly string[];
  /** Relative paths start here: `process.cwd()`. */
  readonly cwd: string;
}

/** Everything that is wrong with the configuration, at once: one sentence a problem, none with a secret in it. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(`The configuration is not usable:\n${problems.map((problem) => `  - ${problem}`).join('\n')}`);
    this.problems = problems;
  }
}

const isKeyName = (name: string): name is ConfigKeyName => Object.hasOwn(CONFIG_KEYS, name);

const concerns = (key: ConfigKey, app: AppName): boolean => key.apps === 'both' || key.apps === app;

const show = (key: ConfigKey, value: unknown): string => {
  if (key.secret === true) return 'a value that is not shown';
  const shown = JSON.stringify(value) as string | undefined;
  return shown === undefined ? String(value) : shown.slice(0, 200);
};

/** Kubernetes sets SERVER_PORT=tcp://… in every pod of a namespace that has a service named "server". */
const serviceLinkHint = (given: Given): string =>
  given.source.startsWith('environment') && typeof given.value === 'string' && given.value.startsWith('tcp://')
    ? '; this looks like a Kubernetes service link: set enableServiceLinks: false on the pod, or use a flag'
    : '';

/**
 * Reads the configuration of one app. Sources, later wins: defaults, the YAML file named by `PESIT_CONFIG`,
 * the environment, flags.
 * @throws {ConfigError} with every problem: unknown keys in YAML or flags (with the nearest known one), values that do not fit (key,
 * source, expected, got), items of the lists that no request could ask for, the default password under `NODE_ENV=production` or where others can reach it, a short one under `NODE_ENV=production`.
 */
export const loadConfig = <A extends AppName>({ app, env, argv, cwd, lists = [] }: LoadConfigOptions<A>): Config<A> => {
  const file = env['PESIT_CONFIG'];
  const sources = [
    file === undefined || file === '' ? { given: [], problems: [] } : fromYaml(file, cwd),
    fromEnvironment(env),
    fromFlags(argv),
  ];
  const problems = sources.flatMap((source) => source.problems);
  const names = configRows().map(([name]) => name);

  const values = new Map<string, unknown>(
    configRows()
      .filter(([, key]) => concerns(key, app))
      .map(([name, key]) => [name, key.defaultFor?.[app] ?? key.default]),
  );
  for (const given of sources.flatMap((source) => source.given)) {
    const { name, value, source } = given;
    if (!isKeyName(name)) {
      problems.push(
        `unknown key ${JSON.stringify(name)} (${source}): did you mean ${nearest(name, names) ?? 'another'}?`,
      );
      continue;
    }
    const key: ConfigKey = CONFIG_KEYS[name];
    if (!concerns(key, app)) {
      // One YAML file and one environment may serve both apps; a flag was meant for this one.
      if (source.startsWith('flag'))
        problems.push(`${name} (${source}) concerns the ${key.apps} app, this is the ${app} app`);
      continue;
    }
    const parsed = key.type.safeParse(value);
    if (parsed.success) values.set(name, parsed.data);
    else {
      const expected = key.type.description ?? 'another value';
      problems.push(`${name} (${source}): expected ${expected}, got ${show(key, value)}${serviceLinkHint(given)}`);
    }
  }

  for (const check of lists) problems.push(...check.read(values.get(check.list) as readonly unknown[]).problems);

  const isDefaultPassword = values.get('admin.password') === CONFIG_KEYS['admin.password'].default;
  if (env['NODE_ENV'] === 'production' && isDefaultPassword) {
    problems.push('admin.password is the default, which is refused when NODE_ENV=production: set ADMIN_PASSWORD');
  } else if (env['NODE_ENV'] === 'production' && isShort(values.get('admin.password'))) {
    problems.push(
      `admin.password has fewer than ${PASSWORD_LENGTH} characters, which is refused when NODE_ENV=production: set a longer ADMIN_PASSWORD`,
    );
  }
  const host = values.get('server.host') as string;
  if (host === '') {
    values.set('server.host', isDefaultPassword ? '127.0.0.1' : '0.0.0.0');
  } else if (isDefaultPassword && !isLoopback(host)) {
    problems.push(
      `server.host: expected a loopback address (127.0.0.1, ::1, localhost) while admin.password is the default, got ${JSON.stringify(host)}; ` +
        'set admin.password (ADMIN_PASSWORD), or leave server.host out',
    );
  }
  const { 'transfer.executor.core-pool-size': core, 'transfer.executor.max-pool-size': max } =
    Object.fromEntries(values);
  if (Number(max) < Number(core)) {
    problems.push(
      `transfer.executor.max-pool-size: expected core-pool-size (${String(core)}) or more, got ${String(max)}`,
    );
  }
  const url = values.get('database.url');
  if (typeof url === 'string' && url !== '' && !isUrl(url, ['postgres:', 'postgresql:'])) {
    problems.push(
      `database.url: expected ${CONFIG_KEYS['database.url'].type.description ?? ''}, got a value that is not shown`,
    );
  }
  if (typeof url === 'string' && isUrl(url, ['postgres:', 'postgresql:'])) problems.push(...tlsProblems(url, values));
  if (url === '' && values.get('cluster.enabled') === true) {
    problems.push(
      'cluster.enabled: expected false with the embedded database, which belongs to one node; set database.url, or disable the cluster',
    );
  }
  const redis = values.get('redis.url');
  if (typeof redis === 'string' && redis !== '' && !(isUrl(redis, ['redis:', 'rediss:']) && hasNumber(redis))) {
    problems.push(
      `redis.url: expected ${CONFIG_KEYS['redis.url'].type.description ?? ''}, got a value that is not shown`,
    );
  }
  problems.push(...serverSslProblems(values));
  if (problems.length > 0) throw new ConfigError(problems);

  values.set(
    'database.url',
    urlOf(url as string, {
      user: values.get('database.username') as string,
      password: values.get('database.password') as string,
    }),
  );
  for (const name of FILES) {
    const path = values.get(name) as string;
    if (path !== '') values.set(name, resolve(cwd, path));
  }
  const data = resolve(cwd, values.get('data.directory') as string);
  const roots = (values.get('storage.roots') as readonly string[]).map((root) => resolve(cwd, root));
  values.set('data.directory', data);
  const database = resolve(cwd, (values.get('database.directory') as string) || join(data, 'database'));
  values.set('database.directory', database);
  const temp = resolve(cwd, (values.get('data.temp-directory') as string) || join(data, 'temp'));
  const fault = faultOfTemp(temp, { data, database });
  if (fault !== undefined) throw new ConfigError([`data.temp-directory: ${fault}`]);
  values.set('data.temp-directory', temp);
  values.set('storage.roots', Object.freeze(roots.length === 0 ? [data] : roots));
  return Object.freeze(Object.fromEntries(values)) as Config<A>;
};

const tlsProblems = (url: string, values: ReadonlyMap<string, unknown>): readonly string[] => {
  try {
    databaseTls(url, Object.fromEntries(values) as unknown as CommonConfig);
    return [];
  } catch (error) {
    if (error instanceof DatabaseTlsError) return [`database.url: ${error.message}`];
    throw error;
  }
};

/** The URL of the database with the login that has keys of its own; the driver reads one that has no host from the query. */
const urlOf = (url: string, login: { readonly user: string; readonly password: string }): string => {
  if (url === '' || (login.user === '' && login.password === '')) return url;
  const whole = new URL(url);
  for (const [name, field] of [
    ['user', 'username'],
    ['password', 'password'],
  ] as const) {
    if (login[name] === '') continue;
    whole.searchParams.delete(name);
    if (whole.hostname === '') whole.searchParams.set(name, login[name]);
    else whole[field] = encodeURIComponent(login[name]);
  }
  return whole.href;
};

/** Files that are named relative to the working directory. */
const FILES = [
  ...(['server.ssl.certificate-file', 'server.ssl.key-file', 'database.ssl.ca-file'] as const),
  ...(['database.ssl.certificate-file', 'database.ssl.key-file'] as const),
];

/** Trees of the two apps in `data.directory`, in which files are found by their names. */
const TREES = ['send', 'received', 'from-partners', 'to-partners'] as const;

const isWithin = (root: string, path: string): boolean =>
  path === root || path.startsWith(root.endsWith(sep) ? root : root + sep);

/** Why uploads may not lie there: what is not complete must not be found as a file, and no directory of partners is kept from them. */
const faultOfTemp = (temp: string, { data, database }: { readonly data: string; readonly database: string }) => {
  if (isWithin(temp, data)) return `expected a directory of its own, got ${temp}, which holds data.directory ${data}`;
  const taken = [...TREES.map((tree) => join(data, tree)), database].find(
    (other) => isWithin(other, temp) || isWithin(temp, other),
  );
  return (
    taken && `expected a directory of its own, got ${temp}, which ${taken} shares: choose another, or leave it out`
  );
};

const isUrl = (url: string, protocols: readonly string[]): boolean => {
  try {
    return protocols.includes(new URL(url).protocol);
  } catch {
    return false;
  }
};

/** Redis numbers its databases; no path is number 0. */
const hasNumber = (url: string): boolean => /^\/?\d{0,5}$/.test(new URL(url).pathname);

/** A key of fewer characters is warned of. */
const API_KEY_LENGTH = 16;

const isShort = (password: unknown): boolean => typeof password === 'string' && password.length < PASSWORD_LENGTH;

/** Sentences for the log at start: what runs, but should not in production, and what is set and does nothing. */
export const configWarnings = (config: CommonConfig): readonly string[] => {
  const warnings: string[] = [];
  if (config['admin.password'] === CONFIG_KEYS['admin.password'].default) {
    warnings.push(
      `admin.password is the default: the REST interface listens on ${config['server.host']} alone. Set admin.password (ADMIN_PASSWORD) to reach it from elsewhere`,
    );
  } else if (isShort(config['admin.password'])) {
    warnings.push(
      `admin.password has fewer than ${PASSWORD_LENGTH} characters, which can be guessed: it is refused when NODE_ENV=production`,
    );
  }
  const apiKey = config['admin.api-key'];
  if (apiKey !== '' && apiKey.length < API_KEY_LENGTH) {
    warnings.push(
      `admin.api-key (PESIT_API_KEY) has ${apiKey.length} characters, which can be guessed: take ${API_KEY_LENGTH} random ones or more`,
    );
  }
  if (config['database.url'] !== '' && databaseTls(config['database.url'], config).mode === 'require') {
    warnings.push(
      'sslmode require encrypts the line to PostgreSQL, and checks nobody: set database.ssl.mode to verify-full, and database.ssl.ca-file',
    );
  }
  if (config['cluster.enabled'] && config['redis.url'] === '' && config['redis.sentinels'].length === 0) {
    warnings.push(
      'cluster.enabled without redis.url or redis.sentinels: what one pod changes reaches the others some seconds later',
    );
  }
  return [...warnings, ...keysWithoutEffect(config).map(({ key, reason }) => `${key} is not used: ${reason}`)];
};

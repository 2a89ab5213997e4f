import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import {
  CONFIG_KEYS,
  ConfigError,
  configurationMarkdown,
  configWarnings,
  keysWithoutEffect,
  loadConfig,
} from '@pesit-node/service';

import { environmentName } from '../../src/config/keys.js';

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'pesit-config-'));
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const yaml = (content: string): string => {
  const file = join(directory, 'pesit.yaml');
  writeFileSync(file, content);
  return file;
};

const load = (env: Record<string, string> = {}, argv: string[] = []) =>
  loadConfig({ app: 'server', env, argv, cwd: '/srv/node' });

const problems = (env: Record<string, string>, argv: string[] = []): readonly string[] => {
  try {
    load(env, argv);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
};

describe('defaults', () => {
  test('are those of the design, with absolute directories', () => {
    const config = load();
    expect(config).toMatchObject({
      'server.port': 8080,
      'server.host': '127.0.0.1',
      'admin.username': 'admin',
      'admin.password': 'admin',
      'data.directory': '/srv/node/data',
      'storage.roots': ['/srv/node/data'],
      'database.url': '',
      'database.directory': '/srv/node/data/database',
      'log.level': 'info',
      'metrics.public': false,
      'shutdown.drain-timeout': 60,
      'http.max-body': 1_048_576,
      'transfer.max-entity-size': 32_768,
      'transfer.sync-points-enabled': true,
      'transfer.sync-point-interval': 256,
      'transfer.sync-window': 4,
      'transfer.read-timeout': 120_000,
      'transfer.checksum': 'sha256',
      'transfer.durability': 'checkpoint',
      'transfer.staging-retention': 7,
    });
    expect(Object.isFrozen(config)).toBe(true);
    expect(Object.isFrozen(config['storage.roots'])).toBe(true);
  });

  test('differ by app where the table says so, and each app has its own keys', () => {
    const client = loadConfig({ app: 'client', env: {}, argv: [], cwd: '/' });
    expect(client['http.max-body']).toBe(67_108_864);
    expect([
      client['transfer.connection-timeout'],
      client['transfer.executor.core-pool-size'],
      client['transfer.executor.max-pool-size'],
      client['transfer.executor.queue-capacity'],
    ]).toEqual([30_000, 4, 20, 100]);
    expect(Object.keys(load())).not.toContain('transfer.connection-timeout');
  });
});

describe('sources', () => {
  test('later wins: YAML, environment, flags', () => {
    const file = yaml('server:\n  port: 1001\n  host: 10.0.0.1\nlog.level: warn\nstorage:\n  roots: [/a, b]\n');
    const env = { PESIT_CONFIG: file, SERVER_PORT: '1002', LOG_LEVEL: 'error', ADMIN_PASSWORD: 'x9-x9-x9' };
    const config = load(env, ['--server.port=1003', '--log.level', 'debug', '--metrics.public']);
    expect(config).toMatchObject({
      'server.port': 1003,
      'server.host': '10.0.0.1',
      'log.level': 'debug',
      'metrics.public': true,
      'storage.roots': ['/a', '/srv/node/b'],
    });
    expect(load(env)['server.port']).toBe(1002);
    expect(load({ PESIT_CONFIG: file, ADMIN_PASSWORD: 'x9-x9-x9' })['server.port']).toBe(1001);
  });

  test.each(Object.keys(CONFIG_KEYS))('the environment name of %s is its own', (name) => {
    expect(Object.keys(CONFIG_KEYS).filter((other) => environmentName(other) === environmentName(name))).toEqual([
      name,
    ]);
    expect(environmentName(name)).toMatch(/^[A-Z0-9_]+$/);
  });

  test('dots and dashes become underscores', () => {
    expect(environmentName('license.evaluation-days')).toBe('LICENSE_EVALUATION_DAYS');
    expect(load({ TRANSFER_SYNC_POINT_INTERVAL: '512' })['transfer.sync-point-interval']).toBe(512);
  });

  test('decimals come as text or typed', () => {
    const client = (env: Readonly<Record<string, string>>) => loadConfig({ app: 'client', env, argv: [], cwd: '/' });
    expect(client({ TRANSFER_RETRY_MULTIPLIER: '1.5' })['transfer.retry.multiplier']).toBe(1.5);
    expect(client({ PESIT_CONFIG: yaml('transfer.retry.jitter: 0.5\n') })['transfer.retry.jitter']).toBe(0.5);
    expect(() => client({ TRANSFER_RETRY_JITTER: '1.1' })).toThrow('expected a number from 0 to 1, got "1.1"');
    expect(() => client({ TRANSFER_RETRY_JITTER: '-1' })).toThrow('expected a number from 0 to 1, got "-1"');
  });

  test('lists are comma-separated outside YAML', () => {
    expect(load({ STORAGE_ROOTS: '/a, /b,' })['storage.roots']).toEqual(['/a', '/b']);
  });

  test("unknown and empty environment variables are nobody's business", () => {
    expect(load({ SERVER_PRT: '1', SERVER_PORT: '', HOME: '/root' })['server.port']).toBe(8080);
  });

  test('an empty YAML file, and YAML keys of the other app, are fine', () => {
    expect(load({ PESIT_CONFIG: yaml('') })['server.port']).toBe(8080);
    expect(
      load({ PESIT_CONFIG: yaml('transfer:\n  connection-timeout: 1000\nserver:\n  port:\n') })['server.port'],
    ).toBe(8080);
  });
});

describe('problems', () => {
  test('an unknown key names its nearest, in YAML and in flags, all at once', () => {
    const file = yaml('server:\n  prot: 1\nlog:\n  levle: info\n');
    expect(problems({ PESIT_CONFIG: file }, ['--data.dir=/x'])).toEqual([
      `unknown key "server.prot" (${file}): did you mean server.port?`,
      `unknown key "log.levle" (${file}): did you mean log.level?`,
      'unknown key "data.dir" (flag --data.dir): did you mean data.directory?',
    ]);
  });

  const reserve = (text: string): number => load({ STORAGE_RESERVE: text })['storage.reserve'];

  test.each([
    ['0', 0],
    ['1048576', 1_048_576],
    ['64KB', 65_536],
    ['256 MB', 268_435_456],
    ['2gb', 2_147_483_648],
    ['3TB', 3_298_534_883_328],
  ])('bytes, with or without a unit: %s', (text, bytes) => {
    expect(reserve(text)).toBe(bytes);
  });

  test.each(['-1', '1.5GB', '1 M', 'much', '9999999999TB'])('bytes that are none: %s', (text) => {
    expect(() => reserve(text)).toThrow(
      `storage.reserve (environment STORAGE_RESERVE): expected bytes, or a number with KB, MB, GB or TB behind it (of 1,024): 256MB, got "${text}"`,
    );
  });

  test('a value that does not fit: the key, where it came from, what was expected, what came', () => {
    expect(
      problems({ SERVER_PORT: '80a', LOG_LEVEL: 'verbose', METRICS_PUBLIC: 'yes', TRANSFER_DURABILITY: 'eventually' }, [
        '--transfer.max-entity-size=70000',
      ]),
    ).toEqual([
      'server.port (environment SERVER_PORT): expected an integer from 0 to 65535, got "80a"',
      'log.level (environment LOG_LEVEL): expected one of trace, debug, info, warn, error, fatal, silent, got "verbose"',
      'metrics.public (environment METRICS_PUBLIC): expected true or false, got "yes"',
      'transfer.durability (environment TRANSFER_DURABILITY): expected one of checkpoint, end, none, got "eventually"',
      'transfer.max-entity-size (flag --transfer.max-entity-size): expected an integer from 256 to 65535, got "70000"',
    ]);
  });

  test('secrets are never in an error', () => {
    const file = yaml('admin:\n  password: 12345678\n');
    const [first, second] = problems({ PESIT_CONFIG: file, DATABASE_URL: 'mysql://user:hunter2@host/db' });
    expect(first).toBe(`admin.password (${file}): expected a text that is not empty, got a value that is not shown`);
    expect(second).toMatch(/^database\.url: expected postgresql:\/\/.*got a value that is not shown$/);
  });

  test('a cluster needs PostgreSQL, and its Redis a URL', () => {
    const database = { DATABASE_URL: 'postgresql://h/db' };
    expect(problems({ CLUSTER_ENABLED: 'true' })).toEqual([
      'cluster.enabled: expected false with the embedded database, which belongs to one node; set database.url, or disable the cluster',
    ]);
    expect(problems({ CLUSTER_ENABLED: 'true', ...database })).toEqual([]);
    for (const url of ['http://u:hunter2@h', 'hunter2:6379', 'hunter2', 'redis://h/hunter2']) {
      expect(problems({ REDIS_URL: url })).toEqual([
        'redis.url: expected redis://user:password@host:port/number (rediss:// with TLS), or nothing, got a value that is not shown',
      ]);
    }
    expect(problems({ CLUSTER_NAME: 'a b' })).toEqual([
      'cluster.name (environment CLUSTER_NAME): expected 1 to 64 letters, digits, `.`, `_` or `-`, got "a b"',
    ]);
    const safe = { ADMIN_PASSWORD: 'x9-x9-x9', ...database };
    expect(configWarnings(load({ ...safe, CLUSTER_ENABLED: 'true', REDIS_URL: 'rediss://h' }))).toEqual([]);
    expect(configWarnings(load({ ...safe, CLUSTER_ENABLED: 'true' }))).toEqual([
      expect.stringContaining('without redis.url'),
    ]);
    expect(configWarnings(load({ ...safe, REDIS_URL: 'redis://h' }))).toEqual([
      expect.stringContaining('redis.url is not used'),
    ]);
  });

  test('sentinels are hosts with ports; what of their keys, of the login and of TLS does nothing is told', () => {
    const safe = { ADMIN_PASSWORD: 'x9-x9-x9', DATABASE_URL: 'postgresql://h/db', CLUSTER_ENABLED: 'true' };
    const sentinels = { REDIS_SENTINELS: 'one, two.local:26380, [fd00::1]:7, 192.0.2.7' };
    expect(load({ ...safe, ...sentinels })['redis.sentinels']).toEqual([
      ...['one', 'two.local:26380', '[fd00::1]:7', '192.0.2.7'],
    ]);
    expect(configWarnings(load({ ...safe, ...sentinels, REDIS_SENTINEL_PASSWORD: 'p', REDIS_PASSWORD: 'p' }))).toEqual(
      [],
    );
    for (const wrong of ['one:', 'one:0', 'redis://one', 'a b', 'fd00::1']) {
      expect(problems({ ...safe, REDIS_SENTINELS: wrong })).toEqual([
        expect.stringMatching(/^redis\.sentinels \(environment REDIS_SENTINELS\): expected a list of host:port/),
      ]);
    }
    const login = { REDIS_PASSWORD: 'hunter2', REDIS_SENTINEL_PASSWORD: 'hunter2', REDIS_TLS_CA: '/ca.pem' };
    expect(configWarnings(load({ ...safe, REDIS_URL: 'redis://h', ...login }))).toEqual([
      'redis.sentinel-password is not used: redis.sentinels is empty',
      'redis.tls-ca is not used: redis.url does not begin with rediss://',
    ]);
    expect(configWarnings(load({ ...safe, ...login }))).toContain(
      'redis.password is not used: redis.url and redis.sentinels are empty',
    );
  });

  test('an alias in the environment is another name of its key, which comes before it', () => {
    const database = { DATABASE_URL: 'postgresql://h/db' };
    expect(load({ ...database, PESIT_CLUSTER_ENABLED: 'true' })['cluster.enabled']).toBe(true);
    expect(load({ ...database, PESIT_CLUSTER_ENABLED: 'true', CLUSTER_ENABLED: 'false' })['cluster.enabled']).toBe(
      false,
    );
    expect(problems({ PESIT_CLUSTER_ENABLED: 'yes' })).toEqual([
      'cluster.enabled (environment PESIT_CLUSTER_ENABLED): expected true or false, got "yes"',
    ]);
  });

  test('a Kubernetes service link is recognised', () => {
    expect(problems({ SERVER_PORT: 'tcp://10.0.0.7:80' })[0]).toContain('enableServiceLinks: false');
  });

  test('a pool that cannot grow to its core size', () => {
    const argv = ['--transfer.executor.core-pool-size=30'];
    expect(() => loadConfig({ app: 'client', env: {}, argv, cwd: '/' })).toThrow(
      'transfer.executor.max-pool-size: expected core-pool-size (30) or more, got 20',
    );
  });

  test('a flag of the other app, a stray argument, YAML that is none', () => {
    expect(problems({}, ['--transfer.executor.core-pool-size=1'])[0]).toContain('concerns the client app');
    expect(problems({}, ['start'])[0]).toBe('unexpected argument "start": flags have the form --server.port=8081');
    expect(problems({ PESIT_CONFIG: yaml('- a\n') })[0]).toContain('must hold a mapping');
    expect(problems({ PESIT_CONFIG: yaml('a: [') })[0]).toContain('cannot read');
    expect(problems({ PESIT_CONFIG: 'missing.yaml' })[0]).toContain('cannot read /srv/node/missing.yaml');
  });

  test('a YAML file of 1 MiB is taken, a longer one and one without an end are refused', () => {
    const content = 'server.port: 8085\n'.padEnd(1_048_576, '#');
    expect(load({ PESIT_CONFIG: yaml(content) })['server.port']).toBe(8085);
    const refused = 'at most 1048576 (1 MiB) are taken: make some of its partners, files and servers by REST instead';
    const file = yaml(`${content}#`);
    expect(problems({ PESIT_CONFIG: file })).toEqual([
      `PESIT_CONFIG: cannot read ${file}: it has 1048577 bytes, ${refused}`,
    ]);
    expect(problems({ PESIT_CONFIG: '/dev/zero' })[0]).toContain(`it has more than 1048576 bytes, ${refused}`);
  });

  test.each([
    ['HTTP_TRUSTED_PROXIES', 'http.trusted-proxies', '10.0.0.0/33'],
    ['HTTP_TRUSTED_PROXIES', 'http.trusted-proxies', '10.0.0.1,proxy.bank'],
    ['HTTP_TRUSTED_PROXIES', 'http.trusted-proxies', '::/129'],
    ['HTTP_TRUSTED_PROXIES', 'http.trusted-proxies', '10.0.0.0/'],
  ])('%s: %s=%s is no list of networks', (variable, name, value) => {
    expect(problems({ [variable]: value })).toEqual([
      `${name} (environment ${variable}): expected a list of addresses and CIDR ranges, for example 10.0.0.0/8, 192.0.2.7, fd00::/8, got "${value}"`,
    ]);
  });

  test('the default password and a short one are refused in production, and warned about elsewhere', () => {
    expect(problems({ NODE_ENV: 'production' })).toEqual([expect.stringContaining('admin.password is the default')]);
    expect(problems({ NODE_ENV: 'production', ADMIN_PASSWORD: 'x9-x9-x9' })).toEqual([]);
    expect(configWarnings(load())).toEqual([expect.stringContaining('admin.password is the default')]);
    expect(configWarnings(load({ ADMIN_PASSWORD: 'x9-x9-x9' }))).toEqual([]);
    const short = { ADMIN_PASSWORD: 'x9-x9-x' };
    expect(problems({ NODE_ENV: 'production', ...short })).toEqual([
      'admin.password has fewer than 8 characters, which is refused when NODE_ENV=production: set a longer ADMIN_PASSWORD',
    ]);
    expect(configWarnings(load(short))).toEqual([
      'admin.password has fewer than 8 characters, which can be guessed: it is refused when NODE_ENV=production',
    ]);
  });
});

describe('keys without effect', () => {
  const GZIP =
    'PeSIT knows no GZIP, only the strings of its annex A (PI 21): set compression of the virtual file, of the remote server or of the request instead';

  test('are accepted from everywhere, and said once each with the reason', () => {
    const file = yaml('transfer:\n  compression:\n    enabled: true\n    algorithm: GZIP\n');
    const config = load(
      {
        ADMIN_PASSWORD: 'x9-x9-x9',
        PESIT_CONFIG: file,
        TRANSFER_COMPRESSION_ENABLED: 'true',
        PESIT_API_KEY: 'hunter2',
      },
      ['--transfer.compression.level=6', '--api-port=8080'],
    );
    expect(keysWithoutEffect(config)).toEqual([
      { key: 'transfer.compression.enabled', reason: GZIP },
      { key: 'transfer.compression.algorithm', reason: GZIP },
      { key: 'transfer.compression.level', reason: GZIP },
      { key: 'api-port', reason: 'each app has one REST interface: set server.port' },
    ]);
    const warnings = configWarnings(config);
    expect(warnings).toHaveLength(5);
    expect(warnings[0]).toBe(
      'admin.api-key (PESIT_API_KEY) has 7 characters, which can be guessed: take 16 random ones or more',
    );
    expect(warnings[1]).toBe(`transfer.compression.enabled is not used: ${GZIP}`);
    expect(warnings.join()).not.toContain('hunter2');
  });

  test('none is said of what is not set', () => {
    expect(keysWithoutEffect(load())).toEqual([]);
  });

  test('have bounds all the same', () => {
    expect(problems({ TRANSFER_COMPRESSION_LEVEL: '12', TRANSFER_COMPRESSION_ENABLED: '2' })).toEqual([
      'transfer.compression.enabled (environment TRANSFER_COMPRESSION_ENABLED): expected true or false, got "2"',
      'transfer.compression.level (environment TRANSFER_COMPRESSION_LEVEL): expected an integer from 1 to 9, got "12"',
    ]);
  });

  test('a service called api is none of its business', () => {
    expect(keysWithoutEffect(load({ API_PORT: 'tcp://10.0.0.7:80', TRANSFER_PORT: 'tcp://10.0.0.8:80' }))).toEqual([]);
  });
});

describe('database.username and database.password', () => {
  const given = (url: string, login: Record<string, string>): string =>
    load({ DATABASE_URL: url, ...login })['database.url'];

  test('take the place of what the URL has', () => {
    const login = { DATABASE_USERNAME: 'jane@bank', DATABASE_PASSWORD: 'p%/:#?' };
    const expected = 'postgresql://jane%40bank:p%25%2F%3A%23%3F@h:5433/db';
    expect(given('postgresql://h:5433/db', login)).toBe(expected);
    expect(given('postgresql://joe:old@h:5433/db', login)).toBe(expected);
    expect(given('postgresql://h:5433/db?user=joe&password=old', login)).toBe(expected);
    expect(given('postgresql://joe:old@h/db', { DATABASE_PASSWORD: 'new' })).toBe('postgresql://joe:new@h/db');
    expect(given('postgresql://joe:old@h/db', {})).toBe('postgresql://joe:old@h/db');
    // A socket has no host that a login could stand before.
    expect(given('postgresql:///db?host=/run/pg', { DATABASE_USERNAME: 'joe' })).toBe(
      'postgresql:///db?host=%2Frun%2Fpg&user=joe',
    );
  });

  test('mean nothing to the embedded database, and the password is never shown', () => {
    const config = load({ ADMIN_PASSWORD: 'x9-x9-x9', DATABASE_USERNAME: 'joe', DATABASE_PASSWORD: 'hunter2' });
    const reason = 'the embedded database has its own user: set database.url';
    expect(keysWithoutEffect(config)).toEqual([
      { key: 'database.username', reason },
      { key: 'database.password', reason },
    ]);
    const file = yaml('database:\n  password: 12345678\n');
    expect(problems({ PESIT_CONFIG: file })[0]).toMatch(/^database\.password .*got a value that is not shown$/);
  });
});

test('pod.name and pod.namespace come from what Kubernetes is told to set', () => {
  const config = load({ POD_NAME: 'pesit-0', POD_NAMESPACE: 'bank' });
  expect([config['pod.name'], config['pod.namespace']]).toEqual(['pesit-0', 'bank']);
  expect([load()['pod.name'], load()['pod.namespace']]).toEqual(['', 'default']);
  expect(problems({ POD_NAME: 'a b' })).toEqual([
    'pod.name (environment POD_NAME): expected 0 to 253 letters, digits, `.`, `_` or `-`, got "a b"',
  ]);
});

describe('data.temp-directory', () => {
  test('is below the data directory unless it is set', () => {
    expect(load()['data.temp-directory']).toBe('/srv/node/data/temp');
    expect(load({ DATA_TEMP_DIRECTORY: 'tmp' })['data.temp-directory']).toBe('/srv/node/tmp');
  });

  test.each(['data', '.', '/', 'data/send', 'data/send/in', 'data/received', 'data/from-partners', 'data/database/x'])(
    '%s is refused: what is not complete must be found by nobody',
    (path) => {
      expect(problems({ DATA_TEMP_DIRECTORY: path })).toEqual([
        expect.stringMatching(/^data\.temp-directory: expected a directory of its own, got \//),
      ]);
    },
  );
});

describe('unsafe start', () => {
  test('with the default password REST listens on the loopback address alone, and the log says so and how to change it', () => {
    const config = load();
    expect(config['server.host']).toBe('127.0.0.1');
    expect(configWarnings(config)).toContain(
      'admin.password is the default: the REST interface listens on 127.0.0.1 alone. Set admin.password (ADMIN_PASSWORD) to reach it from elsewhere',
    );
  });

  test('with a password of its own it listens everywhere, unless told otherwise', () => {
    expect(load({ ADMIN_PASSWORD: 'x9-x9-x9' })['server.host']).toBe('0.0.0.0');
    expect(load({ ADMIN_PASSWORD: 'x9-x9-x9', SERVER_HOST: '10.0.0.1' })['server.host']).toBe('10.0.0.1');
  });

  test.each(['0.0.0.0', '::', '10.0.0.1', 'node.bank', '::ffff:10.0.0.1'])(
    'server.host %s with the default password is refused, whatever NODE_ENV says',
    (host) => {
      const refusal =
        `server.host: expected a loopback address (127.0.0.1, ::1, localhost) while admin.password is the default, got "${host}"; ` +
        'set admin.password (ADMIN_PASSWORD), or leave server.host out';
      for (const environment of [{}, { NODE_ENV: 'development' }, { ADMIN_PASSWORD: 'admin' }]) {
        expect(problems({ ...environment, SERVER_HOST: host })).toEqual([refusal]);
      }
      expect(problems({ NODE_ENV: 'production', SERVER_HOST: host })).toContain(refusal);
      expect(problems({}, [`--server.host=${host}`])).toEqual([refusal]);
    },
  );

  test.each(['127.0.0.1', '127.8.9.10', '::1', 'localhost', '::ffff:127.0.0.1'])('%s is loopback', (host) => {
    expect(load({ SERVER_HOST: host })['server.host']).toBe(host);
  });
});

test('the documentation table has a row a key, with the environment name and the defaults', () => {
  const [table = '', , unused = ''] = configurationMarkdown().split('\n\n');
  const rows = table.trimEnd().split('\n');
  expect(rows.length + unused.trimEnd().split('\n').length).toBe(Object.keys(CONFIG_KEYS).length + 4);
  expect(table).toContain('| `server.port` | `SERVER_PORT` | both | an integer from 0 to 65535 | `8080` |');
  expect(table).toContain('`1048576`; client app `67108864` | bytes | yes |');
  for (const row of rows) expect(row.replaceAll('\\|', '').split('|')).toHaveLength(10);
  expect(unused).toContain(
    '| `transfer.compression.level` | `TRANSFER_COMPRESSION_LEVEL` | an integer from 1 to 9 | PeSIT knows no GZIP',
  );
});

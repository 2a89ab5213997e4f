/** Every key of the interface specification starts the app that it belongs to; what it means here is in docs/configuration.md. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { configurationMarkdown, configWarnings, keysWithoutEffect, loadConfig } from '@pesit-node/service';

import { DECLARED_LISTS as CLIENT_LISTS } from '../../apps/client/src/index.js';
import { DECLARED_LISTS as SERVER_LISTS } from '../../apps/server/src/index.js';

type App = 'server' | 'client';
type Row = readonly [key: string, value: string | number | boolean, apps: readonly App[]];

const BOTH = ['server', 'client'] as const;

/** Lists of one file for both. */
const DECLARED = { server: SERVER_LISTS, client: CLIENT_LISTS };

/** Limits and Operations of the specification, written down from it: both variants, and what its chapters name besides. */
const KEYS: readonly Row[] = [
  ['transfer.max-entity-size', 4096, BOTH],
  ['transfer.chunk-size', 32_768, BOTH],
  ['transfer.sync-points-enabled', true, BOTH],
  ['transfer.sync-point-interval', 256, BOTH],
  ['transfer.read-buffer-size', 65_536, BOTH],
  ['transfer.write-buffer-size', 65_536, BOTH],
  ['transfer.socket-buffer-size', 65_536, BOTH],
  ['transfer.executor.core-pool-size', 4, ['client']],
  ['transfer.executor.max-pool-size', 20, ['client']],
  ['transfer.executor.queue-capacity', 100, ['client']],
  ['transfer.connection-timeout', 30_000, ['client']],
  ['transfer.read-timeout', 600_000, BOTH],
  ['transfer.write-timeout', 600_000, BOTH],
  ['transfer.compression.enabled', true, BOTH],
  ['transfer.compression.algorithm', 'GZIP', BOTH],
  ['transfer.compression.level', 6, BOTH],
  ['transfer.connection.pool.max-connections-per-host', 10, ['client']],
  ['transfer.connection.pool.idle-timeout', 300_000, ['client']],
  ['ssl.protocol', 'TLSv1.3', BOTH],
  ['ssl.cipher-suites', 'TLS_AES_256_GCM_SHA384,TLS_AES_128_GCM_SHA256', BOTH],
  ['ssl.session-cache-size', 1000, BOTH],
  ['ssl.session-timeout', 86_400, BOTH],
  ['ssl.keystore-name', 'node', BOTH],
  ['ssl.truststore-name', 'partners', BOTH],
  ['admin.username', 'admin', BOTH],
  ['admin.password', 'a-password-of-its-own', BOTH],
  ['license.file', '/etc/pesit/license.txt', BOTH],
  ['license.content', 'ZXlK', BOTH],
  ['license.evaluation-days', 30, BOTH],
  ['cluster.enabled', true, BOTH],
  ['cluster.name', 'pesit', BOTH],
  ['database.url', 'postgresql://db.bank:5432/pesit', BOTH],
  ['database.username', 'pesit', BOTH],
  ['database.password', 'secret', BOTH],
  ['data.temp-directory', '/var/lib/pesit/temp', BOTH],
  ['server.port', 8080, BOTH],
  ['api-port', 8080, BOTH],
  ['transfer-port', 9081, BOTH],
];

/** The names that the specification gives to variables of the environment. */
const VARIABLES: Readonly<Record<string, string>> = {
  PESIT_CLUSTER_ENABLED: 'true',
  POD_NAME: 'pesit-server-0',
  POD_NAMESPACE: 'default',
  PESIT_API_KEY: 'a-key',
  PESIT_AUDIT_MAX_ENTRIES: '50000',
  PESIT_CERT_ROTATION_DAYS: '30',
};

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'pesit-keys-'));
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

type Lists = Readonly<Record<'partners' | 'files' | 'servers', readonly unknown[]>>;

const ofApp = (app: App): readonly Row[] => KEYS.filter(([, , apps]) => apps.includes(app));

describe.each(BOTH)('the %s app', (app) => {
  // Alone each key has to find what it needs.
  const needs = (name: string): Readonly<Record<string, string>> =>
    name.startsWith('cluster.') ? { DATABASE_URL: 'postgresql://h/db' } : {};

  test.each(ofApp(app))('starts with %s, as a flag and in the environment', (name, value) => {
    const flag = loadConfig({ app, env: needs(name), argv: [`--${name}=${value}`], cwd: directory });
    expect(Object.keys(flag)).toContain(name);
    const variable = name.toUpperCase().replace(/[.-]/g, '_');
    loadConfig({ app, env: { ...needs(name), [variable]: String(value) }, argv: [], cwd: directory });
  });

  test('starts with all of them in one file, whatever the other app is', () => {
    const file = join(directory, 'pesit.yaml');
    const remote = '{ name: bank, host: bank.example, serverId: BANK, clientId: N1, password: s3cr-one }';
    const partners = 'partners: [{ id: BANK1, password: s3cr-one, accessType: BOTH }]';
    const lists = `${partners}\nfiles: [{ id: PAY }]\nservers: [{ serverId: N1, port: 6502 }, ${remote}]\n`;
    writeFileSync(file, lists + KEYS.map(([name, value]) => `${name}: ${JSON.stringify(value)}\n`).join(''));
    const options = { env: { ...VARIABLES, PESIT_CONFIG: file }, argv: [], cwd: directory, lists: DECLARED[app] };
    const config = loadConfig({ app, ...options });
    const places = DECLARED[app].map(({ list }) => list).sort();
    expect(places).toEqual(app === 'server' ? ['files', 'partners', 'servers'] : ['servers']);
    const declared = DECLARED[app].flatMap((list) => list.read((config as Lists)[list.list]).items);
    expect(declared.map(({ place }) => place).sort()).toEqual(
      app === 'server' ? ['files[0]', 'partners[0]', 'servers[0]'] : ['servers[1]'],
    );
    const unused = keysWithoutEffect(config);
    expect(configWarnings(config).join()).not.toContain('s3cr-one');
    for (const { key, reason } of unused) {
      expect(configWarnings(config).filter((line) => line === `${key} is not used: ${reason}`)).toHaveLength(1);
    }
  });
});

test('the page of the configuration has each of them', () => {
  const page = configurationMarkdown();
  for (const [name] of KEYS) expect(page).toContain(`| \`${name}\` |`);
  for (const name of Object.keys(VARIABLES)) expect(page).toContain(`\`${name}\``);
});

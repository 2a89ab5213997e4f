/** TLS with a real PostgreSQL: what each `sslmode` promises, and what is said where it does not work. */
import { spawn } from 'node:child_process';
import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { TestCa } from '@pesit-node/net/testing/certificates';
import { ConfigError, loadConfig, openDatabase } from '@pesit-node/service';
import type { Database } from '@pesit-node/service';
import { captureLog } from '@pesit-node/service/testing';

const lib = (name: string): string => JSON.stringify(fileURLToPath(new URL(`../lib/${name}`, import.meta.url)));

/** Starts one that takes TLS, and no client without a certificate as `known`; it ends with its standard input. */
const START = `
  import { once } from 'node:events';
  import { appendFileSync, chownSync, copyFileSync, chmodSync, readFileSync, writeFileSync } from 'node:fs';
  import { join } from 'node:path';
  import { main } from ${lib('process.mjs')};
  import { createCluster, findPostgres } from ${lib('postgres.mjs')};
  import { serviceDirectory, startService } from ${lib('private-service.mjs')};
  await main(async () => {
    const { directory, as } = serviceDirectory('tls');
    for (const name of ['ca.pem', 'server.pem', 'server.key']) {
      const path = join(directory, name);
      copyFileSync(join(process.argv[1], name), path);
      chmodSync(path, 0o600);
      if (as.uid !== undefined) chownSync(path, as.uid, as.gid);
    }
    const file = (name) => join(directory, name);
    const made = await createCluster(findPostgres(), {
      ssl: 'on', ssl_cert_file: file('server.pem'), ssl_key_file: file('server.key'), ssl_ca_file: file('ca.pem'),
      listen_addresses: 'localhost',
    });
    const hba = join(made.args[1], 'pg_hba.conf');
    writeFileSync(hba, 'hostssl all known all cert\\nhost all pesit all scram-sha-256\\n');
    await startService(made.command, made.args, { as: made.as, ready: /ready to accept connections/, stopSignal: 'SIGINT' });
    console.log('URL=' + made.url);
    process.stdin.resume();
    await once(process.stdin, 'end');
    return 0;
  });`;

let directory: string;
let postgres: ChildProcessWithoutNullStreams;
let url: URL;
const path = (name: string): string => join(directory, name);
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'pesit-pg-tls-'));
  const [ca, other] = [await TestCa.create('Database CA'), await TestCa.create('Other CA')];
  // Its names do not hold the address at which it is called.
  const server = await ca.issue('db', { sans: [{ type: 'dns', value: 'localhost' }] });
  const known = await ca.issue('known');
  for (const [name, text] of Object.entries({
    ...{ 'ca.pem': ca.certificate, 'other.pem': other.certificate },
    ...{ 'server.pem': server.certificateChain, 'server.key': server.privateKey },
    ...{ 'known.pem': known.certificateChain, 'known.key': known.privateKey },
  })) {
    writeFileSync(path(name), text);
  }
  postgres = spawn(process.execPath, ['--input-type=module', '-e', START, directory]);
  let said = '';
  postgres.stderr.on('data', (piece: Buffer) => (said += piece.toString()));
  for await (const piece of postgres.stdout) {
    said += String(piece);
    const found = /^URL=(\S+)$/m.exec(said)?.[1];
    if (found !== undefined) {
      url = new URL(found);
      break;
    }
  }
  if (said.includes('URL=')) return;
  throw new Error(`PostgreSQL did not start: ${said}`);
}, 120_000);
afterAll(async () => {
  const ended = once(postgres, 'close');
  postgres.stdin.end();
  await ended;
  rmSync(directory, { recursive: true, force: true });
});

let database: Database | undefined;
afterEach(async () => {
  await database?.close();
  database = undefined;
});

type Fields = Readonly<Record<string, string>>;
/** Names of files as their paths. */
const inFull = (fields: Fields): Fields =>
  Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, /\.(?:pem|key)$/.test(value) ? path(value) : value]),
  );

/** @param query of the URL @param keys of the configuration, below `database.ssl` */
const connected = async (query: Fields, keys: Fields = {}, host = 'localhost', user?: string) => {
  const called = new URL(url);
  called.hostname = host;
  if (user !== undefined) [called.username, called.password] = [user, ''];
  for (const [name, value] of Object.entries(query)) called.searchParams.set(name, value);
  const flags = Object.entries(keys).map(([name, value]) => `--database.ssl.${name}=${value}`);
  const ssl = loadConfig({ app: 'server', env: {}, argv: flags, cwd: directory });
  database = await openDatabase({
    ...{ url: called.href, ssl, dataDirectory: directory, name: 'x', searchPath: ['public'] },
    logger: captureLog().logger,
  });
  await database.ping(60_000);
  const { rows } = await database.knex.raw<{ rows: { ssl: boolean; version: string | null }[] }>(
    'select ssl, version from pg_stat_ssl where pid = pg_backend_pid()',
  );
  return rows[0];
};
const PLAIN = { ssl: false };
const TLS = { ssl: true, version: 'TLSv1.3' };
const UNKNOWN = /certificate.*: name the CA of its certificate in database\.ssl\.ca-file$/;

describe('sslmode', () => {
  test.each([
    ['nothing', {}, {}, PLAIN],
    ['disable', { sslmode: 'disable' }, {}, PLAIN],
    ['require, whoever it is', { sslmode: 'require' }, {}, TLS],
    ['no-verify, the same', { sslmode: 'no-verify' }, {}, TLS],
    ['require, with the CA', { sslmode: 'require' }, { 'ca-file': 'ca.pem' }, TLS],
    ['verify-ca', { sslmode: 'verify-ca' }, { 'ca-file': 'ca.pem' }, TLS],
    ['verify-full', { sslmode: 'verify-full' }, { 'ca-file': 'ca.pem' }, TLS],
    ['the key, not the URL', { sslmode: 'disable' }, { mode: 'verify-full', 'ca-file': 'ca.pem' }, TLS],
    ['verify-full with the CA in the URL', { sslmode: 'verify-full', sslrootcert: 'ca.pem' }, {}, TLS],
    ['ssl=true of the driver', { ssl: 'true' }, { 'ca-file': 'ca.pem' }, TLS],
  ] as const)('%s', async (_, query: Fields, keys: Fields, expected) => {
    expect(await connected(inFull(query), inFull(keys))).toMatchObject(expected);
  });

  test('verify-ca does not look at the name, verify-full does', async () => {
    const keys = inFull({ 'ca-file': 'ca.pem' });
    expect(await connected({ sslmode: 'verify-ca' }, keys, '127.0.0.1')).toMatchObject(TLS);
    await database?.close();
    await expect(connected({ sslmode: 'verify-full' }, keys, '127.0.0.1')).rejects.toThrow(
      /127\.0\.0\.1.*: call it by a name of its certificate, or set database\.ssl\.mode to verify-ca$/,
    );
  });

  test.each([
    ['verify-ca', 'other.pem'],
    ['verify-full', 'other.pem'],
    ['require', 'other.pem'],
    ['verify-full', ''],
  ])('%s with the wrong CA (%s) is refused, in words', async (sslmode, file) => {
    await expect(connected({ sslmode }, file === '' ? {} : inFull({ 'ca-file': file }))).rejects.toThrow(UNKNOWN);
  });

  test('a certificate of ours is the login', async () => {
    const keys = inFull({ 'ca-file': 'ca.pem', 'certificate-file': 'known.pem', 'key-file': 'known.key' });
    await connected({ sslmode: 'verify-full' }, keys);
    await database?.knex.raw('create role known login');
    await database?.close();
    expect(await connected({ sslmode: 'verify-full' }, keys, 'localhost', 'known')).toMatchObject(TLS);
  });

  test('a CA that is renewed in its file counts for the next connection', async () => {
    writeFileSync(path('changing.pem'), '');
    const keys = inFull({ 'ca-file': 'changing.pem' });
    await expect(connected({ sslmode: 'verify-full' }, keys)).rejects.toThrow();
    writeFileSync(path('changing.pem'), readFileSync(path('ca.pem')));
    await database?.ping(60_000);
  });

  test('a file that is missing is said at once', async () => {
    await expect(connected({ sslmode: 'verify-full' }, { 'ca-file': '/nowhere/ca.pem' })).rejects.toThrow(
      'TLS with PostgreSQL cannot be spoken: ENOENT',
    );
  });

  test.each(['prefer', 'allow', 'enforce'])('%s is refused at the start', (sslmode) => {
    const env = { DATABASE_URL: `postgresql://pesit@db/pesit?sslmode=${sslmode}` };
    expect(() => loadConfig({ app: 'server', env, argv: [], cwd: directory })).toThrow(ConfigError);
  });
});

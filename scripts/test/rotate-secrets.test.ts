/** `npm run rotate-secrets`, as a process: over a PostgreSQL, and beside a service with an embedded database. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { afterAll, describe, expect, test } from '@jest/globals';
import { PasswordHasher, SecretBox } from '@pesit-node/service';
import { withDatabase } from '@pesit-node/service/testing';

import { CLIENT_MIGRATIONS } from '../../apps/client/src/index.js';
import { openFor } from '../../apps/client/src/remote-servers/secrets.js';
import { remoteServerStore } from '../../apps/client/src/remote-servers/store.js';
import { MIGRATIONS } from '../../apps/server/src/index.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const directory = mkdtempSync(join(tmpdir(), 'pesit-rotate-'));
afterAll(() => rmSync(directory, { recursive: true }));

const [NEW, OLD, LOST] = [8, 7, 6].map((byte) => Buffer.alloc(32, byte)) as [Buffer, Buffer, Buffer];
const base64 = (...keys: readonly Buffer[]): string => keys.map((key) => key.toString('base64')).join(',');
const [now, before, lost] = [new SecretBox([NEW]), new SecretBox([OLD]), new SecretBox([LOST])];

const run = async (file: string, args: readonly string[], env: Readonly<Record<string, string>>) => {
  const child = spawn(process.execPath, [join(root, file), ...args], {
    ...{ cwd: root, stdio: ['ignore', 'pipe', 'pipe'] },
    env: { PATH: process.env['PATH'] ?? '', DATA_DIRECTORY: join(directory, 'none'), ...env },
  });
  const said = { stdout: '', stderr: '' };
  child.stdout.on('data', (piece: Buffer) => (said.stdout += String(piece)));
  child.stderr.on('data', (piece: Buffer) => (said.stderr += String(piece)));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, ...said };
};
const rotate = (app: string, env: Readonly<Record<string, string>>, ...flags: readonly string[]) =>
  run('scripts/rotate-secrets.mjs', [app, ...flags], env);

withDatabase((harness) => {
  test('client app: all that an older key has sealed is sealed with the first, and what is left is named', async () => {
    const database = await harness.open({ migrations: [CLIENT_MIGRATIONS], searchPath: [CLIENT_MIGRATIONS.schema] });
    const { knex } = database;
    const server = { host: 'bank.example', port: 6502, serverId: 'BANK', clientId: 'NODE', preconnectId: 'PRE' };
    const passwords = { password: 'k1-pw', preconnectPassword: 'k2-pw' };
    // More than one batch.
    for (let i = 1; i <= 120; i++)
      await remoteServerStore(knex, before).create({ name: `bank${i}`, ...server, ...passwords });
    await remoteServerStore(knex, now).create({ name: 'anew', ...server, password: 'k1-pw' });
    await remoteServerStore(knex, lost).create({ name: 'lost', ...server, password: 'k1-pw' });
    const secret = before.seal('whsec_k1-pw', JSON.stringify(['hook', 'batch', 'secret']));
    await knex('hooks').insert({ hook_id: 'batch', enabled: false, target: 'https://batch.example/', secret });
    const env = { DATABASE_URL: database.url, SECRETS_KEY: base64(NEW, OLD) };

    const first = await rotate('client', env);
    const counts = {
      [now.keyId]: `121 under ${now.keyId}`,
      [lost.keyId]: `1 under ${lost.keyId} (not in secrets.key)`,
    };
    const inOrder = [now.keyId, lost.keyId]
      .sort()
      .map((id) => counts[id])
      .join(', ');
    expect(first).toEqual({
      code: 1,
      stderr: '100 of 122 remote servers\n122 of 122 remote servers\n',
      stdout: `client app, first key of secrets.key: ${now.keyId}; 241 sealed anew
  remote_servers.password: ${inOrder}
  remote_servers.preconnect_password: 120 under ${now.keyId}
  keystores.private_key: none
  hooks.secret: 1 under ${now.keyId}
Cannot be opened, and stay as they are: "lost". Set their passwords again (PUT /api/v1/servers/{id}), give keystores anew (PUT /api/v1/certificates/keystores/{name}) and secrets of hooks (PUT /api/v1/hooks/{hookId}), or add the key to secrets.key.
1 still need an older key: leave it in secrets.key, and run this again later
`,
    });
    const rows = await remoteServerStore(knex, now).list();
    for (const row of rows.filter(({ name }) => name !== 'lost')) {
      expect(openFor(now, 'password', row, row.password ?? '')).toBe('k1-pw');
      if (row.name !== 'anew')
        expect(openFor(now, 'preconnect_password', row, row.preconnect_password ?? '')).toBe('k2-pw');
    }
    await knex('remote_servers').where({ name: 'lost' }).delete();
    const again = await rotate('client', env);
    expect([again.code, again.stdout.split('\n')[0]]).toEqual([
      0,
      `client app, first key of secrets.key: ${now.keyId}; 0 sealed anew`,
    ]);
    expect(again.stdout).toContain('Nothing needs an older key: the others can be removed from secrets.key\n');
    expect([first.stdout, first.stderr, again.stdout].join()).not.toMatch(/k[12]-pw/);
  });

  test('server app: hashes stay until their partners log in, and are counted by partner', async () => {
    const database = await harness.open({ migrations: [MIGRATIONS], searchPath: [MIGRATIONS.schema] });
    const cheap = { logN: 10, r: 8, p: 1 };
    const hashes = {
      ACME: await new PasswordHasher(before, cheap).hash('k1-pw'),
      BANK: await new PasswordHasher(now, cheap).hash('k1-pw'),
      FIRST: `$scrypt$ln=15,r=8,p=1$${'A'.repeat(22)}$${'A'.repeat(43)}`,
    };
    for (const [partner, hash] of Object.entries(hashes))
      await database
        .knex('partners')
        .insert({ ...{ partner_id: partner, password_hash: hash, enabled: true, access_type: 'BOTH' } });
    const { code, stdout, stderr } = await rotate('server', {
      DATABASE_URL: database.url,
      SECRETS_KEY: base64(NEW, OLD),
    });
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toContain(`first key of secrets.key: ${now.keyId}; 0 sealed anew\n  partners.password_hash: `);
    for (const part of [`1 under ${before.keyId} (older)`, `1 under ${now.keyId}`, '1 without a key'])
      expect(stdout).toContain(part);
    expect(stdout).toContain('Still under older keys, password_hash: "ACME". The next login of each renews it');
    expect(stdout).toContain('1 still need an older key: leave it in secrets.key');
    expect(await database.knex('partners').pluck('password_hash').orderBy('partner_id')).toEqual(Object.values(hashes));
  });

  test('a database on which the app has never run is refused in words', async () => {
    const { url } = await harness.open({ searchPath: [MIGRATIONS.schema] });
    const { code, stderr } = await rotate('client', { DATABASE_URL: url, SECRETS_KEY: base64(NEW) });
    expect([code, stderr]).toEqual([
      1,
      'The configuration is not usable:\n  - database.url: this database has no table pesit_client.remote_servers: the client app has never run on it\n',
    ]);
  });
});

describe('the embedded database', () => {
  test('where no service has run nothing is made: no key, no database', async () => {
    const data = join(directory, 'nowhere');
    const { code, stderr } = await rotate('client', {}, `--data.directory=${data}`);
    expect([code, stderr]).toEqual([
      1,
      `The configuration is not usable:\n  - data.directory: the client app has never run on ${data}, and database.url is empty\n`,
    ]);
    expect(existsSync(data)).toBe(false);
  });

  test('beside the service that runs: the new key in the file, one restart, and the old one can go', async () => {
    const data = join(directory, 'data');
    const key = join(data, 'secrets.key');
    const env = { DATA_DIRECTORY: data, SERVER_PORT: '0', SERVER_HOST: '127.0.0.1' };
    const start = async () => {
      const child = spawn(process.execPath, [join(root, 'apps/client/dist/main.js')], {
        ...{ stdio: ['ignore', 'pipe', 'inherit'], env: { PATH: '/usr/bin:/bin', ...env } },
      });
      const ended = once(child, 'close');
      let said = '';
      child.stdout.on('data', (piece: Buffer) => (said += String(piece)));
      const portOf = (): number | undefined => {
        const line = said.split('\n').find((text) => text.includes('REST interface ready') && text.endsWith('}'));
        return line === undefined ? undefined : (JSON.parse(line) as { readonly port: number }).port;
      };
      while (portOf() === undefined) await once(child.stdout, 'data');
      const api = `http://127.0.0.1:${portOf()}`;
      while (!(await fetch(`${api}/actuator/health/readiness`)).ok) await new Promise(setImmediate);
      const stop = async () => {
        child.kill('SIGTERM');
        await ended;
      };
      return { api, stop };
    };
    const authorization = `Basic ${Buffer.from('admin:admin').toString('base64')}`;

    const first = await start();
    const body = JSON.stringify({
      name: 'bank',
      host: 'bank.example',
      port: 6502,
      serverId: 'S',
      clientId: 'C',
      password: 'k1-pw',
    });
    const headers = { authorization, 'content-type': 'application/json' };
    expect((await fetch(`${first.api}/api/v1/servers`, { method: 'POST', headers, body })).status).toBe(201);
    await first.stop();
    writeFileSync(key, `${NEW.toString('base64')}\n${readFileSync(key, 'utf8')}`);
    const second = await start();
    const metric = async (api: string): Promise<string | undefined> => {
      const text = await (await fetch(`${api}/metrics`, { headers: { authorization } })).text();
      return /^pesit_secrets_under_older_keys\{column="remote_servers\.password"\} (\d+)/m.exec(text)?.[1];
    };
    try {
      expect(await metric(second.api)).toBe('1');
      const done = await rotate('client', env);
      expect([done.code, done.stderr]).toEqual([0, '1 of 1 remote servers\n']);
      expect(done.stdout).toContain(`${now.keyId}; 1 sealed anew`);
      expect(await metric(second.api)).toBe('0');
    } finally {
      await second.stop();
    }
    writeFileSync(key, `${NEW.toString('base64')}\n`);
    const last = await rotate('client', env);
    expect([last.code, last.stdout]).toEqual([
      0,
      expect.stringContaining('Nothing needs an older key, and secrets.key holds none'),
    ]);
  });
});

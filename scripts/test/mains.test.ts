/** The two services as processes: what an operator meets at the command line. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo, Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { CONFIG_KEYS } from '@pesit-node/service';

let directory: string;
let servers: Server[];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'pesit-main-'));
  servers = [];
});
afterEach(() => {
  for (const server of servers) server.close();
  rmSync(directory, { recursive: true, force: true });
});

/** Something else that has a port. */
const listening = async (onConnection: () => void = () => undefined): Promise<number> => {
  const server = createServer((socket) => {
    socket.destroy();
    onConnection();
  });
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
};

/** A port that was free just now. */
const freePort = async (): Promise<number> => {
  const port = await listening();
  const server = servers.pop();
  server?.close();
  if (server !== undefined) await once(server, 'close');
  return port;
};

const start = (app: string, flags: readonly string[], env: Readonly<Record<string, string>> = {}) => {
  const main = fileURLToPath(new URL(`../../apps/${app}/dist/main.js`, import.meta.url));
  const child = spawn(process.execPath, [main, ...flags], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: '/usr/bin:/bin', DATA_DIRECTORY: join(directory, 'data'), ...env },
  });
  const text = { stdout: '', stderr: '' };
  child.stdout.on('data', (piece: Buffer) => (text.stdout += String(piece)));
  child.stderr.on('data', (piece: Buffer) => (text.stderr += String(piece)));
  const ended = once(child, 'close').then(([code]) => code as number | null);
  /** The first log line with these words. */
  const said = async (words: string): Promise<Readonly<Record<string, unknown>>> => {
    for (;;) {
      const line = text.stdout
        .split('\n')
        .slice(0, -1)
        .find((one) => one.includes(words));
      if (line !== undefined) return JSON.parse(line) as Readonly<Record<string, unknown>>;
      const isOver = await Promise.race([once(child.stdout, 'data').then(() => false), ended.then(() => true)]);
      if (isOver) throw new Error(`the ${app} app ended before it said ${words}: ${text.stdout}${text.stderr}`);
    }
  };
  return { child, text, said, ended, output: () => text.stdout + text.stderr };
};

const run = async (app: string, flags: readonly string[], env: Readonly<Record<string, string>> = {}) => {
  const { ended, text } = start(app, flags, env);
  const code = await ended;
  return { code, ...text };
};

describe.each(['server', 'client'] as const)('the %s app', (app) => {
  test('--help: every key with its names and its default, and nothing is started', async () => {
    const { code, stdout, stderr } = await run(app, ['--server.port=0', '--help']);
    expect([code, stderr, existsSync(join(directory, 'data'))]).toEqual([0, '', false]);
    const keys = Object.entries<{ readonly apps: string }>(CONFIG_KEYS);
    for (const [name, { apps }] of keys) {
      expect([name, stdout.includes(`  --${name}, `) || stdout.includes(`  --${name}\n`)]).toEqual([
        name,
        apps === 'both' || apps === app,
      ]);
    }
    expect(stdout).toContain('--server.port, SERVER_PORT\n      TCP port of the REST interface');
    expect(stdout).toContain('PESIT_CONFIG');
    expect(stdout).toContain('docs/configuration.md');
    const text = stdout.split('\n').filter((line) => !line.startsWith('  --'));
    expect(Math.max(...text.map(({ length }) => length))).toBeLessThanOrEqual(100);
  });

  test('--version', async () => {
    expect(await run(app, ['--version'])).toEqual({
      code: 0,
      stdout: expect.stringMatching(new RegExp(`^pesit-${app} \\d+\\.\\d+\\.\\d+\\n$`)),
      stderr: '',
    });
  });

  test('HTTPS answers probes before there is a certificate of anybody, and the health check of the image asks for it', async () => {
    const port = await freePort();
    const file = join(directory, 'https.yaml');
    // Nested and dotted: the health check reads the file as the service does.
    writeFileSync(file, `server: { port: ${port}, ssl.enabled: true }\nserver.ssl.keystore-name: rest\n`);
    const env = {
      PESIT_CONFIG: file,
      ...{ ADMIN_PASSWORD: 'pw', DATABASE_URL: 'postgresql://pesit@127.0.0.1:9/pesit' },
      SECRETS_KEY: Buffer.alloc(32, 7).toString('base64'),
    };
    const started = start(app, [], env);
    const probe = async (name: string): Promise<readonly [unknown, string]> => {
      const script = fileURLToPath(new URL('../../deploy/healthcheck.mjs', import.meta.url));
      const child = spawn(process.execPath, [script, name], { stdio: ['ignore', 'ignore', 'pipe'], env });
      let said = '';
      child.stderr.on('data', (piece: Buffer) => (said += String(piece)));
      const [code] = (await once(child, 'close')) as [number];
      return [code, said];
    };
    try {
      expect(await started.said('REST interface ready')).toMatchObject({ port, https: true });
      expect(await probe('liveness')).toEqual([0, '']);
      expect(await probe('readiness')).toEqual([1, expect.stringContaining('answered 503')]);
    } finally {
      started.child.kill('SIGTERM');
      await started.ended;
    }
  });

  test('SIGHUP reads the configuration file again, says what needs a restart, and never ends the process', async () => {
    const file = join(directory, 'pesit.yaml');
    const port = await freePort();
    const write = (text: string): void => writeFileSync(file, `server.port: ${port}\n${text}`);
    write('admin.password: first-pw\nserver.host: 127.0.0.1\n');
    const started = start(app, [], {
      PESIT_CONFIG: file,
      // Nobody answers there: the interface is there all the same, and nothing is stored.
      DATABASE_URL: 'postgresql://pesit@127.0.0.1:9/pesit',
      SECRETS_KEY: Buffer.alloc(32, 7).toString('base64'),
    });
    const login = async (password: string): Promise<number> => {
      const authorization = `Basic ${Buffer.from(`admin:${password}`).toString('base64')}`;
      return (await fetch(`http://127.0.0.1:${port}/actuator/health/readiness`, { headers: { authorization } })).status;
    };
    try {
      await started.said('REST interface ready');
      expect([await login('first-pw'), await login('second-pw')]).toEqual([503, 401]);

      write('admin.password: second-pw\nserver.host: 127.0.0.1\nlog.level: debug\ndatabase.pool-max: 20\n');
      started.child.kill('SIGHUP');
      expect(await started.said('configuration and license file read again')).toMatchObject({
        level: 'info',
        changed: ['admin.password', 'log.level'],
      });
      expect(await started.said('need a restart')).toMatchObject({ level: 'warn', keys: ['database.pool-max'] });
      expect([await login('first-pw'), await login('second-pw')]).toEqual([401, 503]);
      expect(await started.said('"status":401')).toMatchObject({ level: 'debug' });

      write('admin.password: third-pw\nlog.levle: info\n');
      started.child.kill('SIGHUP');
      expect(await started.said('nothing changed')).toMatchObject({
        level: 'error',
        problems: [`unknown key "log.levle" (${file}): did you mean log.level?`],
      });
      expect([await login('third-pw'), await login('second-pw')]).toEqual([401, 503]);
      expect(started.output()).not.toMatch(/(?:first|second|third)-pw/);
    } finally {
      started.child.kill('SIGTERM');
    }
    expect(await started.ended).toBe(0);
  });

  test('a REST port in use is said before anything of the database or the data directory is touched', async () => {
    let asked = 0;
    const database = await listening(() => asked++);
    const port = await listening();
    const { code, stderr } = await run(app, [`--server.port=${port}`], {
      DATABASE_URL: `postgresql://pesit@127.0.0.1:${database}/pesit`,
      SECRETS_KEY: Buffer.alloc(32, 7).toString('base64'),
    });
    expect([code, stderr]).toEqual([
      1,
      `Port 127.0.0.1:${port} is in use by another process: stop it, or choose another port with --server.port\n`,
    ]);
    expect([asked, existsSync(join(directory, 'data'))]).toEqual([0, false]);
  });

  test('PostgreSQL without secrets.key ends the start: all pods need the same, and none can make it', async () => {
    const { code, stderr } = await run(app, ['--server.port=0'], {
      DATABASE_URL: 'postgresql://pesit@127.0.0.1:9/pesit',
    });
    expect(code).toBe(1);
    expect(stderr).toContain('  - secrets.key is required with PostgreSQL, the same for all pods: set SECRETS_KEY to');
  });

  test.each([{}, { NODE_ENV: 'development' }])(
    'the default password where others can reach it ends the start (%j)',
    async (env) => {
      const { code, stderr } = await run(app, ['--server.host=0.0.0.0'], env);
      expect(code).toBe(1);
      expect(stderr).toBe(
        'The configuration is not usable:\n' +
          '  - server.host: expected a loopback address (127.0.0.1, ::1, localhost) while admin.password is the default, got "0.0.0.0"; ' +
          'set admin.password (ADMIN_PASSWORD), or leave server.host out\n',
      );
    },
  );
});

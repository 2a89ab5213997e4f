import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { Agent, request as httpRequest } from 'node:http';
import { createInterface } from 'node:readline';

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import { HealthRegistry, Lifecycle, listen, ListenError } from '@pesit-node/service';
import { captureLog } from '@pesit-node/service/testing';

import { compileSources } from '../support/compile.js';

const create = () => {
  const log = captureLog();
  const health = new HealthRegistry();
  const lifecycle = new Lifecycle({ logger: log.logger, health });
  const events: string[] = [];
  const step = (name: string) => ({
    name,
    start: () => void events.push(`start ${name}`),
    stop: () => void events.push(`stop ${name}${health.draining ? '' : ' while ready'}`),
  });
  return { log, health, lifecycle, events, step };
};

describe('lifecycle', () => {
  test('starts in order, stops in reverse, readiness first, once', async () => {
    const { lifecycle, events, step } = create();
    lifecycle.add(step('a')).add(step('b')).add(step('c'));
    await lifecycle.start();
    const [first, second] = await Promise.all([lifecycle.stop('test'), lifecycle.stop('test')]);
    expect([first, second]).toEqual([true, true]);
    expect(events).toEqual(['start a', 'start b', 'start c', 'stop c', 'stop b', 'stop a']);
  });

  test('a start that fails stops what had started, and says why', async () => {
    const { lifecycle, events, step } = create();
    const broken = { ...step('b'), start: () => Promise.reject(new Error('no room')) };
    lifecycle.add(step('a')).add(broken).add(step('c'));
    await expect(lifecycle.start()).rejects.toThrow('no room');
    expect(events).toEqual(['start a', 'stop b', 'stop a']);
  });

  test('a stop during the start ends it early, without an error', async () => {
    const { lifecycle, events, step } = create();
    const waiting = {
      ...step('b'),
      start: (signal: AbortSignal) =>
        new Promise<void>((_, reject) => {
          signal.addEventListener('abort', () => reject(new Error('aborted')));
          void lifecycle.stop('test');
        }),
    };
    lifecycle.add(step('a')).add(waiting).add(step('c'));
    await lifecycle.start();
    expect(await lifecycle.stop('again')).toBe(true);
    expect(events).toEqual(['start a', 'stop b', 'stop a']);
  });

  test('a step that hangs or throws does not hold up the others, and is said', async () => {
    const { lifecycle, events, step, log } = create();
    lifecycle
      .add(step('a'))
      .add({ name: 'hangs', stop: () => new Promise<void>(() => undefined), stopTimeoutMs: 20 })
      .add({ name: 'throws', stop: () => Promise.reject(new Error('broken')) });
    await lifecycle.start();
    expect(await lifecycle.stop('test')).toBe(false);
    expect(events).toEqual(['start a', 'stop a']);
    expect(
      log
        .entries()
        .filter(({ level }) => level === 'error')
        .map((entry) => [entry['step'], (entry['err'] as { message: string }).message]),
    ).toEqual([
      ['throws', 'broken'],
      ['hangs', 'hangs did not stop within 20 ms'],
    ]);
  });
});

describe('signals', () => {
  let compiled: ReturnType<typeof compileSources>;
  let script: string;

  beforeAll(() => {
    compiled = compileSources();
    script = `${compiled.directory}/child.mjs`;
    writeFileSync(
      script,
      `
      import { createServer } from 'node:http';
      import { Lifecycle } from './lifecycle/lifecycle.js';
      import { listen } from './lifecycle/listen.js';
      import { HealthRegistry } from './health/registry.js';
      import { createLogger } from './logging.js';
      const print = (text) => process.stdout.write(text + '\\n');
      const health = new HealthRegistry();
      const lifecycle = new Lifecycle({ logger: createLogger({ 'log.level': 'silent' }, { name: 'child' }), health });
      const step = (name, more = {}) => ({ name, start: () => print('start ' + name), stop: () => print('stop ' + name + ' draining=' + health.draining), ...more });
      let server;
      lifecycle.add(step('database'))
        .add({ name: 'http', start: async () => { server = await listen((_, res) => res.end('x'), { host: '127.0.0.1', port: 0 }); print('start http'); },
               stop: async () => { await server.close(); print('stop http'); } });
      if (process.argv[2] === 'hang') lifecycle.add({ name: 'hang', stop: () => { print('hanging'); return new Promise(() => {}); }, stopTimeoutMs: 60000 });
      lifecycle.handleSignals(process);
      await lifecycle.start();
      print('ready');
      `,
    );
  });
  afterAll(() => compiled.remove());

  const run = (...args: string[]) => {
    const child = spawn(process.execPath, [script, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
    const lines: string[] = [];
    const reader = createInterface({ input: child.stdout });
    reader.on('line', (line) => lines.push(line));
    const said = async (text: string): Promise<void> => {
      while (!lines.includes(text)) await once(reader, 'line');
    };
    const ended = once(child, 'close') as Promise<[number | null, string | null]>;
    return { child, lines, said, ended };
  };

  test.each(['SIGTERM', 'SIGINT'] as const)('%s: readiness down, steps in reverse, exit code 0', async (signal) => {
    const { child, lines, said, ended } = run();
    await said('ready');
    child.kill(signal);
    expect(await ended).toEqual([0, null]);
    expect(lines).toEqual(['start database', 'start http', 'ready', 'stop http', 'stop database draining=true']);
  });

  test('a second signal ends at once, also when nobody reads the log any more', async () => {
    const path = `${compiled.directory}/unread.mjs`;
    writeFileSync(
      path,
      `
      import { Lifecycle } from './lifecycle/lifecycle.js';
      import { HealthRegistry } from './health/registry.js';
      import { createLogger } from './logging.js';
      const lifecycle = new Lifecycle({ logger: createLogger({ 'log.level': 'info' }, { name: 'child' }), health: new HealthRegistry() });
      const alive = setInterval(() => {}, 1000);
      lifecycle.add({ name: 'hang', stop: () => new Promise(() => {}), stopTimeoutMs: 60000 });
      lifecycle.handleSignals(process);
      await lifecycle.start();
      process.stderr.write('ready\\n');
      `,
    );
    const child = spawn(process.execPath, [path], { stdio: ['ignore', 'pipe', 'pipe'] });
    const ended = once(child, 'exit');
    try {
      await once(child.stderr, 'data');
      child.stdout.destroy();
      child.kill('SIGTERM');
      child.kill('SIGINT');
      const [code] = (await ended) as [number];
      expect([130, 143]).toContain(code);
    } finally {
      child.kill('SIGKILL');
    }
  });

  test('a second signal ends at once', async () => {
    const { child, lines, said, ended } = run('hang');
    await said('ready');
    child.kill('SIGTERM');
    await said('hanging');
    child.kill('SIGINT');
    expect(await ended).toEqual([130, null]);
    expect(lines.at(-1)).toBe('hanging');
  });
});

describe('listening', () => {
  test('a port in use: which, and the flag to change', async () => {
    const first = await listen((_req, res) => res.end(), { host: '127.0.0.1', port: 0 });
    const second = listen((_req, res) => res.end(), { host: '127.0.0.1', port: first.port });
    await expect(second).rejects.toThrow(ListenError);
    await expect(second).rejects.toThrow(
      `Port 127.0.0.1:${first.port} is in use by another process: stop it, or choose another port with --server.port`,
    );
    await first.close();
  });

  test('an address that is not ours', async () => {
    await expect(listen((_req, res) => res.end(), { host: '192.0.2.1', port: 0 })).rejects.toThrow('--server.host');
  });

  test('another app may answer from now on', async () => {
    const server = await listen((_req, res) => res.end('starting'), { host: '127.0.0.1', port: 0 });
    const answer = async () => (await fetch(`http://127.0.0.1:${server.port}`)).text();
    expect(await answer()).toBe('starting');
    server.serve((_req, res) => res.end('started'));
    expect(await answer()).toBe('started');
    await server.close();
  });

  test('close lets a running request end, and its kept-alive connection with it', async () => {
    const agent = new Agent({ keepAlive: true });
    let finish: (() => void) | undefined;
    const running = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const arrived = new Promise<void>((resolve) => {
      void listen(
        (_req, res) => {
          resolve();
          void running.then(() => res.end('whole'));
        },
        { host: '127.0.0.1', port: 0 },
      ).then((server) => ready(server));
    });
    let ready: (server: Awaited<ReturnType<typeof listen>>) => void = () => undefined;
    const server = await new Promise<Awaited<ReturnType<typeof listen>>>((resolve) => {
      ready = resolve;
    });
    const answer = new Promise<string>((resolve, reject) => {
      httpRequest({ port: server.port, agent }, (res) => {
        res.setEncoding('utf8');
        res.on('data', resolve);
      })
        .on('error', reject)
        .end();
    });
    await arrived;
    const closed = server.close(20_000);
    finish?.();
    expect(await answer).toBe('whole');
    await closed;
    await server.close();
    agent.destroy();
  });

  test('close cuts what does not end within its limit', async () => {
    let ask: (() => void) | undefined;
    const asked = new Promise<void>((resolve) => {
      ask = resolve;
    });
    const server = await listen(() => ask?.(), { host: '127.0.0.1', port: 0 });
    const failed = new Promise<Error>((resolve) => {
      httpRequest({ port: server.port }).on('error', resolve).end();
    });
    await asked;
    await server.close(10);
    expect((await failed).message).toMatch(/socket hang up|ECONNRESET/);
  });
});

/** The builder of both apps, with an app that only says what is done with it. */
import { EventEmitter, once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync, existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';

import { runService } from '@pesit-node/service';
import type { ServiceDefinition, ServiceGround } from '@pesit-node/service';

let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'pesit-run-'));
  writeFileSync(join(directory, 'package.json'), '{"version":"7.8.9"}');
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

/** A process that does not end: its signals are emitted, its end is an event. */
class FakeProcess extends EventEmitter {
  readonly argv: readonly string[];
  written = '';
  wrong = '';
  readonly stdout = { write: (text: string) => (this.written += text) };
  readonly stderr = { write: (text: string) => (this.wrong += text) };
  constructor(...flags: readonly string[]) {
    super();
    this.argv = ['node', 'main.js', '--log.level=error', ...flags];
  }
  cwd = (): string => directory;
  exit = (code: number): void => void this.emit('exit', code);
}

class LockedDrawerError extends Error {}

const define = (change: Partial<ServiceDefinition<'server', string>> = {}) => {
  const events: string[] = [];
  let ground: ServiceGround<'server'> | undefined;
  const step = (name: string) => ({
    name,
    start: () => void events.push(`start ${name}`),
    stop: () => void events.push(`stop ${name}`),
  });
  const definition: ServiceDefinition<'server', string> = {
    app: 'server',
    name: 'tried-service',
    manifest: pathToFileURL(join(directory, 'package.json')),
    schema: 'pesit_server',
    env: {
      DATA_DIRECTORY: join(directory, 'data'),
      SERVER_PORT: '0',
      POD_NAME: 'pod-7',
      // Nobody answers there: a database need not be up for a service to start.
      DATABASE_URL: 'postgresql://pesit@127.0.0.1:9/pesit',
      SECRETS_KEY: Buffer.alloc(32, 7).toString('base64'),
    },
    first: {
      read: () =>
        Promise.resolve(`read, ${existsSync(join(directory, 'data')) ? 'late' : 'before the data directory'}`),
      explained: [LockedDrawerError],
    },
    build: (given, read) => {
      ground = given;
      events.push(`build: ${read}`);
      return {
        app: (_req, res) => void res.end('the app'),
        metrics: { watchProcess: () => void events.push('watch') },
        beforeHttp: [step('database'), step('files')],
        afterHttp: [step('exchange')],
        keystores: { identity: () => Promise.reject(new Error('none is asked for')) },
        reloaded: () => void events.push('reloaded'),
      };
    },
    https: {
      contextOf: () => {
        throw new Error('HTTPS is off');
      },
      makeProvisional: () => Promise.reject(new Error('HTTPS is off')),
    },
    http: (server) => {
      const at = server.address();
      events.push('http');
      port = typeof at === 'object' ? at?.port : undefined;
    },
    ...change,
  };
  let port: number | undefined;
  return {
    definition,
    events,
    ground: () => ground,
    ask: async () => (await fetch(`http://127.0.0.1:${port}/`)).text(),
  };
};

describe('a service', () => {
  test('is built and started in order, reads again on SIGHUP, and stops in reverse on SIGTERM', async () => {
    const process = new FakeProcess();
    const { definition, events, ground, ask } = define();
    await runService(process, definition);
    expect([process.wrong, events]).toEqual([
      '',
      ['build: read, before the data directory', 'watch', 'start database', 'start files', 'http', 'start exchange'],
    ]);
    expect(await ask()).toBe('the app');
    expect(ground()).toMatchObject({ node: 'pod-7', info: { name: 'tried-service', version: '7.8.9' } });
    expect(ground()?.config['data.directory']).toBe(join(directory, 'data'));

    process.emit('SIGHUP');
    expect(events.splice(0).at(-1)).toBe('reloaded');

    const ended = once(process, 'exit');
    process.emit('SIGTERM', 'SIGTERM');
    expect(await ended).toEqual([0]);
    expect(events).toEqual(['stop exchange', 'stop files', 'stop database']);
    await expect(ask()).rejects.toThrow('fetch failed');
  });

  test('says its version, and nothing is made', async () => {
    const process = new FakeProcess('--version');
    const { definition, events } = define();
    await runService(process, definition);
    expect([process.written, events, existsSync(join(directory, 'data'))]).toEqual([
      'tried-service 7.8.9\n',
      [],
      false,
    ]);
  });

  test('whose first stage fails ends with its sentence, and nothing is made', async () => {
    const process = new FakeProcess();
    const read = () => Promise.reject(new LockedDrawerError('the drawer is locked: bring the key'));
    const { definition, events } = define({ first: { read, explained: [LockedDrawerError] } });
    const ended = once(process, 'exit');
    await runService(process, definition);
    expect(await ended).toEqual([1]);
    expect([process.wrong, events, existsSync(join(directory, 'data'))]).toEqual([
      'the drawer is locked: bring the key\n',
      [],
      false,
    ]);
  });

  test('whose app cannot be started stops what had started, in reverse', async () => {
    const process = new FakeProcess();
    const { definition, events } = define();
    const build: typeof definition.build = (ground, read) => ({
      ...definition.build(ground, read),
      afterHttp: [{ name: 'exchange', start: () => Promise.reject(new LockedDrawerError('no room')) }],
    });
    const ended = once(process, 'exit');
    await runService(process, { ...definition, build });
    expect([await ended, process.wrong]).toEqual([[1], 'no room\n']);
    expect(events.slice(-3)).toEqual(['http', 'stop files', 'stop database']);
  });
});

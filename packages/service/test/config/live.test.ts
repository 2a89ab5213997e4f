import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { ConfigError, LiveConfig } from '@pesit-node/service';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'pesit-live-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const write = (text: string): string => {
  const file = join(directory, 'pesit.yaml');
  writeFileSync(file, text);
  return file;
};

const create = (text: string, env: Readonly<Record<string, string>> = {}) =>
  new LiveConfig({ app: 'client', env: { PESIT_CONFIG: write(text), ...env }, argv: [], cwd: directory });

test('what may change does, what needs a restart is told each time and does not', () => {
  const live = create('transfer.retry.attempts: 3\ndatabase.pool-max: 5\n');
  const { config } = live;
  write('transfer.retry.attempts: 4\ndatabase.pool-max: 6\n');
  expect(live.reload()).toEqual({
    changed: ['transfer.retry.attempts'],
    needRestart: ['database.pool-max'],
    withoutEffect: [],
  });
  expect([config['transfer.retry.attempts'], config['database.pool-max']]).toEqual([4, 5]);
  expect(live.reload()).toEqual({ changed: [], needRestart: ['database.pool-max'], withoutEffect: [] });
});

test('what cannot be used changes nothing, not even what is right in it', () => {
  const live = create('transfer.retry.attempts: 3\n');
  write('transfer.retry.attempts: 4\nlog.level: loud\n');
  expect(() => live.reload()).toThrow(ConfigError);
  rmSync(join(directory, 'pesit.yaml'));
  expect(() => live.reload()).toThrow('cannot read');
  expect([live.config['transfer.retry.attempts'], live.config['log.level']]).toEqual([3, 'info']);
});

test('the environment wins over the file, also then', () => {
  const live = create('log.level: warn\n', { LOG_LEVEL: 'error' });
  write('log.level: debug\n');
  expect(live.reload()).toEqual({ changed: [], needRestart: [], withoutEffect: [] });
  expect(live.config['log.level']).toBe('error');
});

test('a password of its own lets the interface listen everywhere, after a restart', () => {
  const live = create('');
  write('admin.password: x9\n');
  expect(live.reload()).toEqual({ changed: ['admin.password'], needRestart: ['server.host'], withoutEffect: [] });
});

test('a key without effect needs no restart: what is said of it follows', () => {
  const live = create('transfer.compression.level: 3\napi-port: 5\n');
  write('api-port: 6\ntransfer.compression.algorithm: GZIP\n');
  expect(live.reload()).toEqual({
    changed: ['transfer.compression.algorithm', 'transfer.compression.level', 'api-port'],
    needRestart: [],
    withoutEffect: [
      { key: 'transfer.compression.algorithm', reason: expect.stringContaining('PeSIT knows no GZIP') },
      { key: 'api-port', reason: expect.stringContaining('one REST interface') },
    ],
  });
});

import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import { captureLog } from '@pesit-node/service/testing';

import { compileSources } from './support/compile.js';

describe('log lines', () => {
  test('are JSON with time, level and name', () => {
    const log = captureLog();
    log.logger.info({ sessionId: 's-1' }, 'hello');
    expect(log.entries()).toEqual([
      expect.objectContaining({
        level: 'info',
        name: 'test',
        msg: 'hello',
        sessionId: 's-1',
        time: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      }),
    ]);
  });

  test('stay one line, whatever a stranger chose', () => {
    const log = captureLog();
    log.logger.info({ user: 'eve\r\n{"level":"info","msg":"login"}\u2028' }, 'login\nfailed');
    expect(log.lines.join('')).toMatch(/^[^\n\r]*\n$/);
    expect(log.entries()).toMatchObject([{ msg: 'login\nfailed' }]);
  });

  test.each<[string, object]>([
    ['a field', { password: 'hunter2' }],
    ['a field deep inside', { a: { b: { c: [{ preconnectPassword: 'hunter2' }] } } }],
    ['a field with quotes in its value', { password: 'a"hunter2\\' }],
    ['a number', { password: 123_456_789 }],
    ['a configuration key', { config: { 'admin.password': 'hunter2', 'secrets.key': 'hunter2' } }],
    ['a header', { req: { headers: { authorization: 'Basic aHVudGVyMg==', cookie: 'hunter2' } } }],
    ['raw headers', { rawHeaders: ['Authorization', 'Basic aHVudGVyMg=='] }],
    ['a connection URL', { err: new Error('cannot reach postgresql://pesit:hunter2@db:5432/pesit') }],
    ['JSON inside a text', { text: JSON.stringify({ password: 'hunter2', name: 'x' }) }],
    ['JSON inside a text, with quotes in its value', { text: JSON.stringify({ password: 'a"hunter2' }) }],
  ])('never show %s', (_name, bindings) => {
    const log = captureLog();
    log.logger.info({ ...bindings, after: 'kept' }, 'line');
    expect(log.lines.join('')).not.toMatch(/hunter2|aHVudGVyMg|123456789/);
    expect(log.entries()).toEqual([expect.objectContaining({ msg: 'line', after: 'kept' })]);
  });
});

describe('lines on standard output', () => {
  let sources: ReturnType<typeof compileSources>;
  beforeAll(() => {
    sources = compileSources();
  });
  afterAll(() => sources.remove());

  /** The messages of a process that does this, in order of their letters: an end may come between the parts that are written. */
  const written = async (script: string, killAfter = Infinity): Promise<string> => {
    const url = JSON.stringify(join(sources.directory, 'logging.js'));
    const start = `const { createLogger } = await import(${url}); const log = createLogger({ 'log.level': 'info' }, { name: 'x' });`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', `${start} ${script}`], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const messages: string[] = [];
    for await (const line of createInterface(child.stdout)) {
      messages.push((JSON.parse(line) as { msg: string }).msg);
      if (messages.length === killAfter) child.kill('SIGKILL');
    }
    return messages.sort().join('');
  };
  const FOUR = "log.info('a'); log.info('b'); log.error('c'); log.info('d');";

  test.each([
    ['ends by itself', FOUR],
    ['is told to end', `${FOUR} process.exit(1);`],
    ['ends because of an error', `${FOUR} throw new Error('x');`],
  ])('none is lost when the process %s', async (_how, script) => {
    expect(await written(script)).toBe('abcd');
  });

  test('an error, and what came before it, waits for nothing: the process may stand still then', async () => {
    expect(await written(`${FOUR} for (;;);`, 3)).toBe('abc');
  });

  test('others wait for a while', async () => {
    expect(await written("log.info('a'); setInterval(() => undefined, 1e6);", 1)).toBe('a');
  });
});

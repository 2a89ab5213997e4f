import { describe, expect, test } from '@jest/globals';

import { captureLog } from '@pesit-node/service/testing';

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

import { request as httpRequest } from 'node:http';

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import request from 'supertest';

import { createHttpApp, endpoint, FailureLimiter, HealthRegistry, listen } from '@pesit-node/service';
import type { HttpServer } from '@pesit-node/service';
import { captureLog, testConfig, testMetrics } from '@pesit-node/service/testing';

import { parseBasic } from '../../src/auth/basic-strategy.js';

const PASSWORD = 'p:ä€:q';

const build = (limiter = new FailureLimiter({ limit: 1000 })) => {
  const log = captureLog();
  const config = testConfig('server', {
    'data.directory': '/nowhere',
    'admin.username': 'jürgen',
    'admin.password': PASSWORD,
  });
  const app = createHttpApp({
    config,
    info: { name: 'test', version: '1' },
    logger: log.logger,
    health: new HealthRegistry(),
    metrics: testMetrics('server'),
    limiter,
    routes: (routes) => {
      const answer = endpoint({ summary: 'Answers', answers: { 200: 'ok' } }, ({ res }) => res.json({ ok: true }));
      routes.resource('/x', { get: answer, post: answer });
    },
  });
  return { app, log };
};

const basic = (text: string | Buffer): string => `Basic ${Buffer.from(text).toString('base64')}`;

describe('login', () => {
  const { app, log } = build();

  test.each([
    ['right', basic(`jürgen:${PASSWORD}`), 200],
    ['right, scheme in lower case, two blanks', basic(`jürgen:${PASSWORD}`).replace('Basic ', 'basic  '), 200],
    ['right, decomposed ü and ä', basic(`jürgen:${PASSWORD}`.normalize('NFD')), 200],
    ['the password cut at its first colon', basic('jürgen:p'), 401],
    ['wrong password', basic('jürgen:p:ä€:Q'), 401],
    ['wrong user', basic(`admin:${PASSWORD}`), 401],
    ['longer password', basic(`jürgen:${PASSWORD}x`), 401],
    ['empty password', basic('jürgen:'), 401],
    ['empty user', basic(`:${PASSWORD}`), 401],
    ['no colon', basic('jürgen'), 401],
    ['Latin-1 bytes', basic(Buffer.from(`jürgen:${PASSWORD}`, 'latin1')), 401],
    ['a scheme that merely contains it', basic(`jürgen:${PASSWORD}`).replace('Basic', 'XBasic'), 401],
    ['another scheme', 'Bearer abc', 401],
    ['no base64', 'Basic ****', 401],
    ['no token', 'Basic', 401],
    ['nothing', undefined, 401],
  ])('%s', async (_name, header, status) => {
    const sent = request(app).get('/x');
    const response = await (header === undefined ? sent : sent.set('Authorization', header));
    expect(response.status).toBe(status);
    if (status === 401) {
      expect(response.headers['www-authenticate']).toBe('Basic realm="pesit", charset="UTF-8"');
      expect(response.body).toEqual({
        error: 'UNAUTHORIZED',
        message: expect.any(String),
        path: '/x',
        timestamp: expect.any(String),
      });
    }
  });

  test('is asked before the body is read, and before a path is known to exist', async () => {
    expect((await request(app).post('/x').type('json').send('{"broken')).status).toBe(401);
    expect((await request(app).get('/nowhere')).status).toBe(401);
  });

  test.each(['/actuator/health', '/actuator/health/liveness', '/actuator/health/readiness'])(
    '%s is open',
    async (path) => {
      expect((await request(app).get(path)).status).toBe(200);
    },
  );

  test('no credential is in any log line', () => {
    expect(log.lines.length).toBeGreaterThan(10);
    expect(log.lines.join('')).not.toContain(Buffer.from(`jürgen:${PASSWORD}`).toString('base64'));
    expect(log.lines.join('')).not.toContain(PASSWORD);
  });
});

test('parsing splits at the first colon', () => {
  expect(parseBasic(basic('a:b:c'))).toEqual({ username: 'a', password: 'b:c' });
});

describe('failed logins', () => {
  let now = 1_000_000;
  let server: HttpServer;
  const limiter = new FailureLimiter({ limit: 3, windowMs: 60_000, now: () => now });

  beforeAll(async () => {
    server = await listen(build(limiter).app, { host: '0.0.0.0', port: 0 });
  });
  afterAll(() => server.close());

  const get = (
    address: string,
    authorization?: string,
  ): Promise<{ status: number | undefined; retryAfter: string | undefined }> =>
    new Promise((resolve, reject) => {
      const headers = authorization === undefined ? {} : { authorization };
      httpRequest(
        { host: '127.0.0.1', port: server.port, path: '/x', localAddress: address, headers, agent: false },
        (res) => {
          res.resume();
          resolve({ status: res.statusCode, retryAfter: res.headers['retry-after'] });
        },
      )
        .on('error', reject)
        .end();
    });

  test('block their address for a while, and no other', async () => {
    const right = basic(`jürgen:${PASSWORD}`);
    const wrong = basic('jürgen:no');
    for (let index = 0; index < 5; index++) expect((await get('127.0.0.1')).status).toBe(401);
    for (let index = 0; index < 3; index++) expect((await get('127.0.0.1', wrong)).status).toBe(401);
    now += 15_000;
    expect(await get('127.0.0.1', wrong)).toEqual({ status: 429, retryAfter: '45' });
    expect(await get('127.0.0.1', right)).toEqual({ status: 429, retryAfter: '45' });
    expect((await get('127.0.0.2', right)).status).toBe(200);
    now += 45_000;
    expect((await get('127.0.0.1', right)).status).toBe(200);
  });

  test('successes never count', async () => {
    const statuses = await Promise.all(Array.from({ length: 20 }, () => get('127.0.0.3', basic(`jürgen:${PASSWORD}`))));
    expect(new Set(statuses.map(({ status }) => status))).toEqual(new Set([200]));
  });

  test('the memory of addresses is bounded', () => {
    const small = new FailureLimiter({ limit: 1, capacity: 2 });
    for (const address of ['a', 'b', 'c']) small.failed(address);
    expect(['a', 'b', 'c'].map((address) => small.blockedFor(address) > 0)).toEqual([false, true, true]);
  });
});

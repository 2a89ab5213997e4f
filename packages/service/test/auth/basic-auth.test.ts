import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import type { IncomingMessage } from 'node:http';

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import request from 'supertest';

import { createHttpApp, endpoint, FailureLimiter, HealthRegistry, listen } from '@pesit-node/service';
import type { CommonConfig, FailureLimiterOptions, HttpServer } from '@pesit-node/service';
import { captureLog, readOpenMetrics, testConfig, testMetrics } from '@pesit-node/service/testing';

import { parseBasic } from '../../src/auth/basic-strategy.js';

const PASSWORD = 'p:ä€:q';

type Json = Readonly<Record<string, unknown>>;

const build = (loginLimits: FailureLimiterOptions = { limit: 1000 }, overrides: Partial<CommonConfig> = {}) => {
  const log = captureLog();
  const metrics = testMetrics('server');
  const config = testConfig('server', {
    'data.directory': '/nowhere',
    'admin.username': 'jürgen',
    'admin.password': PASSWORD,
    ...overrides,
  });
  const app = createHttpApp({
    config,
    info: { name: 'test', version: '1' },
    logger: log.logger,
    health: new HealthRegistry(),
    metrics,
    loginLimits,
    routes: (routes) => {
      const answer = endpoint({ summary: 'Answers', answers: { 200: 'ok' } }, ({ res }) => res.json({ ok: true }));
      routes.resource('/x', { get: answer, post: answer });
    },
  });
  return { app, log, metrics };
};

const basic = (text: string | Buffer): string => `Basic ${Buffer.from(text).toString('base64')}`;

describe('login', () => {
  const { app, log } = build();

  test.each([
    ['right', basic(`jürgen:${PASSWORD}`), 200],
    ['right, scheme in lower case, two blanks', basic(`jürgen:${PASSWORD}`).replace('Basic ', 'basic  '), 200],
    ['right, decomposed ü and ä', basic(`jürgen:${PASSWORD}`.normalize('NFD')), 200],
    ['the password cut at its first colon', basic('jürgen:p'), 401],
    ['the name and the password cut at another place', basic('jürge:np:ä€:q'), 401],
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
  const limits = { limit: 3, windowMs: 60_000, now: () => now };
  const { app, log, metrics } = build(limits, { 'http.trusted-proxies': ['127.0.0.9', '10.0.0.0/8'] });
  let server: HttpServer;

  beforeAll(async () => {
    server = await listen(app, { host: '127.0.0.1', port: 0 });
  });
  afterAll(() => server.close());

  const right = basic(`jürgen:${PASSWORD}`);
  const wrong = basic('jürgen:no');

  interface Caller {
    /** Where the connection comes from. */
    readonly from: string;
    /** `X-Forwarded-For`. */
    readonly forwarded?: string;
  }

  const get = async ({ from, forwarded }: Caller, authorization?: string) => {
    const headers = {
      ...(authorization === undefined ? {} : { authorization }),
      ...(forwarded === undefined ? {} : { 'x-forwarded-for': forwarded }),
    };
    const options = { host: '127.0.0.1', port: server.port, path: '/x', localAddress: from, headers, agent: false };
    const [response] = (await once(httpRequest(options).end(), 'response')) as [IncomingMessage];
    let text = '';
    for await (const chunk of response.setEncoding('utf8')) text += String(chunk);
    return { status: response.statusCode, retryAfter: response.headers['retry-after'], body: JSON.parse(text) as Json };
  };

  const fail = async (caller: Caller, authorization = wrong): Promise<void> => {
    for (let index = 0; index < 3; index++) expect((await get(caller, authorization)).status).toBe(401);
  };

  const failures = () => log.entries().filter(({ msg }) => msg === 'login failed');

  test('block their user from their address for a while, and nobody else', async () => {
    for (let index = 0; index < 5; index++) expect((await get({ from: '127.0.0.1' })).status).toBe(401);
    await fail({ from: '127.0.0.1' });
    now += 15_000;
    const blocked = await get({ from: '127.0.0.1' }, wrong);
    expect([blocked.status, blocked.retryAfter]).toEqual([429, '45']);
    expect(blocked.body).toEqual({
      error: 'TOO_MANY_REQUESTS',
      message: 'Too many failed logins of this user from this address: try again in 45 s',
      path: '/x',
      timestamp: expect.any(String),
    });
    expect((await get({ from: '127.0.0.1' }, right)).status).toBe(429);
    expect((await get({ from: '127.0.0.1' }, basic('somebody:no'))).status).toBe(401);
    expect((await get({ from: '127.0.0.2' }, right)).status).toBe(200);
    now += 45_000;
    expect((await get({ from: '127.0.0.1' }, right)).status).toBe(200);
  });

  test('of the requests with the right password one is a line, without it', async () => {
    for (let index = 0; index < 3; index++) expect((await get({ from: '127.0.0.7' }, right)).status).toBe(200);
    const lines = log.entries().filter(({ msg, address }) => msg === 'login' && address === '127.0.0.7');
    expect(lines).toMatchObject([{ level: 'info', user: 'jürgen' }]);
    expect(JSON.stringify(lines)).not.toContain(right.slice(6));
  });

  test('the right password of a user from an address that has logged in before is never refused', async () => {
    expect((await get({ from: '127.0.0.3' }, right)).status).toBe(200);
    await fail({ from: '127.0.0.3' });
    expect((await get({ from: '127.0.0.3' }, wrong)).status).toBe(429);
    expect((await get({ from: '127.0.0.3' }, right)).status).toBe(200);
    expect((await get({ from: '127.0.0.3' }, wrong)).status).toBe(429);
  });

  test('behind a trusted proxy they are counted by who called it', async () => {
    const proxy = '127.0.0.9';
    await fail({ from: proxy, forwarded: '192.0.2.1' });
    expect((await get({ from: proxy, forwarded: '192.0.2.1' }, right)).status).toBe(429);
    expect((await get({ from: proxy, forwarded: '192.0.2.2' }, right)).status).toBe(200);
    // What the caller wrote himself, before the proxies added whom they saw.
    expect((await get({ from: proxy, forwarded: '192.0.2.3, 192.0.2.1, 10.1.2.3' }, right)).status).toBe(429);
    // A proxy that adds the port.
    expect((await get({ from: proxy, forwarded: '192.0.2.1:55044' }, right)).status).toBe(429);
  });

  test('X-Forwarded-For of anybody else is not believed', async () => {
    await fail({ from: '127.0.0.4', forwarded: '192.0.2.2' });
    expect((await get({ from: '127.0.0.4', forwarded: '192.0.2.99' }, right)).status).toBe(429);
  });

  test('are logged with address and user, never the password, and counted', async () => {
    const before = readOpenMetrics(await metrics.scrape());
    log.clear();
    await fail({ from: '127.0.0.9', forwarded: '192.0.2.50' }, basic(`jürgen:${PASSWORD}-almost`));
    await get({ from: '127.0.0.9', forwarded: '192.0.2.50' }, basic(`jürgen:${PASSWORD}-almost`));
    const line = { level: 'warn', address: '192.0.2.50', user: 'jürgen' };
    expect(failures()).toMatchObject([line, line, { ...line, blockedSeconds: 60 }]);
    expect(log.lines.join('')).not.toContain('almost');
    const after = readOpenMetrics(await metrics.scrape());
    const counted = (result: string) => {
      const name = `pesit_login_failures_total{result="${result}"}`;
      return (after.get(name) ?? 0) - (before.get(name) ?? 0);
    };
    expect([counted('wrong'), counted('blocked')]).toEqual([3, 1]);
  });

  test('a stranger does not fill the log with them', async () => {
    now += 60_000;
    log.clear();
    const caller = { from: '127.0.0.6' };
    const long = 'u'.repeat(4000);
    for (let index = 0; index < 50; index++) await get(caller, basic(`${long}${index}:no`));
    expect(failures()).toHaveLength(10);
    expect(log.lines.join('').length).toBeLessThan(50_000);
    now += 60_000;
    await get(caller, wrong);
    expect(failures().at(-1)).toMatchObject({ address: '127.0.0.6', user: 'jürgen', notLogged: 40 });
  });

  test('successes never count', async () => {
    const all = Array.from({ length: 20 }, () => get({ from: '127.0.0.5' }, right));
    const statuses = await Promise.all(all);
    expect(new Set(statuses.map(({ status }) => status))).toEqual(new Set([200]));
  });

  test('the memory of who failed and of who logged in is bounded', () => {
    const small = new FailureLimiter({ limit: 1, capacity: 2 });
    for (const caller of ['a', 'b', 'c']) small.failed(caller);
    expect(['a', 'b', 'c'].map((caller) => small.blockedFor(caller) > 0)).toEqual([false, true, true]);
    for (const caller of ['a', 'b', 'a', 'c']) small.succeeded(caller);
    expect(['a', 'b', 'c'].map((caller) => small.hasLoggedIn(caller))).toEqual([true, false, true]);
  });
});

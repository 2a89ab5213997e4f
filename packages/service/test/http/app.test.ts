import { once } from 'node:events';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import request from 'supertest';

import { ApiError, endpoint, startingApp } from '@pesit-node/service';
import { captureLog, testConfig } from '@pesit-node/service/testing';
import { build, ANSWERS, auth } from '../support/http-app.js';

describe('error bodies', () => {
  const { app, log } = build();

  test('have the house shape: error, message, path without query, timestamp', async () => {
    const { body, status } = await request(app).get('/api/v1/nothing?x=1').set(auth);
    expect(status).toBe(404);
    expect(body).toEqual({
      error: 'NOT_FOUND',
      message: 'There is nothing at /api/v1/nothing: GET /openapi.json lists what there is',
      path: '/api/v1/nothing',
      timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    });
  });

  test('405 names the methods that are possible', async () => {
    const response = await request(app).delete('/api/v1/things').set(auth);
    expect([response.status, response.headers['allow'], response.body.error]).toEqual([
      405,
      'GET, HEAD, POST',
      'METHOD_NOT_ALLOWED',
    ]);
  });

  test.each([
    ['conflict', 409, 'CONFLICT', { diagnostic: '3-304' }],
    ['unbuilt', 422, 'UNPROCESSABLE', { details: [{ field: 'ebcdic', message: 'not built yet' }] }],
    ['later', 503, 'SERVICE_UNAVAILABLE', {}],
    ['remote', 504, 'TIMEOUT', { diagnostic: '3-311' }],
  ])('%s → %i %s', async (id, status, code, more) => {
    const response = await request(app).get(`/api/v1/things/${id}`).set(auth);
    expect(response.status).toBe(status);
    expect(response.body).toMatchObject({ error: code, ...more });
    expect(response.headers['retry-after']).toBe(status === 503 ? '7' : undefined);
  });

  test('500 says nothing of the inside; the log has the stack', async () => {
    const { body, status, text } = await request(app).get('/api/v1/things/bug').set(auth).set('X-Request-Id', 'req-1');
    expect([status, body.error]).toEqual([500, 'INTERNAL_ERROR']);
    expect(text).not.toMatch(/secret inside|at .*\.ts/);
    const entry = log.entries().find(({ msg }) => msg === 'request failed');
    expect(entry).toMatchObject({ requestId: 'req-1', path: '/api/v1/things/bug', err: { message: 'secret inside' } });
    expect(JSON.stringify(entry)).toMatch(/support\/http-app\.ts/);
  });

  test('the line of a request has no header, no query and no body', async () => {
    await request(app).get('/api/v1/things/bug?token=in-query').set(auth).set('X-Other', 'in-header');
    const lines = log.entries().filter(({ msg }) => msg === 'request');
    expect(Object.keys(lines.at(-1) ?? {}).sort()).toEqual(
      [
        ...['actor', 'durationMs', 'hostname', 'level', 'method', 'msg', 'name', 'path', 'pid', 'requestId', 'status'],
        'time',
      ].sort(),
    );
    expect(JSON.stringify(lines)).not.toMatch(/in-query|in-header|authorization/);
    for (const line of log.lines) expect(line.split('"requestId":').length).toBeLessThan(3);
  });

  test.each([
    ['get', '/api/v1/things', 200, 'debug'],
    ['get', '/api/v1/things/conflict', 409, 'debug'],
    ['post', '/api/v1/things', 201, 'info'],
    ['get', '/api/v1/things/later', 503, 'warn'],
  ] as const)('%s %s, answered %i, has one line, at %s', async (method, path, status, level) => {
    const id = `line-${status}`;
    const sent = request(app)[method](path).set(auth).set('X-Request-Id', id);
    await (method === 'post' ? sent.send({ name: 'a', sizes: [1] }) : sent);
    const lines = log.entries().filter(({ msg, requestId }) => msg === 'request' && requestId === id);
    expect(lines).toEqual([
      expect.objectContaining({ level, method: method.toUpperCase(), path, status, durationMs: expect.any(Number) }),
    ]);
    expect(Number.isInteger(lines[0]?.['durationMs'])).toBe(true);
  });
});

describe('bodies', () => {
  const { app } = build();
  const post = () => request(app).post('/api/v1/things').set(auth);

  test('a good one', async () => {
    const response = await post().send({ name: 'a', sizes: [1] });
    expect([response.status, response.headers['location']]).toEqual([201, '/api/v1/things/a']);
  });

  test('unknown and wrong fields are named with their paths', async () => {
    const { status, body } = await post().send({ name: 1, sizes: [1, 'x'], colour: 'red' });
    expect(status).toBe(400);
    expect(body).toMatchObject({
      error: 'VALIDATION_ERROR',
      details: expect.arrayContaining([
        { field: 'name', message: 'expected a text, got a number' },
        { field: 'sizes[1]', message: 'expected a number, got a text' },
        { field: 'colour', message: 'unknown field' },
      ]),
    });
    expect(body.details).toHaveLength(3);
  });

  test('an unknown field that is a slip of a known one names it', async () => {
    const { status, body } = await post().send({ name: 'a', Size: [1] });
    expect([status, body.details]).toEqual([400, [{ field: 'Size', message: 'unknown field: did you mean sizes?' }]]);
  });

  test('a field named __proto__ is an unknown field', async () => {
    const { status, body } = await post().type('json').send('{"name":"a","__proto__":{"x":1}}');
    expect([status, body.details]).toEqual([400, [{ field: '__proto__', message: 'unknown field' }]]);
  });

  test.each([
    ['not JSON', 'application/json', '{"name":', 400, 'VALIDATION_ERROR'],
    ['no object', 'application/json', '"text"', 400, 'VALIDATION_ERROR'],
    ['an array', 'application/json', '[]', 400, 'VALIDATION_ERROR'],
    ['another type', 'text/plain', 'name=a', 415, 'UNSUPPORTED_MEDIA_TYPE'],
    ['another charset', 'application/json; charset=latin1', '{}', 415, 'UNSUPPORTED_MEDIA_TYPE'],
    ['too large', 'application/json', `{"name":"${'x'.repeat(2000)}"}`, 413, 'PAYLOAD_TOO_LARGE'],
  ])('%s', async (_name, type, content, status, code) => {
    const response = await post().set('Content-Type', type).send(content);
    expect([response.status, response.body.error]).toEqual([status, code]);
  });

  describe('longer than they may be', () => {
    let server: Server;
    beforeAll(async () => {
      server = createServer(app).listen(0, '127.0.0.1');
      await once(server, 'listening');
    });
    afterAll(() => {
      server.closeAllConnections();
      server.close();
    });
    const HEAD = `POST /api/v1/things HTTP/1.1\r\nHost: x\r\nAuthorization: ${auth.Authorization}\r\nContent-Type: application/json\r\n`;
    const connected = (head: string) => {
      const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
      socket.write(head);
      let said = '';
      socket.on('data', (piece: Buffer) => (said += piece.toString())).on('error', () => undefined);
      const answered = async (): Promise<string> => {
        while (!said.includes('http.max-body')) await once(socket, 'data');
        return said;
      };
      // A reset is an end as well.
      const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
      return { socket, answered, closed };
    };

    test('one that says so is refused before it comes, and the connection stays when that was all', async () => {
      const { socket, answered } = connected(`${HEAD}Content-Length: 2000\r\n\r\n`);
      expect(await answered()).toMatch(/^HTTP\/1.1 413 /);
      const next = once(socket, 'data');
      socket.write(`${'x'.repeat(2000)}${HEAD}Content-Length: 12\r\n\r\n{"name":"a"}`);
      expect(String((await next)[0])).toMatch(/^HTTP\/1.1 201 /);
      socket.destroy();
    });

    test('one without an end is refused at the limit; the connection ends when the caller goes on', async () => {
      const { socket, answered, closed } = connected(`${HEAD}Transfer-Encoding: chunked\r\n\r\n`);
      const chunk = `400\r\n${'x'.repeat(1024)}\r\n`;
      socket.write(chunk + chunk);
      expect(await answered()).toMatch(/^HTTP\/1.1 413 /);
      while (!socket.destroyed) {
        const taken = new Promise((resolve) => socket.write(chunk, resolve));
        await Promise.race([taken, closed]);
      }
      await closed;
    });

    test('of a request without a login no more is read either', async () => {
      const { socket, closed } = connected(
        'POST /api/v1/things HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9000000000\r\n\r\n',
      );
      const [answer] = (await once(socket, 'data')) as [Buffer];
      expect(answer.toString()).toMatch(/^HTTP\/1.1 401 /);
      socket.write(Buffer.alloc(4_000_000));
      await closed;
    });
  });

  test('none at all', async () => {
    const { status, body } = await post();
    expect([status, body.details]).toEqual([
      400,
      [{ field: '(body)', message: 'expected a JSON object, got nothing' }],
    ]);
  });

  test('a query or body that is not asked for is refused where it says something', async () => {
    const listed = await request(app).get('/api/v1/things?colour=red').set(auth);
    expect([listed.status, listed.body.details]).toEqual([400, [{ field: 'colour', message: 'unknown field' }]]);
    const act = () => request(app).post('/api/v1/things/act').set(auth);
    expect((await act()).status).toBe(200);
    expect((await act().send({})).status).toBe(200);
    const refused = await act().send({ port: 1 });
    expect([refused.status, refused.body.details]).toEqual([400, [{ field: 'port', message: 'unknown field' }]]);
    const form = await act().type('form').send('port=1');
    expect([form.status, form.body.error]).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE']);
    expect((await act().type('form').send('')).status).toBe(200);
    expect((await act().type('json').send('[]')).body.details).toEqual([
      { field: '(body)', message: 'expected an object, got a list' },
    ]);
  });

  test('a file is left to who takes one', async () => {
    const sent = request(app).post('/api/v1/things/file').set(auth).set('Content-Type', 'application/octet-stream');
    const { status, body } = await sent.send(Buffer.alloc(10));
    expect([status, body]).toEqual([200, { size: 10 }]);
  });

  test('probes and scrapers may add to the query what they like', async () => {
    expect((await request(app).get('/actuator/health?now=1')).status).toBe(200);
    expect((await request(app).get('/metrics?name[]=x').set(auth)).status).toBe(200);
  });

  test('a path that is no UTF-8 is a 400', async () => {
    const { status, body } = await request(app).get('/api/v1/things/%ff').set(auth);
    expect([status, body.error]).toEqual([400, 'VALIDATION_ERROR']);
    const message = "The path is not UTF-8 with percent-encoding: Failed to decode param '%ff'";
    expect(body).toMatchObject({ message, details: [{ field: '(path)', message }] });
  });

  test.each(['{"password":s3cr3t-1}', '{"a":1,"b":2,"password":s3cr3t-1,"c":3,"d":"eeeeeeeeeeeee"}'])(
    'what is no JSON is not repeated: %s',
    async (content) => {
      const { status, body, text } = await post().type('json').send(content);
      const message = "The body is not a JSON object: Unexpected token 's'";
      expect([status, body.message, body.details]).toEqual([400, message, [{ field: '(body)', message }]]);
      expect(text).not.toContain('3cr3t');
    },
  );

  test.each(['gzip', 'deflate', 'br'])(
    'a body that is not in %s, as it says, is a 400 that names it',
    async (encoding) => {
      const { status, body } = await post().type('json').set('Content-Encoding', encoding).send('{"a":');
      const message = 'The body is not in the encoding that Content-Encoding names, or not whole';
      expect([status, body.message, body.details]).toEqual([400, message, [{ field: '(body)', message }]]);
    },
  );

  test('an error is JSON, whatever its handler was about to send', async () => {
    const fail = endpoint(ANSWERS, ({ res }) => {
      res.type('application/pkix-crl');
      throw new ApiError('CONFLICT', 'There is none');
    });
    const { app: failing } = build({ routes: (routes) => routes.resource('/x', { get: fail }) });
    const { status, type } = await request(failing).get('/x').set(auth);
    expect([status, type]).toEqual([409, 'application/json']);
  });

  test('what the database cannot store is a 400 that does not show the statement', async () => {
    const unstorable = Object.assign(new Error('insert into things values ($1) - invalid byte sequence'), {
      code: '22021',
    });
    const { app: failing } = build({
      routes: (routes) => routes.resource('/x', { get: endpoint(ANSWERS, () => Promise.reject(unstorable)) }),
    });
    const { status, text } = await request(failing).get('/x').set(auth);
    expect(status).toBe(400);
    expect(text).not.toContain('insert');
  });
});

describe('headers', () => {
  const { app } = build();

  test('helmet is on, without asking browsers for HTTPS', async () => {
    const { headers } = await request(app).get('/api/v1/things').set(auth);
    expect(headers['content-security-policy']).toContain("default-src 'self'");
    expect(headers['content-security-policy']).not.toContain('upgrade-insecure-requests');
    const policy = (headers['content-security-policy'] ?? '').split(';');
    expect(policy).toEqual(
      expect.arrayContaining(["base-uri 'none'", "frame-ancestors 'none'", "form-action 'none'", "object-src 'none'"]),
    );
    expect(headers['x-frame-options']).toBe('DENY');
    expect(headers['referrer-policy']).toBe('no-referrer');
    expect(headers['x-content-type-options']).toBe('nosniff');
    expect(headers['x-powered-by']).toBeUndefined();
  });

  test("the request id is the caller's when plausible, else a new one", async () => {
    const given = await request(app).get('/api/v1/things').set(auth).set('X-Request-Id', 'abc-1');
    expect(given.headers['x-request-id']).toBe('abc-1');
    const odd = await request(app).get('/api/v1/things').set(auth).set('X-Request-Id', 'a b"c');
    expect(odd.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
  });
});

describe('requests of other origins', () => {
  const { app } = build();
  const act = (headers: Readonly<Record<string, string>>, to = app) =>
    request(to).post('/api/v1/things/act').set(auth).set(headers);

  test.each([
    [{ Origin: 'https://evil.example' }],
    [{ Origin: 'https://evil.example', Host: 'node.bank' }],
    [{ Origin: 'https://node.bank:8443', Host: 'node.bank' }],
    [{ Origin: 'http://node.bank.evil.example', Host: 'node.bank' }],
    [{ Origin: 'null' }],
    [{ Origin: '' }],
    [{ Origin: 'file://' }],
    [{ Origin: 'https://node.bank', Host: 'node.bank', 'Sec-Fetch-Site': 'same-site' }],
    [{ 'Sec-Fetch-Site': 'cross-site' }],
    [{ 'Sec-Fetch-Site': 'same-site' }],
    // Nobody has said that the caller is a proxy.
    [{ Origin: 'https://node.bank', Host: '10.0.0.7:8080', 'X-Forwarded-Host': 'node.bank' }],
  ])('%j is refused', async (headers) => {
    const { status, body } = await act(headers);
    expect([status, body.error]).toEqual([403, 'FORBIDDEN']);
    expect(body.message).toMatch(/^Refused, as a page of another origin may have sent it: (Origin|Sec-Fetch-Site) is /);
  });

  test.each([
    [{}],
    [{ Origin: 'http://node.bank:8080', Host: 'node.bank:8080', 'Sec-Fetch-Site': 'same-origin' }],
    [{ Origin: 'https://node.bank', Host: 'node.bank' }],
    [{ Origin: 'https://node.bank', Host: 'node.bank:443' }],
    [{ Origin: 'http://[::1]:8080', Host: '[::1]:8080' }],
    [{ 'Sec-Fetch-Site': 'none' }],
  ])('%j is not', async (headers) => {
    expect((await act(headers)).status).toBe(200);
  });

  test('a proxy that is trusted says under which name it was called', async () => {
    const config = testConfig('server', { 'data.directory': '/nowhere', 'http.trusted-proxies': ['127.0.0.1', '::1'] });
    const proxied = { Origin: 'https://node.bank', Host: '10.0.0.7:8080', 'X-Forwarded-Host': 'node.bank' };
    expect((await act(proxied, build({ config }).app)).status).toBe(200);
  });

  test('is asked before the login: a foreign page cannot use up the attempts of who looks at it', async () => {
    const { status } = await request(app).post('/api/v1/things/act').set('Origin', 'https://evil.example');
    expect(status).toBe(403);
  });

  test('reading is left to the browser, which shows no answer to a foreign page', async () => {
    const { status, headers } = await request(app)
      .get('/api/v1/things')
      .set(auth)
      .set('Origin', 'https://evil.example');
    expect([status, headers['access-control-allow-origin']]).toEqual([200, undefined]);
    expect(headers['cross-origin-resource-policy']).toBe('same-origin');
  });
});

test.each(['/api/v1/things', '/api/v1/nothing', '/actuator/health', '/actuator/info', '/openapi.json', '/docs'])(
  'nobody keeps what %s answers',
  async (path) => {
    const { headers } = await request(build().app).get(path).set(auth);
    expect([headers['cache-control'], headers['etag']]).toEqual(['no-store', undefined]);
  },
);

describe('as many requests as http.max-connections allows', () => {
  test('run at a time; one more is a 503, and a probe is answered all the same', async () => {
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    let waiting = 0;
    let all: () => void = () => undefined;
    const arrived = new Promise<void>((resolve) => (all = resolve));
    const { app } = build({
      config: testConfig('server', { 'data.directory': '/nowhere', 'http.max-connections': 16 }),
      routes: (routes) =>
        routes.resource('/slow', {
          get: endpoint(ANSWERS, async ({ res }) => {
            if (++waiting === 8) all();
            await released;
            res.json({});
          }),
        }),
    });
    const running = Array.from({ length: 8 }, () =>
      request(app)
        .get('/slow')
        .set(auth)
        .then(({ status }) => status),
    );
    await arrived;
    const refused = await request(app).get('/slow').set(auth);
    expect([refused.status, refused.body.error, refused.headers['retry-after']]).toEqual([
      503,
      'SERVICE_UNAVAILABLE',
      '5',
    ]);
    expect((await request(app).get('/actuator/health')).status).toBe(200);
    release();
    expect(await Promise.all(running)).toEqual(Array(8).fill(200));
    expect((await request(app).get('/slow').set(auth)).status).toBe(200);
  });
});

describe('until the service is put together', () => {
  const app = startingApp({
    ...{ app: 'server', info: { name: 'pesit-server', version: '1.2.3' }, logger: captureLog().logger },
    config: testConfig('server', { 'data.directory': '/nowhere' }),
  });

  test('it lives, and is not ready', async () => {
    expect((await request(app).get('/actuator/health/liveness')).status).toBe(200);
    const readiness = await request(app).get('/actuator/health/readiness').set(auth);
    expect([readiness.status, readiness.body.components.startup]).toEqual([
      503,
      { status: 'DOWN', details: { reason: 'the database is being opened' } },
    ]);
  });

  test.each(['/api/v1/servers', '/openapi.json', '/metrics', '/actuator/info'])('%s says so', async (path) => {
    expect((await request(app).get(path)).status).toBe(401);
    const { status, body, headers } = await request(app).get(path).set(auth);
    expect([status, body.message, headers['retry-after']]).toEqual([503, 'The service is starting: try again', '5']);
  });
});

describe('database gate', () => {
  test('routes answer 503 with the reason while the database is away, probes answer', async () => {
    const database = { ready: false, statusReason: 'connect ECONNREFUSED' as string | undefined };
    const { app } = build({ database });
    const response = await request(app).get('/api/v1/things').set(auth);
    expect([response.status, response.body.error]).toEqual([503, 'SERVICE_UNAVAILABLE']);
    expect(response.body.message).toContain('connect ECONNREFUSED');
    expect(response.headers['retry-after']).toBe('5');
    expect((await request(app).get('/actuator/health/liveness')).status).toBe(200);
    database.ready = true;
    expect((await request(app).get('/api/v1/things').set(auth)).status).toBe(200);
  });

  test('a connection lost in the middle of a request is a 503', async () => {
    const lost = new Error('Connection terminated unexpectedly');
    const { app } = build({
      routes: (routes) => routes.resource('/x', { get: endpoint(ANSWERS, () => Promise.reject(lost)) }),
    });
    expect((await request(app).get('/x').set(auth)).status).toBe(503);
  });
});

import { describe, expect, test } from '@jest/globals';
import { createHttpApp, endpoint, HealthRegistry, operationsOfApp, ROLES, rolesMarkdown } from '@pesit-node/service';
import type { Role } from '@pesit-node/service';
import { captureLog, testConfig, testMetrics } from '@pesit-node/service/testing';
import request from 'supertest';

const isRole = (name: string): name is Role => (ROLES as readonly string[]).includes(name);

/** An app whose users are named as their roles are. */
const build = () => {
  const log = captureLog();
  const app = createHttpApp({
    config: testConfig('server', { 'data.directory': '/nowhere' }),
    info: { name: 'test', version: '1' },
    logger: log.logger,
    health: new HealthRegistry(),
    metrics: testMetrics('server'),
    verify: (username) => (isRole(username) ? { username, role: username } : undefined),
    open: (routes) => {
      routes.resource('/open', {
        post: endpoint({ summary: 'Opens', access: 'open', answers: { 200: 'ok' } }, ({ res }) => res.json({})),
      });
    },
    routes: (routes) => {
      const answer = (role?: Role) =>
        endpoint({ summary: 'Answers', answers: { 200: 'ok' }, ...(role === undefined ? {} : { role }) }, ({ res }) =>
          res.json({}),
        );
      const all = (role?: Role) => ({ get: answer(role), post: answer(role), put: answer(role), delete: answer(role) });
      routes.resource(['/plain', '/other'], all());
      for (const role of ROLES) routes.resource(`/${role}`, all(role));
    },
  });
  return { app, log };
};

const METHODS = ['get', 'head', 'post', 'put', 'delete'] as const;
const UNSAFE = ['post', 'put', 'delete'];
/** Who may, by path: whatever the method, or by method. */
const MAY: readonly (readonly [string, (method: string) => readonly Role[]])[] = [
  ['/plain', (method) => (UNSAFE.includes(method) ? ['admin'] : ['viewer', 'operator', 'admin'])],
  ['/other', (method) => (UNSAFE.includes(method) ? ['admin'] : ['viewer', 'operator', 'admin'])],
  ['/viewer', () => ['viewer', 'operator', 'admin']],
  ['/operator', () => ['operator', 'admin']],
  ['/admin', () => ['admin']],
];

describe('the role of the caller', () => {
  test.each(MAY)('%s', async (path, may) => {
    const { app } = build();
    for (const method of METHODS) {
      for (const role of ROLES) {
        const { status } = await request(app)[method](path).auth(role, 'x');
        expect([method, role, status]).toEqual([method, role, may(method).includes(role) ? 200 : 403]);
      }
    }
  });

  test('is named by the refusal, with the one that it takes', async () => {
    const { body } = await request(build().app).post('/plain').auth('viewer', 'x').expect(403);
    expect(body).toMatchObject({
      error: 'FORBIDDEN',
      message: 'This takes the role admin, and viewer has the role viewer: ask an admin, or log in as another user',
    });
  });

  test('is asked for before the body is looked at, and not where nobody has to log in', async () => {
    const { app } = build();
    await request(app).post('/plain').auth('viewer', 'x').send({ unheardOf: 1 }).expect(403);
    await request(app).post('/open').expect(200);
    await request(app).post('/plain').expect(401);
  });

  test('the log line of a request says who it was', async () => {
    const { app, log } = build();
    const line = log.next('request');
    await request(app).post('/plain').auth('admin', 'x');
    expect(await line).toMatchObject({ actor: 'admin', path: '/plain', status: 200 });
  });
});

test('the table of operations and roles: neither other names nor what needs no login', () => {
  const lines = rolesMarkdown(operationsOfApp(build().app)).split('\n');
  expect(lines[0]).toBe('| Operation | What it does | viewer | operator | admin |');
  expect(lines).toEqual(
    expect.arrayContaining([
      '| `GET /plain` | Answers | yes | yes | yes |',
      '| `PUT /plain` | Answers | no | no | yes |',
      '| `GET /operator` | Answers | no | yes | yes |',
      '| `GET /docs` | This document as a page | yes | yes | yes |',
    ]),
  );
  expect(lines.filter((line) => /\/(?:other|open|health)`/.test(line))).toEqual([]);
});

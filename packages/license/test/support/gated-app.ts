/** What an app that is gated must show, whichever of the two it is. */
import { expect } from '@jest/globals';
import type { OpenApiDocument } from '@pesit-node/service';
import { operationsOf, routesOf } from '@pesit-node/service/testing';
import type { Express } from 'express';
import request from 'supertest';

import type { LicenseKeeper } from '../../src/keeper.js';
import type { VirtualClock } from './pods.js';
import { license } from './vendor.js';

export interface Login {
  readonly username: string;
  readonly password: string;
}

/** Every operation of the document of an app as `METHOD /path`, and PATCH, which no path has; `1` for each parameter. */
const routesIn = (document: OpenApiDocument): readonly string[] => {
  const paths = Object.keys(document.paths).map((path) => `PATCH ${path}`);
  return [...operationsOf(document).keys(), ...paths].map((route) => route.replace(/\{\w+\}/g, '1'));
};

const ask = (app: Express, route: string, login?: Login) => {
  const [method = '', path = ''] = route.split(' ');
  const call = request(app)[method.toLowerCase() as 'get'](path);
  return login === undefined ? call : call.auth(login.username, login.password);
};

/** What stays open while the license blocks, and its answer to a request without a body. */
const OPEN: Readonly<Record<string, number>> = {
  'GET /actuator/health': 200,
  'PATCH /actuator/health': 405,
  'GET /actuator/health/liveness': 200,
  'PATCH /actuator/health/liveness': 405,
  'GET /actuator/health/readiness': 200,
  'PATCH /actuator/health/readiness': 405,
  'GET /api/v1/license': 200,
  'POST /api/v1/license': 400,
  'PATCH /api/v1/license': 405,
  'POST /api/v1/license/extend-evaluation': 400,
  'PATCH /api/v1/license/extend-evaluation': 405,
};

/** What stays open besides with `metrics.public`. */
export const PUBLIC: Readonly<Record<string, number>> = Object.fromEntries(
  ['/actuator/info', '/actuator/prometheus', '/metrics'].flatMap((path) => [
    [`GET ${path}`, 200],
    [`PATCH ${path}`, 405],
  ]),
);

/**
 * Asks every route of an app whose license blocks: 402 in the words of the specification, 401 without login.
 * @param block makes the license block
 * @param more open besides
 */
export const expectBlocked = async (
  app: Express,
  login: Login,
  block: () => Promise<void>,
  more: Readonly<Record<string, number>> = {},
): Promise<void> => {
  const document = (await ask(app, 'GET /openapi.json', login)).body as OpenApiDocument;
  const operations = operationsOf(document);
  // A route that Express has and the document has not would not be asked here.
  expect([...operations.keys()].sort()).toEqual([...routesOf(app)].sort());
  await block();
  const open = { ...OPEN, ...more };
  const routes = routesIn(document);
  expect(routes).toEqual(expect.arrayContaining([...Object.keys(open), 'GET /api/v1/transfers']));
  for (const [name, { responses }] of operations) {
    expect([name, '402' in responses]).toEqual([name, !Object.hasOwn(open, name.replace(/\{\w+\}/g, '1'))]);
  }
  for (const route of routes) {
    const { status, body, headers } = await ask(app, route, login);
    expect([route, status]).toEqual([route, open[route] ?? 402]);
    if (status === 402) {
      expect(body).toEqual({
        error: 'LICENSE_REQUIRED',
        message: expect.stringContaining('POST /api/v1/license'),
        licenseUrl: '/api/v1/license',
        path: route.split(' ')[1],
        timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      });
      expect(headers['x-license-days-remaining']).toBe('0');
    }
    const stranger = await ask(app, route);
    const isProbe = route.includes('/actuator/health') || Object.hasOwn(more, route);
    expect([route, stranger.status]).toEqual([route, isProbe ? status : 401]);
  }
};

/** The component `license` of an app whose license blocks; the app is ready all the same. */
export const expectReadyAndBlocked = async (app: Express, login: Login): Promise<void> => {
  for (const path of ['/actuator/health', '/actuator/health/readiness']) {
    const { status, body } = await ask(app, `GET ${path}`, login);
    expect([status, body.status]).toEqual([200, 'UP']);
    expect(body.components.license).toMatchObject({ status: 'BLOCKED', details: { license: 'BLOCKED' } });
    expect((await ask(app, `GET ${path}`)).body.components.license).toEqual({ status: 'BLOCKED' });
  }
};

/** All moves of the specification, as REST shows them; `keeper` and `clock` are those of a fresh app on 2027-03-01. */
export const expectMoves = async (
  app: Express,
  login: Login,
  keeper: LicenseKeeper,
  clock: VirtualClock,
): Promise<void> => {
  const days = async (count: number): Promise<void> => {
    clock.days(count);
    await keeper.refresh();
  };
  const post = (path: string, body: object) =>
    request(app).post(path).auth(login.username, login.password).send(body).expect(200);
  const install = (claims: object) => post('/api/v1/license', { license: license({ ...claims }) });
  const now = async (): Promise<readonly unknown[]> => {
    const { body } = await ask(app, 'GET /api/v1/license', login);
    const { status, headers } = await ask(app, 'GET /api/v1/transfers', login);
    const mode = ['valid', 'evaluation', 'blocked'].filter((name) => body[name] === true);
    return [...mode, status, headers['x-license-days-remaining']];
  };

  expect(await now()).toEqual(['evaluation', 200, undefined]);
  await days(15);
  expect(await now()).toEqual(['evaluation', 200, undefined]);
  await days(1);
  expect(await now()).toEqual(['evaluation', 200, '14']);
  await install({ expiryDate: '2027-03-20' });
  expect(await now()).toEqual(['valid', 200, '4']);
  await days(4);
  expect(await now()).toEqual(['evaluation', 200, '10']);
  await days(10);
  expect(await now()).toEqual(['blocked', 402, '0']);
  await install({ licenseId: 'L-0002', expiryDate: '2027-05-31' });
  expect(await now()).toEqual(['valid', 200, undefined]);
  await days(62);
  expect(await now()).toEqual(['blocked', 402, '0']);
  await post('/api/v1/license/extend-evaluation', { days: 20 });
  expect(await now()).toEqual(['evaluation', 200, undefined]);
  await days(20);
  expect(await now()).toEqual(['blocked', 402, '0']);
  await install({ licenseId: 'L-0003', type: 'BUSINESS' });
  expect(await now()).toEqual(['valid', 200, undefined]);
};

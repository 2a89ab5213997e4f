import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { createHttpApp, endpoint, HealthRegistry } from '@pesit-node/service';
import { captureLog, withDatabase, emptyTables, testConfig, testMetrics } from '@pesit-node/service/testing';
import type { TestDatabase } from '@pesit-node/service/testing';
import type { Express } from 'express';
import request from 'supertest';

import { licenseGate, licenseHealth } from '../src/gate.js';
import type { LicenseKeeper } from '../src/keeper.js';
import { LICENSE_MIGRATIONS } from '../src/migrations/index.js';
import { licenseRoutes } from '../src/routes.js';
import type { LicenseStatus } from '../src/state.js';
import { startPod, VirtualClock } from './support/pods.js';
import { hs256, license, unsigned, VENDOR_KEY, base64 } from './support/vendor.js';

const LICENSE = '/api/v1/license';
const EXTEND = `${LICENSE}/extend-evaluation`;

/** An app of the house with two routes of its own. */
const appWith = (keeper: LicenseKeeper): Express =>
  createHttpApp({
    config: testConfig('server', { 'data.directory': '/nowhere' }),
    info: { name: 'test', version: '1' },
    logger: captureLog().logger,
    health: new HealthRegistry(),
    metrics: testMetrics('server'),
    gate: licenseGate(keeper),
    routes: (routes) => {
      licenseRoutes(routes, keeper, { entry: () => () => Promise.resolve() });
      const answer = endpoint({ summary: 'Answers', answers: { 200: 'ok' } }, ({ res }) => res.json({ ok: true }));
      routes.resource('/api/v1/things', { get: answer });
      routes.resource('/api/v1/licenses', { post: answer });
    },
  });

withDatabase((harness) => {
  let database: TestDatabase;
  let clock: VirtualClock;
  let app: Express;
  let keeper: LicenseKeeper;

  beforeAll(async () => {
    database = await harness.open({ migrations: [LICENSE_MIGRATIONS] });
  });
  beforeEach(async () => {
    await emptyTables(database, 'pesit_common');
    clock = new VirtualClock('2027-03-01T08:00:00Z');
    ({ keeper } = await startPod(database, clock));
    app = appWith(keeper);
  });

  const get = (path: string) => request(app).get(path).auth('admin', 'admin');
  const post = (path: string, body: object) => request(app).post(path).auth('admin', 'admin').send(body);
  const block = async (): Promise<void> => {
    clock.days(31);
    await keeper.refresh();
  };

  test('a build with a cap on extensions shows it, and answers 409 beyond it', async () => {
    ({ keeper } = await startPod(database, clock, { maxExtensionDays: 10 }));
    app = appWith(keeper);
    expect((await post(EXTEND, { days: 10 })).body).toMatchObject({
      evaluationDaysRemaining: 40,
      maxExtensionDays: 10,
    });
    const beyond = await post(EXTEND, { days: 1 });
    expect([beyond.status, beyond.body]).toEqual([
      409,
      expect.objectContaining({ error: 'CONFLICT', message: expect.stringContaining('10 days of extension in all') }),
    ]);
    expect((await get(LICENSE)).body).toMatchObject({ evaluationDaysRemaining: 40 });
  });

  test('the license object, in every mode', async () => {
    expect((await get(LICENSE)).body).toEqual({
      ...keeper.status,
      publicKey: { source: 'CONFIGURATION', fingerprint: VENDOR_KEY.fingerprint },
      maxExtensionDays: null,
    });
    expect((await get(LICENSE)).body).toMatchObject({ evaluation: true, evaluationStartDate: '2027-03-01' });
    await block();
    expect((await get(LICENSE)).body).toMatchObject({ blocked: true, daysUntilExpiration: 0 });
    const installed = await post(LICENSE, { license: license() });
    expect([installed.status, installed.body]).toMatchObject([200, { valid: true, customer: 'Banque Exemple' }]);
    expect((await get(LICENSE)).body).toEqual(installed.body);
  });

  test('blocked: 402 as specified, and everything works again once licensed', async () => {
    expect((await get('/api/v1/things')).status).toBe(200);
    await block();
    const { status, body } = await get('/api/v1/things?page=1');
    expect([status, body]).toEqual([
      402,
      {
        error: 'LICENSE_REQUIRED',
        message: 'The evaluation period is over since 2027-03-31. Install a license with POST /api/v1/license',
        licenseUrl: '/api/v1/license',
        path: '/api/v1/things',
        timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      },
    ]);
    await post(LICENSE, { license: license() });
    expect((await get('/api/v1/things')).status).toBe(200);
    await post(`${LICENSE}?force=true`, { license: license({ expiryDate: '2027-03-31' }) });
    expect((await get('/api/v1/things')).status).toBe(402);
    const { body: extended } = await post(EXTEND, { days: 3 });
    expect(extended).toMatchObject({ evaluation: true, evaluationDaysRemaining: 3 });
    expect((await get('/api/v1/things')).status).toBe(200);
  });

  test.each([
    ['GET', '/api/v1/things', 402],
    ['GET', '/api/v1/unknown', 402],
    ['POST', '/api/v1/licenses', 402],
    ['GET', '/api/v1/license/history', 402],
    ['GET', '/api/v1//license', 402],
    ['GET', '/api/v1/%6cicense', 402],
    ['GET', '/api/v1/license/../things', 402],
    ['GET', '/api/v1/things?x=/api/v1/license', 402],
    ['GET', '/API/v1/License/', 200],
    ['HEAD', LICENSE, 200],
    ['DELETE', LICENSE, 405],
    ['GET', EXTEND, 405],
    ['GET', '/actuator/health', 200],
    ['GET', '/actuator/health/liveness', 200],
    ['GET', '/actuator/health/readiness', 200],
  ] as const)('blocked: %s %s is %d', async (method, path, status) => {
    await block();
    const answer = await request(app)[method.toLowerCase() as 'get'](path).auth('admin', 'admin');
    expect(answer.status).toBe(status);
  });

  test('login comes first: 401, not 402', async () => {
    await block();
    for (const path of ['/api/v1/things', LICENSE, EXTEND]) {
      const { status, body } = await request(app).get(path);
      expect([status, body.error]).toEqual([401, 'UNAUTHORIZED']);
    }
  });

  test('days are named in the last two weeks, on every answer', async () => {
    expect((await get('/api/v1/things')).headers).not.toHaveProperty('x-license-days-remaining');
    clock.days(16);
    await keeper.refresh();
    for (const path of ['/api/v1/things', LICENSE, '/api/v1/unknown']) {
      expect((await get(path)).headers['x-license-days-remaining']).toBe('14');
    }
    await block();
    expect((await get('/api/v1/things')).headers['x-license-days-remaining']).toBe('0');
  });

  describe('bad input', () => {
    const hmac = base64(hs256(unsigned(undefined, { alg: 'HS256' }), VENDOR_KEY.pem));
    test.each<[string, string, object, string, RegExp]>([
      ['no license', LICENSE, {}, 'license', /expected the base64 text/],
      ['a number', LICENSE, { license: 7 }, 'license', /expected the base64 text/],
      ['an empty license', LICENSE, { license: '' }, 'license', /empty/],
      ['junk', LICENSE, { license: 'junk!' }, 'license', /Not base64/],
      ['an unknown field', LICENSE, { license: license(), key: 'x' }, 'key', /unknown field/],
      ['HS256 with the public key', LICENSE, { license: hmac }, 'license', /HS256/],
      ['force=yes', `${LICENSE}?force=yes`, { license: license() }, 'force', /true or false/],
      ['no days', EXTEND, {}, 'days', /1 to 365/],
      ['0 days', EXTEND, { days: 0 }, 'days', /1 to 365/],
      ['366 days', EXTEND, { days: 366 }, 'days', /1 to 365/],
      ['half a day', EXTEND, { days: 1.5 }, 'days', /1 to 365/],
      ['days in text', EXTEND, { days: '3' }, 'days', /1 to 365/],
    ])('%s', async (_, path, body, field, words) => {
      const answer = await post(path, body);
      expect([answer.status, answer.body.error]).toEqual([400, 'VALIDATION_ERROR']);
      expect(answer.body.details).toEqual([{ field, message: expect.stringMatching(words) }]);
      expect(keeper.status).toMatchObject({ evaluation: true, evaluationDaysRemaining: 30 });
    });

    test('days are added up', async () => {
      await post(EXTEND, { days: 365 });
      expect((await post(EXTEND, { days: 5 })).body).toMatchObject({ evaluationDaysRemaining: 400 });
    });
  });

  test('a license smaller than what runs: 409', async () => {
    const usage = () => Promise.resolve({ clusters: 2, podsPerCluster: 1 });
    ({ keeper } = await startPod(database, clock, { usage }));
    app = appWith(keeper);
    await post(LICENSE, { license: license({ type: 'BUSINESS', maxClusters: 5 }) });
    const small = { license: license({ licenseId: 'SMALL', expiryDate: '2029-12-31' }) };
    const { status, body } = await post(LICENSE, small);
    expect([status, body.message]).toEqual([
      409,
      'License SMALL allows 1 clusters and 3 pods in each, but 2 and 1 run: stop some first, or repeat with ?force=true',
    ]);
    expect((await post(`${LICENSE}?force=true`, small)).body).toMatchObject({ licenseId: 'SMALL' });
  });
});

const known = (status?: Partial<LicenseStatus>) => ({ status: status as LicenseStatus | undefined });
const BLOCKED = known({ blocked: true, daysUntilExpiration: 0, message: 'over' });
const VALID = known({ blocked: false, valid: true, daysUntilExpiration: 90, message: 'Licensed' });

test('health shows the mode, and is down only until it is known', () => {
  expect([VALID, BLOCKED, known()].map(licenseHealth)).toEqual([
    { status: 'UP', details: { license: 'VALID', daysRemaining: 90, reason: 'Licensed' } },
    { status: 'BLOCKED', details: { license: 'BLOCKED', daysRemaining: 0, reason: 'over' } },
    { status: 'DOWN', details: { license: 'UNKNOWN', reason: 'not read yet' } },
  ]);
});

test('before the license was read: 503, but never a 402', async () => {
  const app = appWith(known() as unknown as LicenseKeeper);
  for (const path of ['/api/v1/things', LICENSE]) {
    const { status, body } = await request(app).get(path).auth('admin', 'admin');
    expect([status, body.message]).toEqual([503, 'The license has not been read yet: try again']);
  }
});

/** What the probes and `/actuator/info` answer, and to whom. */
import { describe, expect, test } from '@jest/globals';
import request from 'supertest';
import { testConfig } from '@pesit-node/service/testing';
import { build, auth } from '../support/http-app.js';

describe('health', () => {
  test('components, readiness and draining', async () => {
    const { app, health } = build();
    let database: 'UP' | 'DOWN' = 'UP';
    health.register('database', () => ({ status: database, details: { mode: 'embedded' } }), { readiness: true });
    health.register('listeners', () => {
      throw new Error('one FAILED');
    });
    const overall = await request(app).get('/actuator/health').set(auth);
    expect([overall.status, overall.body]).toEqual([
      503,
      {
        status: 'DOWN',
        components: {
          database: { status: 'UP', details: { mode: 'embedded' } },
          listeners: { status: 'DOWN', details: { reason: 'one FAILED' } },
        },
      },
    ]);
    expect((await request(app).get('/actuator/health/readiness')).status).toBe(200);
    database = 'DOWN';
    const notReady = await request(app).get('/actuator/health/readiness');
    expect([notReady.status, notReady.body.components.database.status]).toEqual([503, 'DOWN']);
    database = 'UP';
    health.drain();
    const draining = await request(app).get('/actuator/health/readiness').set(auth);
    expect([draining.status, draining.body.components.lifecycle]).toEqual([
      503,
      { status: 'DOWN', details: { reason: 'draining' } },
    ]);
    expect((await request(app).get('/actuator/health/liveness')).body).toEqual({ status: 'UP', components: {} });
  });

  test('strangers see the status of each component, and neither reasons nor names', async () => {
    const { app, health } = build();
    const details = { reason: 'connect ECONNREFUSED 10.0.0.5:5432', pod: 'server-0', user: 'pesit' };
    health.register('database', () => ({ status: 'DOWN', details }), { readiness: true });
    health.register('license', () => ({ status: 'BLOCKED', details: { reason: 'expired 3 days ago' } }));
    const components = { database: { status: 'DOWN' }, license: { status: 'BLOCKED' } };
    expect((await request(app).get('/actuator/health')).body).toEqual({ status: 'DOWN', components });
    health.drain();
    const readiness = await request(app).get('/actuator/health/readiness');
    expect([readiness.status, readiness.body]).toEqual([
      503,
      { status: 'DOWN', components: { lifecycle: { status: 'DOWN' }, database: { status: 'DOWN' } } },
    ]);
    expect((await request(app).get('/actuator/health').set(auth)).body.components.database).toEqual({
      status: 'DOWN',
      details,
    });
  });

  test('a wrong login is refused by the probes as everywhere, and not by liveness', async () => {
    const { app, log } = build({ loginLimits: { limit: 1 } });
    const wrong = { Authorization: `Basic ${Buffer.from('admin:no').toString('base64')}` };
    const ask = (path: string) => request(app).get(path).set(wrong);
    expect((await ask('/actuator/health')).body).toMatchObject({ error: 'UNAUTHORIZED', path: '/actuator/health' });
    const blocked = await ask('/actuator/health/readiness');
    expect([blocked.status, blocked.headers['retry-after']]).toEqual([429, '60']);
    expect((await ask('/actuator/health/liveness')).status).toBe(200);
    expect((await request(app).get('/actuator/health')).status).toBe(200);
    expect(log.entries().filter(({ msg }) => msg === 'login failed')).toHaveLength(1);
  });

  test('info needs login unless metrics.public', async () => {
    const { app } = build();
    expect((await request(app).get('/actuator/info')).status).toBe(401);
    const info = await request(app).get('/actuator/info').set(auth);
    expect(info.body).toEqual({
      name: 'pesit-server',
      version: '1.2.3',
      node: process.version,
      keysWithoutEffect: [],
      periodicWork: [],
    });
    const open = build({ config: testConfig('server', { 'data.directory': '/nowhere', 'metrics.public': true }) });
    expect((await request(open.app).get('/actuator/info')).status).toBe(200);
    expect((await request(open.app).get('/api/v1/things')).status).toBe(401);
  });

  test('info shows what happens by itself, and what of it fails, to those who have logged in', async () => {
    const never = { lastEnd: undefined, failure: undefined, failures: 0 };
    const lastEnd = new Date('2027-03-01T08:00:00Z');
    const failing = { name: 'removal of leftovers', running: false, lastEnd, failure: 'disk full', failures: 3 };
    const periodic = { status: [{ name: 'look at the queue', running: true, ...never }, failing] };
    const shown = [
      { name: 'look at the queue', running: true, lastEnd: null, failure: null, failures: 0 },
      { ...failing, lastEnd: '2027-03-01T08:00:00.000Z' },
    ];
    const info = await request(build({ periodic }).app).get('/actuator/info').set(auth);
    expect(info.body).toMatchObject({ periodicWork: shown });
    const config = testConfig('server', { 'data.directory': '/nowhere', 'metrics.public': true });
    const open = build({ periodic, config });
    const ask = () => request(open.app).get('/actuator/info');
    expect((await ask()).body).toEqual({
      ...{ name: 'pesit-server', version: '1.2.3', node: process.version, keysWithoutEffect: [] },
    });
    expect((await ask().set(auth)).body).toMatchObject({ periodicWork: shown });
    const wrong = `Basic ${Buffer.from('admin:no').toString('base64')}`;
    expect((await ask().set('Authorization', wrong)).status).toBe(401);
  });

  test('info shows the keys that are set for nothing, with the reason and without the value', async () => {
    const { app } = build({
      config: testConfig('server', {
        'data.directory': '/nowhere',
        'api-port': 8081,
        'redis.url': 'redis://r',
      }),
    });
    const info = await request(app).get('/actuator/info').set(auth);
    expect((info.body as { keysWithoutEffect: unknown }).keysWithoutEffect).toEqual([
      { key: 'api-port', reason: 'each app has one REST interface: set server.port' },
      { key: 'redis.url', reason: 'cluster.enabled is false' },
    ]);
  });
});

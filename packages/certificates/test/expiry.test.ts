/** Stores that come to their end: in the log once each time, in health and metric always. */
import { EventEmitter } from 'node:events';

import { expect, test } from '@jest/globals';
import { HealthRegistry, PeriodicWork } from '@pesit-node/service';
import { captureLog, testMetrics, withDatabase } from '@pesit-node/service/testing';

import { ExpiryWatch, followExpiry } from '../src/expiry.js';
import { useStores } from './support/app.js';
import { OpenSsl } from './support/openssl.js';

const openssl = new OpenSsl();
const root = openssl.ca('root');
const short = openssl.issue({ name: 'short', days: 29, issuer: root });
const DAY_MS = 86_400_000;

withDatabase((harness) => {
  const stores = useStores(harness);

  test('each threshold is said once, by whichever pod comes first, and again after a renewal', async () => {
    const { post, put } = stores.rest(stores.pod());
    const chain = { certificate: root.pem, privateKey: root.keyPem };
    await post('/keystores', { name: 'LONG', ...chain });
    await post('/truststores', { name: 'BANKS', certificates: root.pem + short.pem });
    await put('/keystores/LONG', { certificate: short.pem + root.pem, privateKey: short.keyPem });
    let now = Date.now();
    const log = captureLog();
    const pods = [0, 1].map(
      () => new ExpiryWatch({ knex: stores.database().knex, logger: log.logger, now: () => now }),
    );
    const said = async (): Promise<readonly unknown[]> => {
      log.clear();
      await Promise.all(pods.map((pod) => pod.look()));
      await Promise.all(pods.map((pod) => pod.warn()));
      return log
        .entries()
        .map(({ level, keystore, truststore, daysRemaining, msg }) => [
          level,
          keystore ?? truststore,
          daysRemaining,
          msg,
        ]);
    };
    const both = (level: string, days: number, words: string) =>
      expect.arrayContaining([
        [level, 'LONG', days, `keystore ${words}`],
        [level, 'BANKS', days, `truststore ${words}`],
      ]);
    const soon = 'expires: renew it in time';
    expect(await said()).toEqual(both('warn', 29, soon));
    expect(await said()).toEqual([]);
    now += 10 * DAY_MS;
    expect(await said()).toEqual([]);
    for (const [days, left] of [
      [5, 14],
      [7, 7],
      [6, 1],
    ] as const) {
      now += days * DAY_MS;
      expect(await said()).toEqual(both('warn', left, soon));
      expect(await said()).toEqual([]);
    }
    const [pod] = pods;
    expect(pod?.health()).toEqual({
      status: 'UP',
      details: {
        stores: 2,
        expiring: [
          { store: 'keystore/LONG', notAfter: expect.any(String), daysRemaining: 1 },
          { store: 'truststore/BANKS', notAfter: expect.any(String), daysRemaining: 1 },
        ],
      },
    });
    now += DAY_MS;
    const over = 'has expired: connections that use it fail until it is renewed';
    // What is left in the truststore is valid for another day.
    expect(await said()).toEqual(expect.arrayContaining([['error', 'LONG', 0, `keystore ${over}`]]));
    expect(await said()).toEqual([]);
    await put('/keystores/LONG', chain);
    now -= 28 * DAY_MS;
    expect(await said()).toEqual([['warn', 'LONG', 29, `keystore ${soon}`]]);
  });

  test('the end of a store is the first of its certificates', async () => {
    const { post } = stores.rest(stores.pod());
    await post('/keystores', { name: 'NODE', certificate: short.pem + root.pem, privateKey: short.keyPem });
    const watch = new ExpiryWatch({ knex: stores.database().knex, logger: stores.log.logger });
    const end = openssl.run('x509', '-in', short.certificate, '-noout', '-enddate').trim().replace('notAfter=', '');
    expect(await watch.look()).toEqual([{ kind: 'keystore', name: 'NODE', expiresAt: Date.parse(end) }]);
    const health = new HealthRegistry();
    const metrics = testMetrics('server');
    const periodic = new PeriodicWork({ logger: stores.log.logger });
    const supervisor = Object.assign(new EventEmitter(), { ready: true }) as never;
    followExpiry({ knex: stores.database().knex, logger: stores.log.logger, periodic, health, metrics, supervisor });
    const said = stores.log.next('keystore expires: renew it in time');
    (supervisor as EventEmitter).emit('ready');
    expect(await said).toMatchObject({ level: 'warn', keystore: 'NODE', daysRemaining: 29 });
    const sample = `pesit_certificate_expiry_timestamp_seconds{store="keystore/NODE"} ${String(Date.parse(end) / 1000)}\n`;
    expect(await metrics.scrape()).toContain(sample);
    const { components } = await health.health();
    expect(components['certificates']).toMatchObject({
      details: { stores: 1, expiring: [{ store: 'keystore/NODE' }] },
    });
    await periodic.stop();
  });
});

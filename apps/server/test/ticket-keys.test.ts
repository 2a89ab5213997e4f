/** Session tickets of TLS: two pods over one database, and the secrets of which their keys are made. */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import type { SecureVersion } from 'node:tls';

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { TestCa } from '@pesit-node/net/testing/certificates';
import type { TestCertificate } from '@pesit-node/net/testing/certificates';
import { summaryOf } from '@pesit-node/protocol/testing';
import { SecretBox, SecretError } from '@pesit-node/service';
import { captureLog, emptyTables, freePort, withDatabase } from '@pesit-node/service/testing';
import type { TestDatabase } from '@pesit-node/service/testing';

import { TicketKeyStore } from '../src/certificates/ticket-key-store.js';
import { TicketKeys } from '../src/certificates/ticket-keys.js';
import { MIGRATIONS } from '../src/migrations/index.js';
import { TestNode, until } from './support/node.js';
import { secrets } from './support/passwords.js';
import { RawPeer } from './support/raw-peer.js';
import { CONNECT } from './support/steps.js';

const TIMEOUT = 86_400;
const PERIOD_MS = (TIMEOUT * 1000) / 2;
/** The database says that a period begins. */
const BEGIN = (Math.floor(Date.now() / PERIOD_MS) + 1) * PERIOD_MS;
const STORES = '/api/v1/certificates';
const VERSIONS = [['TLSv1.2'], ['TLSv1.3']] as const;

/** What became of one who came. */
interface Visit {
  readonly resumed: boolean;
  /** Undefined: he was not let in. */
  readonly said: string | undefined;
  readonly ticket: Buffer | undefined;
}

withDatabase((harness) => {
  let database: TestDatabase;
  /** Milliseconds since `BEGIN`, on every clock. */
  let time = 0;

  beforeAll(async () => {
    database = await harness.open({ migrations: [MIGRATIONS] });
  });
  beforeEach(async () => {
    await emptyTables(database, 'pesit_server', 'pesit_common');
    time = 0;
  });
  afterAll(() => database.knex.destroy());

  const atDatabase = (): Promise<number> => Promise.resolve(BEGIN + time);

  describe('two pods', () => {
    let ca: TestCa;
    let identity: TestCertificate;
    let partner: TestCertificate;
    let directory: string;
    let port: number;
    const pods: TestNode[] = [];

    beforeAll(async () => {
      ca = await TestCa.create('Bank CA');
      identity = await ca.issue('node');
      partner = await ca.issue('acme');
    });

    const hostOf = (pod: TestNode): string => pod.config['listener.host'];
    const pod = (number: 1 | 2): TestNode => pods[number - 1]!;

    beforeEach(async () => {
      directory = await mkdtemp(join(tmpdir(), 'pesit-ticket-keys-'));
      await mkdir(join(directory, 'data'));
      port = await freePort();
      for (const number of [1, 2]) {
        const own = await harness.another({ ...database, searchPath: [MIGRATIONS.schema] });
        const node = new TestNode(own, join(directory, 'data'), captureLog(), {
          settings: { 'listener.host': `127.0.0.${number}`, 'ssl.session-timeout': TIMEOUT },
          ...{ node: `pod-${number}`, answerMs: 0, listenerLookMs: 200, storeLookMs: 200 },
          // Another start than the clock of the database, and than that of the other pod.
          ticketTime: { pod: () => time + number * 1_000_000, database: atDatabase },
        });
        pods.push(node);
        await node.start();
      }
      const { certificateChain: certificate, privateKey } = identity;
      await pod(1).call('post', `${STORES}/keystores`, { name: 'node', certificate, privateKey });
      await pod(1).call('post', `${STORES}/truststores`, { name: 'partners', certificates: ca.certificate });
      const stores = { keystoreName: 'node', truststoreName: 'partners', revocation: 'soft' };
      await pod(1).call('post', '/api/v1/servers', {
        ...{ serverId: 'NODE1', port: null, sslEnabled: true, tlsPort: port, sslClientAuth: 'NEED', ...stores },
      });
      // It is known by its certificate, which a session that is resumed has to bring along.
      await pod(1).partner('ACME', { certificateFingerprint: partner.fingerprint });
      await until(async () => (await come(pod(2)).catch(() => undefined))?.said);
    });
    afterEach(async () => {
      for (const one of pods.splice(0)) await one.stop();
      await rm(directory, { recursive: true, force: true });
    });

    const come = async (to: TestNode, version?: SecureVersion, session?: Buffer): Promise<Visit> => {
      const { certificateChain: cert, privateKey: key } = partner;
      const terms = version === undefined ? {} : { minVersion: version, maxVersion: version };
      const socket = connect({ host: hostOf(to), port, cert, key, session, rejectUnauthorized: false, ...terms });
      let ticket: Buffer | undefined;
      socket.on('session', (given: Buffer) => (ticket = given));
      await once(socket, 'secureConnect');
      const resumed = socket.isSessionReused();
      const peer = RawPeer.on(socket);
      const answer = await peer.send(CONNECT);
      socket.destroy();
      return { resumed, said: answer && summaryOf(answer), ticket: ticket ?? socket.getSession() };
    };

    test.each(VERSIONS)(
      '%s: a session is resumed at the other pod, in the next period too, and at none when that is over',
      async (version) => {
        const opened = await come(pod(1), version);
        expect(opened).toMatchObject({ resumed: false, said: 'ACONNECT' });
        const resumed = { resumed: true, said: 'ACONNECT' };
        expect(await come(pod(2), version, opened.ticket)).toMatchObject(resumed);
        time = PERIOD_MS;
        const again = await come(pod(2), version, opened.ticket);
        expect(again).toMatchObject(resumed);
        const late = await come(pod(2), version);
        expect(await come(pod(1), version, late.ticket)).toMatchObject(resumed);
        // However often it was resumed, and when: it ends with the key with which it began.
        time = 2 * PERIOD_MS;
        for (const { ticket } of [opened, again]) {
          expect(await come(pod(1), version, ticket)).toMatchObject({ resumed: false, said: 'ACONNECT' });
        }
        expect(await come(pod(1), version, late.ticket)).toMatchObject(resumed);
      },
    );

    test.each(VERSIONS)(
      '%s: with another truststore the other pod resumes no session; who was revoked is refused there',
      async (version) => {
        const opened = await come(pod(1), version);
        const more = await TestCa.create('Another CA');
        const change = (fields: object) => pod(1).call('put', `${STORES}/truststores/partners`, { ...fields });
        await change({ certificates: ca.certificate + more.certificate });
        const anew = await until(async () => {
          const visit = await come(pod(2), version, opened.ticket);
          return visit.resumed ? undefined : visit;
        });
        expect(anew.said).toBe('ACONNECT');
        await change({ crls: await ca.crl([partner.serial]) });
        for (const { ticket } of [opened, anew]) {
          await until(async () => (await come(pod(2), version, ticket)).said === undefined || undefined);
          expect((await come(pod(2), version, ticket)).said).toBeUndefined();
        }
      },
    );

    test('what their keys are made of is sealed in the database, and is said nowhere', async () => {
      const { ticket } = await come(pod(1));
      expect((await come(pod(2), undefined, ticket)).resumed).toBe(true);
      const { rows } = await database.knex.raw<{ rows: { dump: string; secret: string; owner: string }[] }>(
        `select t::text as dump, secret, 'ticket-keys/' || period_ms || '/' || number as owner from ticket_keys t`,
      );
      expect(rows).toHaveLength(2);
      const said = [...pods.flatMap(({ log, answers }) => [...log.lines, ...answers]), ...rows.map(({ dump }) => dump)];
      for (const { secret, owner } of rows) {
        const opened = secrets.open(secret, owner);
        const bytes = Buffer.from(opened, 'base64');
        expect(bytes).toHaveLength(32);
        for (const form of [opened, bytes.toString('hex'), bytes.toString('base64url')]) {
          expect(said.filter((text) => text.includes(form))).toEqual([]);
        }
      }
    });
  });

  describe('the secrets', () => {
    const store = (box = secrets) => new TicketKeyStore(database.knex, box);
    const keys = (at: Partial<TicketKeyStore> = {}, timeout = TIMEOUT) => {
      const real = store();
      return new TicketKeys({
        store: { time: atDatabase, take: (period) => real.take(period), ...at },
        ...{ timeout: () => timeout, now: () => time },
      });
    };
    const shown = (ring: TicketKeys, kind = 'terms'): readonly string[] =>
      ring
        .keysFor(kind)()
        .map((key) => key.toString('hex'));

    test('are the same for pods that need one at the same moment, and others for other terms', async () => {
      const rings = Array.from({ length: 5 }, () => keys());
      await Promise.all(rings.map((ring) => ring.look()));
      const [first = []] = rings.map((ring) => shown(ring));
      // That of this period, and of the next one: a pod whose clock is ahead seals with it.
      expect(first).toHaveLength(2);
      for (const ring of rings) expect(shown(ring)).toEqual(first);
      expect(shown(rings[0]!, 'other terms').filter((key) => first.includes(key))).toEqual([]);
      const [ring] = rings;
      expect(ring!.keysFor(undefined)()).not.toEqual(ring!.keysFor(undefined)());
    });

    test('are known a period ahead; while the database is away a pod then makes one of its own', async () => {
      const [here, there] = [keys(), keys({ take: () => Promise.reject(new Error('away')) })];
      await here.look();
      await expect(there.look()).rejects.toThrow('away');
      const lost = keys();
      await lost.look();
      expect(shown(there)).toHaveLength(1);
      expect(shown(here)).not.toContain(shown(there)[0]);

      time = PERIOD_MS;
      await here.look();
      // The one that it has learned before the database went away.
      expect(shown(lost)[0]).toBe(shown(here)[0]);
      const [last] = shown(lost);
      time = 2 * PERIOD_MS;
      await here.look();
      const [own, ...others] = shown(lost);
      expect(shown(here)).not.toContain(own);
      expect(others).toEqual([last]);

      await lost.look();
      expect(shown(lost)[0]).toBe(shown(here)[0]);
      // Its sessions are resumed there still.
      expect(shown(lost)).toContain(own);
      time = 4 * PERIOD_MS;
      expect(shown(lost)).not.toContain(own);
    });

    test('stay the objects that they are, since contexts are made for each', async () => {
      const ring = keys();
      await ring.look();
      const give = ring.keysFor('terms');
      const [before] = give();
      await ring.look();
      expect(give()[0]).toBe(before);
    });

    test('are gone from the database when nobody needs them', async () => {
      const period = { periodMs: PERIOD_MS, number: 1 };
      await store().take(period);
      await keys().look();
      const left = await database.knex('ticket_keys').pluck('number').orderBy('number');
      expect(left.map(Number)).toEqual([BEGIN / PERIOD_MS, BEGIN / PERIOD_MS + 1]);
    });

    test('are of each process alone where sessions are too short to agree on them', async () => {
      const ring = keys({}, 239);
      await ring.look();
      expect(await database.knex('ticket_keys')).toEqual([]);
      expect(shown(ring)).toHaveLength(1);
      time = 119_500;
      expect(shown(ring)).toHaveLength(2);
      time = 239_000;
      expect(shown(ring)).toHaveLength(2);
    });

    test('are not taken from a database that was slow to say the time', async () => {
      const time0 = time;
      const ring = keys({
        time: () => {
          time = time0 + 10_001;
          return atDatabase();
        },
      });
      await expect(ring.look()).rejects.toThrow('took 10001 ms');
      expect(shown(ring)).toHaveLength(1);
    });

    test('are sealed anew under another key; those whose key is lost make room', async () => {
      const [old, next] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
      const period = { periodMs: PERIOD_MS, number: BEGIN / PERIOD_MS };
      const before = await store(new SecretBox([old])).take(period);
      const lost = store(new SecretBox([next]));
      await expect(lost.take(period)).rejects.toThrow(SecretError);
      expect(await store(new SecretBox([next, old])).sealAnew()).toEqual({ sealed: 2, unreadable: [] });
      expect(await lost.take(period)).toEqual(before);
      const other = store(new SecretBox([old]));
      expect(await other.sealAnew()).toEqual({ sealed: 0, unreadable: [] });
      expect(await other.take(period)).not.toEqual(before);
    });
  });
});

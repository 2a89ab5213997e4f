/** CRLs that the leader fetches for truststores, and those of the local CA. The CRLs are those of the `openssl` command. */
import { createServer } from 'node:http';
import type { IncomingHttpHeaders, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { X509Certificate } from 'node:crypto';

import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { withDatabase } from '@pesit-node/service/testing';
import request from 'supertest';
import type { Response } from 'supertest';

import { CrlFetching } from '../src/crls/fetching.js';
import { revocationCheck } from '../src/index.js';
import { useStores } from './support/app.js';
import { derOf, OpenSsl } from './support/openssl.js';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

const openssl = new OpenSsl();
const root = openssl.ca('root');
const stranger = openssl.ca('stranger');
const leaf = openssl.issue({ name: 'leaf', issuer: root, extensions: ['basicConstraints = CA:FALSE'] });
const serial = new X509Certificate(leaf.pem).serialNumber;

interface Answer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer;
}

const binary = (res: Response, done: (error: Error | null, body: Buffer) => void): void => {
  const pieces: Buffer[] = [];
  const stream = res as unknown as NodeJS.ReadableStream;
  stream.on('data', (piece: Buffer) => pieces.push(piece));
  stream.on('end', () => done(null, Buffer.concat(pieces)));
};

/** Answers of the server, by path. */
const answers = new Map<string, Answer>();
const asked: IncomingHttpHeaders[] = [];
let server: Server;
let at: string;

beforeAll(async () => {
  server = createServer((req, res) => {
    asked.push(req.headers);
    const answer = answers.get(req.url ?? '');
    if (answer === undefined) return;
    const { status = 200, headers = {}, body = Buffer.alloc(0) } = answer;
    const isKnown = headers['ETag'] !== undefined && req.headers['if-none-match'] === headers['ETag'];
    res.writeHead(isKnown ? 304 : status, headers).end(isKnown ? undefined : body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  at = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
beforeEach(() => {
  answers.clear();
  asked.splice(0);
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

withDatabase((harness) => {
  const stores = useStores(harness);
  const NEVER = new AbortController().signal;

  /** A pod that leads, and what it makes of the clock. */
  const leader = () => {
    const pod = stores.pod();
    const clock = { now: Date.now() };
    const { knex } = stores.database();
    const fetching = new CrlFetching({
      ...{ knex, certificates: pod.certificates, logger: stores.log.logger, refreshMs: () => HOUR_MS },
      asLeader: (work) => knex.transaction(work),
      now: () => clock.now,
    });
    const rest = stores.rest(pod);
    const fetches = async (name = 'BANKS') => (await rest.get(`/truststores/${name}`)).body.crlFetches;
    return { pod, clock, rest, fetches, run: () => fetching.run(NEVER) };
  };

  const create = (rest: ReturnType<typeof leader>['rest'], paths: readonly string[], certificates = root.pem) =>
    rest.post('/truststores', { name: 'BANKS', certificates, crlUrls: paths.map((path) => at + path) });

  test('one is fetched, counts on every pod, and is asked for again under its conditions', async () => {
    const { pod, clock, rest, fetches, run } = leader();
    const other = stores.pod();
    const list = openssl.crl(root, [serial], { number: 300, days: 8 });
    answers.set('/root.crl', { headers: { ETag: '"1"' }, body: derOf(list) });
    const created = await create(rest, ['/root.crl']);
    const url = `${at}/root.crl`;
    const nothing = { thisUpdate: null, nextUpdate: null, number: null, entries: null, bytes: null };
    expect(created.body.crlFetches).toEqual([{ url, fetchedAt: null, ...nothing, error: null, nextFetchAt: null }]);
    const before = await other.certificates.trust('BANKS');
    await other.certificates.changed();
    const told = new Promise((resolve) => other.certificates.once('changed', (...what) => resolve(what)));
    await run();
    expect(await told).toEqual(['truststore', 'BANKS']);
    expect(await fetches()).toEqual([
      {
        ...{ url, number: '300', entries: 1, bytes: derOf(list).length, error: null },
        fetchedAt: new Date(clock.now).toISOString(),
        thisUpdate: expect.any(String),
        nextUpdate: expect.any(String),
        nextFetchAt: new Date(clock.now + HOUR_MS).toISOString(),
      },
    ]);
    const trust = await other.certificates.trust('BANKS');
    expect(trust).not.toBe(before);
    for (const one of [trust, await pod.certificates.trust('BANKS')]) {
      const check = revocationCheck({ mode: 'soft', trust: one, store: 'BANKS', notice: () => undefined });
      expect((await check?.([new X509Certificate(leaf.pem)]))?.code).toBe('TLS_CERTIFICATE_REVOKED');
    }
    // Not yet.
    await run();
    expect(asked).toHaveLength(1);
    clock.now += HOUR_MS;
    await run();
    expect(asked[1]?.['if-none-match']).toBe('"1"');
    expect((await fetches())[0]).toMatchObject({ number: '300', fetchedAt: new Date(clock.now).toISOString() });
    expect((await other.certificates.trust('BANKS')) === trust).toBe(true);
    // Half of the time that is left.
    clock.now += 8 * DAY_MS - HOUR_MS - 20 * MINUTE_MS;
    await run();
    const next = Date.parse((await fetches())[0].nextFetchAt) - clock.now;
    expect(next).toBeGreaterThan(9 * MINUTE_MS);
    expect(next).toBeLessThan(11 * MINUTE_MS);
  });

  /** What a URL answers after a good CRL of the number 5, and why it is refused. */
  const BAD: readonly (readonly [what: string, answer: () => Answer, error: RegExp])[] = [
    ['nobody knows it', () => ({ status: 404 }), /^the server answers 404$/],
    [
      'no CRL',
      () => ({ body: Buffer.from('<html>secret</html>') }),
      /^what came is no CRL \(expected a CRL \(RFC 5280\)/,
    ],
    ['one that is cut off', () => ({ body: derOf(openssl.crl(root, [], { number: 6 })).subarray(0, -9) }), /no CRL/],
    [
      'one of another CA',
      () => ({ body: derOf(openssl.crl(stranger, [], { number: 6 })) }),
      /^the CRL that came is signed by none of the CAs of the truststore \(root\)$/,
    ],
    [
      'one whose signature is bad',
      () => {
        const der = derOf(openssl.crl(root, [serial], { number: 6 }));
        der.writeUInt8((der.at(-1) ?? 0) ^ 1, der.length - 1);
        return { body: der };
      },
      /signed by none/,
    ],
    [
      'an older one',
      () => ({ body: derOf(openssl.crl(root, [], { number: 4 })) }),
      /^the CRL that came has the number 4, and 5 was here before/,
    ],
    ['too much', () => ({ body: Buffer.alloc(16_777_217, 0x30) }), /^it has more than 16777216 bytes$/],
    [
      'blanks, and what no base64 has',
      () => ({ body: Buffer.from(`-----BEGIN X509 CRL-----A${' '.repeat(10_000_000)}!-----END X509 CRL-----`) }),
      /^what came is no CRL \(block 1 \(X509 CRL\) is not base64\)$/,
    ],
    ['a file', () => ({ status: 302, headers: { Location: 'file:///etc/passwd' } }), /redirected to file:/],
    ['itself, for ever', () => ({ status: 302, headers: { Location: '/root.crl' } }), /redirected more than 3 times$/],
    [
      'a link-local address',
      () => ({ status: 302, headers: { Location: 'http://169.254.169.254/latest' } }),
      /^169\.254\.169\.254 is a link-local address: expected another host$/,
    ],
  ];

  test.each(BAD)('%s: the one before stays, and the truststore says why', async (_, answer, error) => {
    const { clock, rest, fetches, run, pod } = leader();
    answers.set('/root.crl', { body: derOf(openssl.crl(root, [], { number: 5 })) });
    await create(rest, ['/root.crl']);
    await run();
    const trust = await pod.certificates.trust('BANKS');
    answers.set('/root.crl', answer());
    clock.now += HOUR_MS;
    await run();
    const [shown] = await fetches();
    expect(shown).toMatchObject({ number: '5', error: expect.stringMatching(error) });
    expect(shown.nextFetchAt).toBe(new Date(clock.now + MINUTE_MS).toISOString());
    expect(shown.error).not.toContain('secret');
    expect((await rest.get('/truststores/BANKS')).body.warnings).toEqual([
      expect.stringContaining('could not be fetched'),
    ]);
    expect((await pod.certificates.trust('BANKS')) === trust).toBe(true);
    expect(stores.log.lines.join('')).toMatch(/could not fetch a CRL/);
    // Twice as long each time; once it works it is told.
    clock.now += MINUTE_MS;
    await run();
    expect((await fetches())[0].nextFetchAt).toBe(new Date(clock.now + 2 * MINUTE_MS).toISOString());
    answers.set('/root.crl', { body: derOf(openssl.crl(root, [], { number: 7 })) });
    clock.now += 2 * MINUTE_MS;
    await run();
    expect((await fetches())[0]).toMatchObject({ number: '7', error: null });
  });

  test('one that has run out is refused', async () => {
    const { clock, rest, fetches, run } = leader();
    answers.set('/root.crl', { body: derOf(openssl.crl(root, [], { days: 1 })) });
    clock.now += 2 * DAY_MS;
    await create(rest, ['/root.crl']);
    await run();
    expect((await fetches())[0]).toMatchObject({
      number: null,
      error: expect.stringMatching(/should have been replaced by/),
    });
  });

  test('a URL that is removed takes its CRL along; what a URL may be', async () => {
    const { rest, fetches, run, pod } = leader();
    answers.set('/a.crl', { body: derOf(openssl.crl(root, [serial])) });
    answers.set('/b.crl', { body: derOf(openssl.crl(stranger)) });
    await create(rest, ['/a.crl', '/b.crl'], root.pem + stranger.pem);
    await run();
    expect(
      (await fetches()).map(({ error, entries }: { error: unknown; entries: unknown }) => [error, entries]),
    ).toEqual([
      [null, 1],
      [null, 0],
    ]);
    expect((await pod.certificates.trust('BANKS')).lists.size).toBe(2);
    const put = await rest.put('/truststores/BANKS', { crlUrls: [`${at}/b.crl`] });
    expect(put.body.crlFetches).toMatchObject([{ url: `${at}/b.crl`, entries: 0 }]);
    expect((await pod.certificates.trust('BANKS')).lists.size).toBe(1);
    const bad = ['file:///etc/passwd', 'ldap://a/b', 'http://user:secret@a/b', 'nothing'].map((url) => ({
      crlUrls: [url],
    }));
    for (const body of [
      ...bad,
      { crlUrls: [at, at] },
      { crlUrls: Array.from({ length: 21 }, (_, n) => `${at}/${n}`) },
    ]) {
      expect((await rest.put('/truststores/BANKS', body)).status).toBe(400);
    }
  });

  test('the local CA needs no CRL: what it takes back counts at once, on every pod', async () => {
    const pod = stores.pod();
    const other = stores.pod();
    const { post } = stores.rest(pod);
    const ca: string = (await post('/ca', { commonName: 'Own' })).body.certificate;
    await post('/truststores', { name: 'OWN', certificates: root.pem + ca });
    const { body } = await post('/issue', { name: 'ACME', commonName: 'acme', kind: 'partner' });
    const check = async (): Promise<string | undefined> => {
      const trust = await other.certificates.trust('OWN');
      const judge = revocationCheck({ mode: 'hard', trust, store: 'OWN', notice: () => undefined });
      return (await judge?.([new X509Certificate(body.certificate)]))?.code;
    };
    expect(await check()).toBeUndefined();
    await other.certificates.changed();
    const heard = () => new Promise((resolve) => other.certificates.once('changed', resolve));
    let told = heard();
    await post('/revoked', { serial: body.serial, reason: 'certificateHold' });
    await told;
    expect(await check()).toBe('TLS_CERTIFICATE_REVOKED');
    // Peers need no login for the list.
    const list = await request(pod.app).get('/crl').buffer(true).parse(binary);
    expect([list.status, list.headers['content-type']]).toEqual([200, 'application/pkix-crl']);
    openssl.write('own.crl', list.body as Buffer);
    expect(openssl.tell('crl', '-inform', 'DER', '-in', 'own.crl', '-noout', '-text')).toContain(body.serial);
    told = heard();
    await post('/revoked', { serial: body.serial, reason: 'removeFromCRL' });
    await told;
    expect(await check()).toBeUndefined();
  });

  test('a form brings a CRL of more than a store, in DER or PEM', async () => {
    const { rest } = leader();
    await rest.post('/truststores', { name: 'BANKS', certificates: root.pem });
    const many = Array.from({ length: 40_000 }, (_, index) => (0x1000_0000 + index).toString(16).toUpperCase());
    const list = openssl.crl(root, many, { reason: 'keyCompromise' });
    expect(list.length).toBeGreaterThan(1_500_000);
    expect((await rest.form('put', '/truststores/BANKS', {}, derOf(list))).status).toBe(200);
    expect((await rest.form('put', '/truststores/BANKS', {}, Buffer.from(list))).body.crls).toBe(list);
    const short = openssl.crl(root);
    const both = Buffer.from(root.pem + short);
    expect((await rest.form('post', '/truststores', { name: 'BOTH' }, both)).body.crls).toBe(short);
  });
});

/** Revocation of a peer by OCSP; every answer is that of the `openssl ocsp` command. */
import { X509Certificate } from 'node:crypto';

import { beforeAll, beforeEach, expect, test } from '@jest/globals';

import { OcspClient, revocationCheck } from '../src/index.js';
import { readTrust } from '../src/trust.js';
import { OpenSsl, derOf } from './support/openssl.js';
import type { Issued } from './support/openssl.js';
import { REVOKED, Responder, VALID } from './support/responder.js';
import type { Answers } from './support/responder.js';

const HOUR_MS = 3_600_000;
const openssl = new OpenSsl();
const root = openssl.ca('root');
const stranger = openssl.ca('stranger');
const SIGNING = ['extendedKeyUsage = OCSPSigning'];
const delegated = openssl.issue({ name: 'delegated', issuer: root, extensions: SIGNING });
const unfit = openssl.issue({ name: 'unfit', issuer: root, extensions: ['extendedKeyUsage = clientAuth'] });
const foreign = openssl.issue({ name: 'foreign', issuer: stranger, extensions: SIGNING });

const between = openssl.ca('between', root);
const responder = new Responder(openssl, root);
const ofBetween = new Responder(openssl, between);
let leaf: Issued;
let silent: Issued;

/** The answer about `leaf`. */
const saying =
  (...how: Parameters<typeof responder.saying> extends [unknown, ...infer Rest] ? Rest : never): (() => Answers) =>
  () =>
    responder.saying(leaf, ...how);

beforeAll(async () => {
  await responder.listen();
  await ofBetween.listen();
  const names = ['basicConstraints = CA:FALSE', responder.at('ocsp')];
  leaf = openssl.issue({ name: 'leaf', issuer: root, extensions: names });
  silent = openssl.issue({ name: 'silent', issuer: root, extensions: ['basicConstraints = CA:FALSE'] });
});
beforeEach(() => {
  responder.questions = 0;
});

const judge = async (
  mode: 'soft' | 'hard',
  client: OcspClient | undefined,
  { of = leaf, crls = [] as readonly Buffer[] } = {},
) => {
  const trust = await readTrust([root.pem], crls);
  const notices: string[] = [];
  const check = revocationCheck({ mode, trust, store: 'banks', ocsp: client, notice: (text) => notices.push(text) });
  const refusal = await check?.([new X509Certificate(of.pem), new X509Certificate(root.pem)]);
  return [refusal?.code ?? 'in', refusal?.text ?? notices.join()] as const;
};

const UNKNOWN = 'TLS_REVOCATION_UNKNOWN';

const TABLE: readonly (readonly [what: string, says: () => Answers, code: string, words: RegExp])[] = [
  ['it is good', saying(VALID), 'in', /^$/],
  ['it is revoked', saying(REVOKED), 'TLS_CERTIFICATE_REVOKED', /leaf, .*keyCompromise, since 2026-01-02T03:04:05/],
  ['nobody knows it', saying(undefined), UNKNOWN, /has no CRL of root.*; the OCSP responder http.*does not know/],
  ['it is good, says one that the CA lets sign', saying(VALID, delegated), 'in', /^$/],
  ['one signs whom the CA does not let', saying(VALID, unfit), UNKNOWN, /is signed neither by the CA nor by one/],
  ['one of another CA signs', saying(VALID, foreign), UNKNOWN, /is signed neither/],
  ['another CA signs', saying(VALID, stranger), UNKNOWN, /is signed neither/],
  ['its signature is bad', saying(VALID, root, ['-nmin', '30', '-badsig']), UNKNOWN, /is signed neither/],
  ['it fails', () => (_, res) => void res.writeHead(500).end(), UNKNOWN, /the server answers 500/],
  // tryLater (RFC 6960 §4.2.1).
  ['it is busy', () => (_, res) => void res.end(Buffer.from('30030a0103', 'hex')), UNKNOWN, /it answers tryLater/],
  ['it talks of something else', () => (_, res) => void res.end('hello'), UNKNOWN, /what came is no answer of OCSP/],
  ['it talks too much', () => (_, res) => void res.end(Buffer.alloc(70_000)), UNKNOWN, /more than 65536 bytes/],
];

test.each(TABLE)('%s', async (_, says, code, words) => {
  responder.says.set('ocsp', says());
  expect(await judge('hard', new OcspClient())).toEqual([code, expect.stringMatching(words)]);
  if (code === UNKNOWN) expect((await judge('soft', new OcspClient()))[0]).toBe('in');
});

test('one that does not answer is given up', async () => {
  responder.says.delete('ocsp');
  const [code, text] = await judge('hard', new OcspClient({ timeoutMs: 20 }));
  expect([code, text]).toEqual([UNKNOWN, expect.stringContaining('it did not come whole within 20 ms')]);
});

test('an answer to another question is none', async () => {
  const questions: Buffer[] = [];
  responder.says.set('ocsp', (question, res) => {
    questions.push(question);
    saying(VALID)()(questions[0] ?? question, res);
  });
  expect((await judge('hard', new OcspClient()))[0]).toBe('in');
  const words = expect.stringContaining('its answer is one to another question');
  expect(await judge('hard', new OcspClient())).toEqual([UNKNOWN, words]);
});

test('an answer that has run out is none', async () => {
  responder.says.set('ocsp', saying(VALID)());
  const late = new OcspClient({ now: () => Date.now() + HOUR_MS });
  expect(await judge('hard', late)).toEqual([UNKNOWN, expect.stringMatching(/its answer has run out/)]);
});

test('it is asked once while its answer counts, and not where a CRL tells, nobody is named, or OCSP is off', async () => {
  responder.says.set('ocsp', saying(VALID)());
  let now = Date.now();
  const client = new OcspClient({ now: () => now });
  await Promise.all([judge('hard', client), judge('hard', client)]);
  await judge('hard', client);
  expect(responder.questions).toBe(1);
  now += 31 * 60_000;
  await judge('hard', client);
  expect(responder.questions).toBe(2);
  const crl = Buffer.from(openssl.crl(root).replace(/-----[^-]+-----/g, ''), 'base64');
  expect((await judge('hard', new OcspClient(), { crls: [crl] }))[0]).toBe('in');
  expect((await judge('hard', new OcspClient(), { of: silent }))[0]).toBe(UNKNOWN);
  expect((await judge('hard', undefined))[0]).toBe(UNKNOWN);
  expect(responder.questions).toBe(2);
});

test('a session that is resumed shows no CA between, and is asked about all the same', async () => {
  const extensions = ['basicConstraints = CA:FALSE', ofBetween.at('ocsp')];
  const below = openssl.issue({ name: 'below', issuer: between, extensions });
  ofBetween.says.set('ocsp', ofBetween.saying(below, VALID));
  let now = Date.now();
  const ocsp = new OcspClient({ now: () => now });
  const crls = [derOf(openssl.crl(root))];
  const terms = {
    mode: 'hard',
    trust: await readTrust([root.pem], crls),
    store: 'banks',
    notice: () => undefined,
  } as const;
  const check = revocationCheck({ ...terms, ocsp });
  const chain = [below, between, root].map(({ pem }) => new X509Certificate(pem));
  expect(await check?.(chain)).toBeUndefined();
  expect(await check?.(chain.slice(0, 1))).toBeUndefined();
  ofBetween.says.set('ocsp', ofBetween.saying(below, REVOKED));
  now += 31 * 60_000;
  expect(await check?.(chain.slice(0, 1))).toMatchObject({ code: 'TLS_CERTIFICATE_REVOKED' });
});

/** Revocation of a peer by OCSP; every answer is that of the `openssl ocsp` command. */
import { execFileSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { createServer } from 'node:http';
import type { Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';

import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';

import { OcspClient, revocationCheck } from '../src/index.js';
import { readTrust } from '../src/trust.js';
import { OpenSsl } from './support/openssl.js';
import type { Issued } from './support/openssl.js';

const HOUR_MS = 3_600_000;
const openssl = new OpenSsl();
const root = openssl.ca('root');
const stranger = openssl.ca('stranger');
const SIGNING = ['extendedKeyUsage = OCSPSigning'];
const delegated = openssl.issue({ name: 'delegated', issuer: root, extensions: SIGNING });
const unfit = openssl.issue({ name: 'unfit', issuer: root, extensions: ['extendedKeyUsage = clientAuth'] });
const foreign = openssl.issue({ name: 'foreign', issuer: stranger, extensions: SIGNING });

const pathOf = (name: string): string => join(openssl.directory, name);
let server: Server;
let leaf: Issued;
let silent: Issued;
let questions = 0;
let answer: (question: Buffer, res: ServerResponse) => void;

/** The answer of OpenSSL. @param status `V`, or `R` and what follows; undefined: it does not know the certificate */
const saying =
  (status: string | undefined, signer: Issued = root, more: readonly string[] = ['-nmin', '30']) =>
  (question: Buffer, res: ServerResponse): void => {
    openssl.write('question.der', question);
    const serial = new X509Certificate(leaf.pem).serialNumber;
    const known = status === undefined ? '' : `${status}\t${serial}\tunknown\t/CN=x\n`;
    openssl.write('ocsp.txt', known);
    execFileSync(
      'openssl',
      [
        ...['ocsp', '-index', pathOf('ocsp.txt'), '-CA', root.certificate, '-reqin', pathOf('question.der')],
        ...['-rsigner', signer.certificate, '-rkey', signer.key, '-respout', pathOf('answer.der'), ...more],
      ],
      { stdio: 'ignore' },
    );
    res.end(openssl.bytes('answer.der'));
  };
const VALID = 'V\t401231235959Z\t';
const REVOKED = 'R\t401231235959Z\t260102030405Z,keyCompromise';

beforeAll(async () => {
  server = createServer((req, res) => {
    questions++;
    const pieces: Buffer[] = [];
    req.on('data', (piece: Buffer) => pieces.push(piece));
    req.on('end', () => answer(Buffer.concat(pieces), res));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/ocsp`;
  const names = ['basicConstraints = CA:FALSE', `authorityInfoAccess = OCSP;URI:${url}`];
  leaf = openssl.issue({ name: 'leaf', issuer: root, extensions: names });
  silent = openssl.issue({ name: 'silent', issuer: root, extensions: ['basicConstraints = CA:FALSE'] });
});
beforeEach(() => {
  questions = 0;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
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

const TABLE: readonly (readonly [what: string, says: () => typeof answer, code: string, words: RegExp])[] = [
  ['it is good', () => saying(VALID), 'in', /^$/],
  [
    'it is revoked',
    () => saying(REVOKED),
    'TLS_CERTIFICATE_REVOKED',
    /leaf, .*keyCompromise, since 2026-01-02T03:04:05/,
  ],
  ['nobody knows it', () => saying(undefined), UNKNOWN, /has no CRL of root.*; the OCSP responder http.*does not know/],
  ['it is good, says one that the CA lets sign', () => saying(VALID, delegated), 'in', /^$/],
  ['one signs whom the CA does not let', () => saying(VALID, unfit), UNKNOWN, /is signed neither by the CA nor by one/],
  ['one of another CA signs', () => saying(VALID, foreign), UNKNOWN, /is signed neither/],
  ['another CA signs', () => saying(VALID, stranger), UNKNOWN, /is signed neither/],
  ['it answers without the nonce', () => saying(VALID, root, ['-nmin', '30', '-badsig']), UNKNOWN, /is signed neither/],
  ['it fails', () => (_, res) => void res.writeHead(500).end(), UNKNOWN, /the server answers 500/],
  // tryLater (RFC 6960 §4.2.1).
  ['it is busy', () => (_, res) => void res.end(Buffer.from('30030a0103', 'hex')), UNKNOWN, /it answers tryLater/],
  ['it talks of something else', () => (_, res) => void res.end('hello'), UNKNOWN, /what came is no answer of OCSP/],
  ['it talks too much', () => (_, res) => void res.end(Buffer.alloc(70_000)), UNKNOWN, /more than 65536 bytes/],
];

test.each(TABLE)('%s', async (_, says, code, words) => {
  answer = says();
  expect(await judge('hard', new OcspClient())).toEqual([code, expect.stringMatching(words)]);
  if (code === UNKNOWN) expect((await judge('soft', new OcspClient()))[0]).toBe('in');
});

test('one that does not answer is given up', async () => {
  answer = () => undefined;
  const [code, text] = await judge('hard', new OcspClient({ timeoutMs: 20 }));
  expect([code, text]).toEqual([UNKNOWN, expect.stringContaining('it did not come whole within 20 ms')]);
});

test('an answer that has run out is none', async () => {
  answer = saying(VALID);
  const late = new OcspClient({ now: () => Date.now() + HOUR_MS });
  expect(await judge('hard', late)).toEqual([UNKNOWN, expect.stringMatching(/its answer has run out/)]);
});

test('it is asked once while its answer counts, and not where a CRL tells, nobody is named, or OCSP is off', async () => {
  answer = saying(VALID);
  let now = Date.now();
  const client = new OcspClient({ now: () => now });
  await Promise.all([judge('hard', client), judge('hard', client)]);
  await judge('hard', client);
  expect(questions).toBe(1);
  now += 31 * 60_000;
  await judge('hard', client);
  expect(questions).toBe(2);
  const crl = Buffer.from(openssl.crl(root).replace(/-----[^-]+-----/g, ''), 'base64');
  expect((await judge('hard', new OcspClient(), { crls: [crl] }))[0]).toBe('in');
  expect((await judge('hard', new OcspClient(), { of: silent }))[0]).toBe(UNKNOWN);
  expect((await judge('hard', undefined))[0]).toBe(UNKNOWN);
  expect(questions).toBe(2);
});

/** Revocation of a peer by the CRLs of a truststore; certificates and CRLs are those of the `openssl` command. */
import { X509Certificate } from 'node:crypto';

import { describe, expect, test } from '@jest/globals';

import { revocationCheck } from '../src/index.js';
import type { RevocationMode, Trust } from '../src/index.js';
import { readCrl, readCrls } from '../src/read/crl.js';
import { SerialIndex } from '../src/read/serial-index.js';
import { readTrust } from '../src/trust.js';
import { derOf, OpenSsl } from './support/openssl.js';
import type { Issued } from './support/openssl.js';

const DAY_MS = 86_400_000;
const LEAF = ['basicConstraints = CA:FALSE'];

const openssl = new OpenSsl();
const root = openssl.ca('root');
const issuing = openssl.ca('issuing', root);
const direct = openssl.issue({ name: 'direct', issuer: root, extensions: LEAF });
const below = openssl.issue({ name: 'below', issuer: issuing, extensions: LEAF });
const alone = openssl.issue({ name: 'alone', extensions: LEAF });
const leafAlone = openssl.issue({ name: 'leaf-alone', extensions: [...LEAF, 'keyUsage = critical,digitalSignature'] });

const x509 = ({ pem }: Issued): X509Certificate => new X509Certificate(pem);
const serial = (issued: Issued): string => x509(issued).serialNumber;

const crl = openssl.crl.bind(openssl);

const PARTIAL = ['issuingDistributionPoint=critical,@idp'];
const trusting = (crls: readonly string[], cas: readonly Issued[] = [root, issuing]): Promise<Trust> =>
  readTrust(
    cas.map(({ pem }) => pem),
    crls.map(derOf),
  );

/** @returns the code of the refusal, or `in`, then its words or those of the notices */
const judge = async (mode: RevocationMode, trust: Trust | undefined, chain: readonly Issued[], days = 1) => {
  const notices: string[] = [];
  const now = (): number => Date.now() + days * DAY_MS;
  const check = revocationCheck({ mode, trust, store: 'banks', notice: (text) => notices.push(text), now });
  const refusal = await check?.(chain.map(x509));
  return [refusal?.code ?? 'in', refusal?.text ?? notices.join('\n')] as const;
};

const REVOKED = 'TLS_CERTIFICATE_REVOKED';
const UNKNOWN = 'TLS_REVOCATION_UNKNOWN';

/** Both modes refuse, with these words. */
const refused = (words: RegExp) => ({ soft: [REVOKED, words], hard: [REVOKED, words] }) as const;
/** Soft lets in with these words; hard refuses with them. */
const unknown = (words: RegExp) => ({ soft: ['in', words], hard: [UNKNOWN, words] }) as const;
const good = { soft: ['in', /^$/], hard: ['in', /^$/] } as const;

type End = readonly [code: string, words: RegExp];
type Case = readonly [
  name: string,
  trust: () => Promise<Trust> | undefined,
  chain: readonly Issued[],
  days: number,
  ends: Readonly<Record<'soft' | 'hard', End>>,
];

const DIRECT = [direct, root];
const BELOW = [below, issuing, root];

const TABLE: readonly Case[] = [
  ['nobody is revoked', () => trusting([crl(root)]), DIRECT, 1, good],
  [
    'it is revoked',
    () => trusting([crl(root, [serial(direct)], { reason: 'keyCompromise' })]),
    DIRECT,
    1,
    refused(
      /^the certificate of the partner \(direct, serial 646972656374\) was revoked by its CA root, keyCompromise, since 2026-01-02T03:04:05.000Z: the partner needs a new one$/,
    ),
  ],
  [
    'it is on hold',
    () => trusting([crl(root, [serial(direct)], { reason: 'certificateHold' })]),
    DIRECT,
    1,
    refused(/certificateHold, since .*: the CA has to release it$/),
  ],
  ['another one is revoked', () => trusting([crl(root, [serial(alone)])]), DIRECT, 1, good],
  ['a serial of another CA is revoked', () => trusting([crl(root), crl(issuing, [serial(direct)])]), DIRECT, 1, good],
  [
    'there is no CRL',
    () => trusting([]),
    DIRECT,
    1,
    unknown(
      /^nobody can say whether .*direct.* was revoked: the truststore "banks" has no CRL of root: put its newest one into crls/,
    ),
  ],
  [
    'its CRL has run out',
    () => trusting([crl(root)]),
    DIRECT,
    31,
    unknown(/the CRL of root should have been replaced by \d{4}-.*: put its newest one into crls/),
  ],
  [
    'it is revoked in a CRL that has run out',
    () => trusting([crl(root, [serial(direct)])]),
    DIRECT,
    31,
    refused(/was revoked by its CA root, unspecified/),
  ],
  [
    'its CRL has not begun',
    () => trusting([crl(root)]),
    DIRECT,
    -1,
    unknown(/the CRL of root begins at .*: look at the clocks/),
  ],
  [
    'the newer CRL released it',
    () => trusting([crl(root, [], { number: 16 }), crl(root, [serial(direct)], { number: 9 })]),
    DIRECT,
    1,
    good,
  ],
  [
    'the newer CRL revoked it',
    () => trusting([crl(root, [], { number: 9 }), crl(root, [serial(direct)], { number: 16 })]),
    DIRECT,
    1,
    refused(/was revoked/),
  ],
  [
    'the CRL tells of a part alone, and not of it',
    () => trusting([crl(root, [], { extensions: PARTIAL })]),
    DIRECT,
    1,
    unknown(/only CRLs of root that tell of a part of its certificates: .* a whole one$/),
  ],
  [
    'the CRL tells of a part alone, and of it',
    () => trusting([crl(root, [serial(direct)], { extensions: PARTIAL })]),
    DIRECT,
    1,
    refused(/was revoked/),
  ],
  ['both CAs have CRLs', () => trusting([crl(root), crl(issuing)]), BELOW, 1, good],
  [
    'the CA above it is revoked',
    () => trusting([crl(root, [serial(issuing)]), crl(issuing)]),
    BELOW,
    1,
    refused(/^a CA certificate above that of the partner \(issuing, .* was revoked by its CA root/),
  ],
  [
    'it is revoked, and nobody tells of the CA above it',
    () => trusting([crl(issuing, [serial(below)])]),
    BELOW,
    1,
    refused(/^the certificate of the partner \(below, /),
  ],
  [
    'the CA above it is revoked, and nobody tells of it',
    () => trusting([crl(root, [serial(issuing)])]),
    BELOW,
    1,
    refused(/^a CA certificate above that of the partner \(issuing, /),
  ],
  [
    'nobody tells of the CA above it',
    () => trusting([crl(issuing)]),
    BELOW,
    1,
    unknown(/whether a CA certificate above that of the partner \(issuing, .* has no CRL of root/),
  ],
  [
    'the truststore has the root alone',
    () => trusting([crl(root)], [root]),
    BELOW,
    1,
    unknown(/has no CRL of issuing: put its certificate into certificates, and its CRL into crls/),
  ],
  [
    'a resumed session shows its own certificate alone, and the CA above it is revoked',
    () => trusting([crl(root, [serial(issuing)]), crl(issuing)]),
    [below],
    1,
    refused(/^a CA certificate above/),
  ],
  ['it is self-signed: no CA to ask', () => trusting([], [alone]), [alone], 1, good],
  ['it is self-signed, and may sign no other', () => trusting([], [leafAlone]), [leafAlone], 1, good],
  ['no truststore is named', () => undefined, DIRECT, 1, unknown(/no truststore is named.*: set truststoreName/)],
  ['the peer shows none', () => trusting([]), [], 1, good],
];

test.each(TABLE)('%s', async (_, trust, chain, days, ends) => {
  const store = await trust();
  expect(await judge('off', store, chain, days)).toEqual(['in', '']);
  for (const mode of ['soft', 'hard'] as const) {
    const [code, words] = ends[mode];
    expect([mode, ...(await judge(mode, store, chain, days))]).toEqual([mode, code, expect.stringMatching(words)]);
  }
});

describe('a long CRL', () => {
  test('names each of its certificates, and no other', async () => {
    const serials = (from: number) =>
      Array.from({ length: 20_000 }, (_, index) => (from + index * 7).toString(16).toUpperCase());
    const many = serials(0x80_0000);
    // OpenSSL wants whole bytes, and DER a zero before the first bit.
    const list = readCrls(crl(root, [...many.map((hex) => hex.padStart(8, '0')), serial(direct)]));
    const index = await list[0]?.entries();
    expect(index?.size).toBe(20_001);
    expect(many.filter((one) => index?.find(one) === undefined)).toEqual([]);
    expect(serials(0x80_0001).filter((one) => index?.find(one) !== undefined)).toEqual([]);
    expect(index?.find(`00${serial(direct).toLowerCase()}`)).toBeDefined();
  });

  test('of bad entries is refused as it comes', async () => {
    const der = derOf(crl(root, [serial(direct)]));
    const date = der.indexOf('260102030405Z', 0, 'latin1');
    // The date of the entry becomes a text.
    der[date - 2] = 0x13;
    await expect(readCrl(der).entries()).rejects.toThrow('an entry has no serial or date');
  });

  test('of entries that are shorter than any is refused, instead of looked through without end', async () => {
    // 17 serials with times of no length (tag 0x17): more than the table has places for bytes so few.
    const entries = Array.from(
      { length: 17 },
      (_, index) => `300702030101${(index + 1).toString(16).padStart(2, '0')}1700`,
    );
    const list = Buffer.from(entries.join(''), 'hex');
    await expect(SerialIndex.of(list)).rejects.toThrow('an entry has no serial or date');
  });
});

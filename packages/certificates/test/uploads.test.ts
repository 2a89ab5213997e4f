/** What is made of uploads, each beside what `openssl` says of the same bytes. */
import { execFileSync, spawnSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { join } from 'node:path';

import { describe, expect, test } from '@jest/globals';

import { inspect } from '../src/inspect.js';
import { identityFromPem, identityFromPkcs12 } from '../src/read/identity.js';
import { trustFromPem } from '../src/read/trust.js';
import { OpenSsl } from './support/openssl.js';

const openssl = new OpenSsl();
const root = openssl.ca('root');
const intermediate = openssl.ca('intermediate', root);
const leaf = openssl.issue({ name: 'bank.example', issuer: intermediate, extensions: ['basicConstraints = CA:FALSE'] });
const other = openssl.issue({ name: 'other' });
const BEGIN = '-----BEGIN CERTIFICATE-----\n';
const END = '\n-----END CERTIFICATE-----';
const CHAIN = leaf.pem + intermediate.pem + root.pem;

/** Resolves to the field and the message of a refusal. */
const refusal = async (work: () => unknown): Promise<readonly [string, string]> => {
  try {
    await work();
  } catch (error) {
    const { field, message } = error as { readonly field: string; readonly message: string };
    return [field, message];
  }
  throw new Error('it was taken');
};

describe('PKCS#12', () => {
  const password = 'Päss wörd €';
  const expected = {
    certificate: [leaf, intermediate, root].map(({ pem }) => pem).join(''),
    privateKey: openssl.run('pkcs8', '-topk8', '-nocrypt', '-in', leaf.key),
    warnings: [],
  };

  test.each<[string, readonly string[]]>([
    ['of OpenSSL 3 (AES-256, PBKDF2)', []],
    ['of OpenSSL 1 (certificates under RC2 with 40 bits, the key under 3DES)', ['-legacy']],
    ['with 3DES for both', ['-certpbe', 'PBE-SHA1-3DES', '-keypbe', 'PBE-SHA1-3DES', '-macalg', 'sha1']],
    ['with certificates that are not encrypted', ['-certpbe', 'NONE']],
    ['with AES-128 and SHA-512', ['-keypbe', 'AES-128-CBC', '-certpbe', 'AES-192-CBC', '-macalg', 'sha512']],
    ['without a MAC', ['-nomac']],
    ['with 100,000 iterations', ['-iter', '100000']],
  ])('%s', async (_, more) => {
    const made = openssl.pkcs12(leaf, [root, intermediate], password, more);
    const { warnings, ...material } = await identityFromPkcs12(made, password);
    expect({ ...material, warnings: [] }).toEqual(expected);
    expect(warnings).toEqual(['the chain was out of order: it was put in order, leaf first']);
    expect(await refusal(() => identityFromPkcs12(made, 'another'))).toEqual([
      'password',
      'it does not open the PKCS#12: expected the password that it was made with',
    ]);
  });

  test('with an empty password', async () => {
    const made = openssl.pkcs12(leaf, [], '', ['-legacy']);
    expect((await identityFromPkcs12(made, '')).certificate).toBe(leaf.pem);
  });

  // A machine without Java has nothing to make one with.
  const hasJava = spawnSync('keytool', ['-help']).status === 0;
  (hasJava ? test : test.skip)('of Java', async () => {
    const file = join(openssl.directory, 'java.p12');
    execFileSync(
      'keytool',
      [
        ...['-genkeypair', '-alias', 'one', '-keyalg', 'EC', '-groupname', 'secp256r1', '-dname', 'CN=java'],
        ...['-keystore', file, '-storetype', 'PKCS12', '-storepass', 'changeit'],
      ],
      { stdio: 'ignore' },
    );
    const { certificate } = await identityFromPkcs12(openssl.bytes('java.p12'), 'changeit');
    expect(new X509Certificate(certificate).subject).toBe('CN=java');
  });

  test('that wants more iterations than anybody needs is not even tried', async () => {
    const made = openssl.pkcs12(leaf, [], 'x', ['-iter', '1000001', '-macalg', 'sha256']);
    expect(await refusal(() => identityFromPkcs12(made, 'x'))).toEqual([
      'pkcs12',
      expect.stringContaining('1000001 iterations: expected 1 to 1000000'),
    ]);
  });

  test('that is cut off at any byte, or has another byte anywhere, is refused in words', async () => {
    const made = openssl.pkcs12(leaf, [], 'x', ['-iter', '1']);
    for (let length = 0; length < made.length; length += 7) {
      const [field] = await refusal(() => identityFromPkcs12(made.subarray(0, length), 'x'));
      expect([length, field]).toEqual([length, 'pkcs12']);
    }
    for (let at = 0; at < made.length; at += 5) {
      const changed = Buffer.from(made);
      changed[at] = (changed[at] as number) ^ 0xff;
      // A byte of a name that nobody reads may change nothing.
      const fault = await refusal(() => identityFromPkcs12(changed, 'x')).catch(() => undefined);
      if (fault !== undefined) expect([at, fault[0]]).toEqual([at, expect.stringMatching(/^(?:pkcs12|password)$/)]);
    }
  });

  test('a Java keystore names the command that converts it', async () => {
    const jks = Buffer.from('feedfeed0000000200000000', 'hex');
    const [field, message] = await refusal(() => identityFromPkcs12(jks, ''));
    expect([field, message]).toEqual(['pkcs12', expect.stringContaining('keytool -importkeystore -srckeystore')]);
  });

  test.each([
    ['values within values', Buffer.alloc(900_000, Buffer.from('3080', 'hex'))],
    ['zeros', Buffer.alloc(1000)],
    ['a length beyond the end', Buffer.from('30848fffffff', 'hex')],
    ['a certificate', Buffer.from(leaf.pem)],
  ])('%s', async (_, bytes) => {
    expect((await refusal(() => identityFromPkcs12(bytes, '')))[0]).toBe('pkcs12');
  });
});

describe('PEM', () => {
  test('a chain in any order is put in order, and what is no part of it is left out', async () => {
    const { certificate, warnings } = await identityFromPem(
      root.pem + other.pem + leaf.pem + intermediate.pem,
      leaf.keyPem,
      undefined,
    );
    expect(certificate).toBe(CHAIN);
    expect(warnings).toEqual([
      'the chain was out of order: it was put in order, leaf first',
      'left out, as no part of the chain: other',
    ]);
    openssl.write('intermediates.pem', intermediate.pem);
    openssl.write('first.pem', certificate.slice(0, certificate.indexOf('-----END') + 26));
    expect(
      openssl.run('verify', '-CAfile', root.certificate, '-untrusted', 'intermediates.pem', 'first.pem'),
    ).toContain('first.pem: OK');
  });

  test.each<[string, readonly string[]]>([
    ['PKCS#8', ['pkcs8', '-topk8', '-v2', 'aes-256-cbc']],
    ['PKCS#8 with 3DES, as OpenSSL 1.0 wrote it', ['pkcs8', '-topk8', '-v1', 'PBE-SHA1-3DES']],
    ['the own form of OpenSSL', ['ec', '-aes256']],
  ])('an encrypted key: %s', async (_, how) => {
    const key = openssl.run(...how, '-in', leaf.key, '-passout', 'pass:secret');
    expect((await identityFromPem(CHAIN, key, 'secret')).privateKey).toBe(
      openssl.run('pkcs8', '-topk8', '-nocrypt', '-in', leaf.key),
    );
    expect((await refusal(() => identityFromPem(CHAIN, key, 'wrong')))[0]).toBe('password');
    expect(await refusal(() => identityFromPem(CHAIN, key, undefined))).toEqual([
      'password',
      'required: the private key is encrypted',
    ]);
  });

  test('a key with more iterations than anybody needs is not even tried', async () => {
    const key = openssl.run('pkcs8', '-topk8', '-iter', '1000001', '-in', leaf.key, '-passout', 'pass:x');
    expect((await refusal(() => identityFromPem(CHAIN, key, 'x')))[1]).toContain('1000001 iterations');
  });

  const rsa1024 = openssl.issue({ name: 'rsa1024', newKey: ['rsa:1024'] });
  const weakCurve = openssl.issue({ name: 'weak', newKey: ['ec', '-pkeyopt', 'ec_paramgen_curve:secp224r1'] });

  test.each<[string, () => unknown, string, string]>([
    ['the key of another', () => identityFromPem(CHAIN, other.keyPem, undefined), 'privateKey', 'belongs to none'],
    ['no key', () => identityFromPem(CHAIN, CHAIN, undefined), 'privateKey', 'got none'],
    ['two keys', () => identityFromPem(CHAIN, leaf.keyPem + other.keyPem, undefined), 'privateKey', 'got 2'],
    ['no certificate', () => identityFromPem(leaf.keyPem, leaf.keyPem, undefined), 'certificate', 'got none'],
    ['RSA of 1024 bits', () => identityFromPem(rsa1024.pem, rsa1024.keyPem, undefined), 'certificate', '1024 bits'],
    ['a weak curve', () => identityFromPem(weakCurve.pem, weakCurve.keyPem, undefined), 'certificate', 'secp224r1'],
    ['a CA with a weak key', () => trustFromPem(root.pem + rsa1024.pem), 'certificates', 'certificate 2 (rsa1024)'],
    ['a text that is cut off', () => trustFromPem(CHAIN.slice(0, -30)), 'certificates', 'is it cut off?'],
    ['DER that is cut off', () => trustFromPem(cut(leaf.pem)), 'certificates', 'certificate 1 cannot be read'],
    ['10 MB', () => trustFromPem(root.pem.repeat(15_000)), 'certificates', 'at most 1048576 bytes'],
    ['10,000 certificates', () => trustFromPem(`${BEGIN}AA==${END}\n`.repeat(10_000)), 'certificates', 'at most 1000'],
    ['an extension of 1 MB', () => trustFromPem(big(700_000)), 'certificates', 'at most 65536'],
    ['a megabyte of blanks', () => trustFromPem(`${BEGIN}A${' '.repeat(1_000_000)}!${END}`), 'certificates', 'base64'],
    ['nothing', () => trustFromPem(''), 'certificates', 'got none'],
  ])('refused: %s', async (_, work, field, words) => {
    const begun = performance.now();
    expect(await refusal(work)).toEqual([field, expect.stringContaining(words)]);
    expect(performance.now() - begun).toBeLessThan(10_000);
  });

  const cut = (pem: string): string => {
    const der = new X509Certificate(pem).raw;
    return `${BEGIN}${der.subarray(0, der.length - 20).toString('base64')}${END}`;
  };
  /** A certificate whose only fault is its size: built from a whole one, with a long extension behind. */
  const big = (size: number): string => `${BEGIN}${Buffer.alloc(size, 0x30).toString('base64')}${END}`;
});

test('a bundle holds each certificate once', () => {
  expect(trustFromPem(root.pem + intermediate.pem + root.pem)).toEqual({
    certificates: root.pem + intermediate.pem,
    warnings: ['1 of 3 certificates stood there more than once'],
  });
});

test.each<[string, readonly string[], string, number]>([
  ['P-256', ['ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'], 'EC', 256],
  ['P-384', ['ec', '-pkeyopt', 'ec_paramgen_curve:secp384r1'], 'EC', 384],
  ['RSA', ['rsa:2048'], 'RSA', 2048],
  ['Ed25519', ['ed25519'], 'Ed25519', 256],
])('what is told of a certificate is what openssl tells: %s', (name, newKey, keyType, keySize) => {
  const made = openssl.issue({
    ...{ name: `shown-${name}`, newKey, issuer: root, subject: '/C=FR/O=Acme, Inc/CN=bank "x"' },
    extensions: ['subjectAltName = DNS:a.example,IP:192.0.2.7,IP:2001:db8::1,URI:urn:x:y,email:a@b.c'],
  });
  const shown = inspect(new X509Certificate(made.pem));
  const ask = (what: string): string =>
    openssl.run(
      'x509',
      '-in',
      made.certificate,
      '-noout',
      `-${what}`,
      ...(what === 'fingerprint' ? ['-sha256'] : []),
      '-nameopt',
      'RFC2253',
    );
  expect(`subject=${shown.subject}`).toBe(ask('subject').trim());
  expect(`issuer=${shown.issuer}`).toBe(ask('issuer').trim());
  expect(`serial=${shown.serial}`).toBe(ask('serial').trim());
  expect(`sha256 Fingerprint=${shown.fingerprint}`).toBe(ask('fingerprint').trim());
  expect(Date.parse(shown.notAfter)).toBe(Date.parse(ask('enddate').trim().replace('notAfter=', '')));
  expect(Date.parse(shown.notBefore)).toBe(Date.parse(ask('startdate').trim().replace('notBefore=', '')));
  expect(shown.san).toEqual(['DNS:a.example', 'IP:192.0.2.7', 'IP:2001:db8::1', 'URI:urn:x:y', 'email:a@b.c']);
  expect([shown.keyType, shown.keySize]).toEqual([keyType, keySize]);
});

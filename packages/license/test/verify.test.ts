import { describe, expect, test } from '@jest/globals';
import { createSign } from 'node:crypto';
import fc from 'fast-check';

import { checkLicense, MAX_LICENSE_TEXT, timeFault, verifyLicense } from '../src/verify.js';
import { base64, CLAIMS, hs256, keyPair, license, rs256, unsigned, VENDOR, VENDOR_KEY } from './support/vendor.js';

const NOW = Date.parse('2027-06-15T12:00:00Z');
const VALID = license();
const OTHER = keyPair();

test('a license of the vendor is read', () => {
  expect(checkLicense(VALID, VENDOR_KEY, NOW)).toEqual({
    ok: true,
    license: {
      ...CLAIMS,
      expiresAt: Date.parse('2028-01-01T00:00:00Z'),
      notBefore: -Infinity,
      text: VALID,
    },
  });
});

test.each([
  ['PROFESSIONAL', 1, 3],
  ['BUSINESS', 5, -1],
  ['ENTERPRISE', -1, -1],
])('%s allows %d clusters and %d pods when it does not say', (type, maxClusters, maxPodsPerCluster) => {
  const text = license({ type, maxClusters: undefined, maxPodsPerCluster: undefined });
  expect(checkLicense(text, VENDOR_KEY, NOW)).toMatchObject({ license: { type, maxClusters, maxPodsPerCluster } });
});

test('claims of a newer issuer are left alone', () => {
  expect(verifyLicense(license({ region: 'EU' }), VENDOR_KEY).ok).toBe(true);
});

test('line ends of mail programs and of base64(1) do no harm', () => {
  const wrapped = `  ${VALID.replace(/.{76}/g, '$&\r\n')}\n`;
  expect(verifyLicense(wrapped, VENDOR_KEY)).toEqual(verifyLicense(VALID, VENDOR_KEY));
});

const sha512 = (input: string): string =>
  `${input}.${createSign('RSA-SHA512').update(input).sign(VENDOR.privateKey, 'base64url')}`;
const header = (alg: unknown) => unsigned(CLAIMS, { alg, typ: 'JWT' });
const [HEADER, PAYLOAD, SIGNATURE] = Buffer.from(VALID, 'base64').toString().split('.') as [string, string, string];

test.each<[string, string, string, RegExp]>([
  ['nothing', '', 'empty', /expected the base64 text/],
  ['blanks', ' \n', 'empty', /expected the base64 text/],
  ['too long', 'A'.repeat(MAX_LICENSE_TEXT + 1), 'too-long', /16385 characters: at most 16384/],
  ['not base64', 'Hello, world!', 'not-base64', /A-Z a-z 0-9/],
  ['base64url', VALID.replaceAll(/[A-M]/g, '-'), 'not-base64', /A-Z a-z 0-9/],
  ['base64 cut short', VALID.slice(0, -1).replace(/=$/, ''), 'not-base64', /was the text cut/],
  ['the JWT without base64', rs256(unsigned()), 'not-base64', /once more in base64/],
  ['something after =', `${base64('ab')}QUJD`, 'trailing-data', /after the "="/],
  ['a line end in the JWT', base64(`${rs256(unsigned())}\n`), 'trailing-data', /after the signature/],
  ['a fourth part', base64(`${rs256(unsigned())}.AAAA`), 'trailing-data', /after the signature/],
  ['two licenses', base64(`${rs256(unsigned())} ${rs256(unsigned())}`), 'trailing-data', /after the signature/],
  ['not a JWT', base64('Hello, world!'), 'not-a-jwt', /header\.payload\.signature/],
  ['one part', base64('AAAA'), 'not-a-jwt', /header\.payload\.signature/],
  ['three empty parts', base64('..'), 'not-a-jwt', /header/],
  ['a header that is no JSON', base64(rs256(unsigned(CLAIMS, 'nonsense'))), 'not-a-jwt', /header of the JWT/],
  ['a header that is a list', base64(rs256(unsigned(CLAIMS, '[]'))), 'not-a-jwt', /header of the JWT/],
  ['algorithm none', base64(`${header('none')}.`), 'unsigned', /algorithm none/],
  ['algorithm None with a signature', base64(rs256(header('nOnE'))), 'unsigned', /algorithm none/],
  ['no signature part', base64(unsigned()), 'unsigned', /signature of the license is missing/],
  ['an empty signature', base64(`${unsigned()}.`), 'unsigned', /signature of the license is missing/],
  ['HS256 with the public key', base64(hs256(header('HS256'), VENDOR_KEY.pem)), 'wrong-algorithm', /HS256/],
  ['RS256 in name, HMAC in fact', base64(hs256(unsigned(), VENDOR_KEY.pem)), 'wrong-signature', /vendor's key/],
  ['RS512', base64(sha512(header('RS512'))), 'wrong-algorithm', /RS512: expected RS256/],
  ['RS256 in name, RS512 in fact', base64(sha512(unsigned())), 'wrong-signature', /vendor's key/],
  ['no algorithm', base64(rs256(header(undefined))), 'wrong-algorithm', /none at all/],
  ['another key', license({}, OTHER.privateKey), 'wrong-signature', /vendor's key/],
  ['another payload', base64(`${unsigned({ ...CLAIMS, maxClusters: -1 })}.${SIGNATURE}`), 'wrong-signature', /altered/],
  ['a signature of zeros', base64(`${HEADER}.${PAYLOAD}.${'A'.repeat(342)}`), 'wrong-signature', /altered/],
  ['a payload that is text', base64(rs256(unsigned('hello'))), 'bad-claims', /payload of the JWT/],
  ['a payload that is null', base64(rs256(unsigned('null'))), 'bad-claims', /payload of the JWT/],
  ['an unknown type', license({ type: 'PLATINUM' }), 'unknown-type', /PROFESSIONAL, BUSINESS, ENTERPRISE.*"PLATINUM"/],
  ['the evaluation as a type', license({ type: 'EVALUATION' }), 'unknown-type', /"EVALUATION"/],
  ['no type', license({ type: undefined }), 'bad-claims', /type: missing/],
  ['no licenseId', license({ licenseId: undefined }), 'bad-claims', /licenseId: missing/],
  ['a blank licenseId', license({ licenseId: '  ' }), 'bad-claims', /licenseId: expected 1 to 64/],
  ['a long licenseId', license({ licenseId: 'x'.repeat(65) }), 'bad-claims', /licenseId: expected 1 to 64/],
  ['no customer', license({ customer: undefined }), 'bad-claims', /customer: missing/],
  ['a customer with a line end', license({ customer: 'A\nB' }), 'bad-claims', /customer: expected/],
  ['no email', license({ email: undefined }), 'bad-claims', /email: missing/],
  ['no address', license({ email: 'nobody' }), 'bad-claims', /email: expected an e-mail address, got "nobody"/],
  ['no expiryDate', license({ expiryDate: undefined }), 'bad-claims', /expiryDate: missing/],
  ['a day that does not exist', license({ expiryDate: '2027-02-29' }), 'bad-claims', /expiryDate: expected a day/],
  ['a day in words', license({ expiryDate: 'never' }), 'bad-claims', /expiryDate: expected a day/],
  ['a day as a number', license({ expiryDate: 20271231 }), 'bad-claims', /expiryDate: expected a day/],
  ['no pod at all', license({ maxPodsPerCluster: 0 }), 'bad-claims', /maxPodsPerCluster: expected -1 .* got 0/],
  ['half a cluster', license({ maxClusters: 1.5 }), 'bad-claims', /maxClusters: expected -1 .* got 1.5/],
  ['minus two clusters', license({ maxClusters: -2 }), 'bad-claims', /maxClusters/],
  ['pods in text', license({ maxPodsPerCluster: '3' }), 'bad-claims', /maxPodsPerCluster/],
  ['pods that are null', license({ maxPodsPerCluster: null }), 'bad-claims', /maxPodsPerCluster: .* got null/],
  ['pods beyond all measure', license({ maxPodsPerCluster: 1e9 }), 'bad-claims', /maxPodsPerCluster/],
  ['nbf in text', license({ nbf: 'soon' }), 'bad-claims', /nbf: expected seconds/],
  ['nbf beyond all time', license({ nbf: 1e15 }), 'bad-claims', /nbf/],
  ['expired', license({ expiryDate: '2027-06-14' }), 'expired', /expired on 2027-06-14; it is 2027-06-15/],
  ['exp before expiryDate', license({ exp: NOW / 1000 }), 'expired', /expired/],
  ['not yet valid', license({ nbf: NOW / 1000 + 1 }), 'not-yet-valid', /valid from 2027-06-15T12:00:01/],
])('refused: %s', (_, text, fault, words) => {
  const result = checkLicense(text, VENDOR_KEY, NOW);
  expect(result).toEqual({ ok: false, refusal: { fault, message: expect.stringMatching(words) } });
});

describe('the time of a license', () => {
  const { license: read } = verifyLicense(license({ nbf: Date.parse('2027-01-01T00:00:00Z') / 1000 }), VENDOR_KEY) as {
    license: Parameters<typeof timeFault>[0];
  };

  test.each([
    ['2026-12-31T23:59:59.999Z', 'not-yet-valid'],
    ['2027-01-01T00:00:00.000Z', undefined],
    ['2027-12-31T23:59:59.999Z', undefined],
    ['2028-01-01T00:00:00.000Z', 'expired'],
  ])('at %s: %s', (at, fault) => {
    expect(timeFault(read, Date.parse(at))?.fault).toBe(fault);
  });
});

test('no byte of a license can be changed', () => {
  const bytes = Buffer.from(VALID, 'latin1');
  fc.assert(
    fc.property(fc.nat(bytes.length - 1), fc.integer({ min: 1, max: 255 }), (at, change) => {
      const altered = Buffer.from(bytes);
      altered[at]! ^= change;
      expect(verifyLicense(altered.toString('latin1'), VENDOR_KEY).ok).toBe(false);
    }),
    { numRuns: 2000 },
  );
});

test('every single byte of the text, and of the JWT in it, is looked at', () => {
  const token = Buffer.from(VALID, 'base64');
  for (const [whole, wrap] of [
    [Buffer.from(VALID, 'latin1'), (altered: Buffer) => altered.toString('latin1')],
    [token, (altered: Buffer) => altered.toString('base64')],
  ] as const) {
    const accepted = [...whole.keys()].filter((at) => {
      const altered = Buffer.from(whole);
      altered[at]! ^= 1;
      return verifyLicense(wrap(altered), VENDOR_KEY).ok;
    });
    expect(accepted).toEqual([]);
  }
});

test('garbage is refused, never thrown at the caller', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string({ maxLength: 500 }), fc.base64String({ maxLength: 500 })), (text) => {
      expect(verifyLicense(text, VENDOR_KEY).ok).toBe(false);
      expect(verifyLicense(base64(text), VENDOR_KEY).ok).toBe(false);
    }),
  );
});

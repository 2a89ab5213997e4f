import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { EVALUATION_PUBLIC_KEY } from '../src/evaluation-key.js';
import { LicenseKeyError, loadPublicKey, parsePublicKey } from '../src/public-key.js';
import { checkLicense } from '../src/verify.js';
import { keyPair, license, VENDOR } from './support/vendor.js';

const NOW = Date.parse('2027-06-15T12:00:00Z');
const pkcs1 = createPublicKey(VENDOR.publicPem).export({ type: 'pkcs1', format: 'pem' }) as string;
const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const elliptic = publicKey.export({ type: 'spki', format: 'pem' }) as string;

describe('parsePublicKey', () => {
  test.each([
    ['SPKI', VENDOR.publicPem],
    ['PKCS#1', pkcs1],
    ['with \\n for line ends', VENDOR.publicPem.replaceAll('\n', '\\n')],
    ['with CRLF', VENDOR.publicPem.replaceAll('\n', '\r\n')],
  ])('%s verifies licenses', (_, pem) => {
    const key = parsePublicKey(pem);
    expect(key.bits).toBe(2048);
    expect(checkLicense(license(), key, NOW).ok).toBe(true);
  });

  test.each([
    ['1024 bits', keyPair(1024).publicPem, /1024 bits: at least 2048/],
    ['a private key', VENDOR.privateKey.export({ type: 'pkcs8', format: 'pem' }) as string, /private key/],
    ['an elliptic curve', elliptic, /Not an RSA public key/],
    ['half a key', VENDOR.publicPem.slice(0, 200), /Not an RSA public key/],
    ['words', 'hello', /Not an RSA public key/],
    ['a book', 'x'.repeat(20_000), /longer than 16384/],
  ])('refuses %s', (_, pem, words) => {
    expect(() => parsePublicKey(pem)).toThrow(LicenseKeyError);
    expect(() => parsePublicKey(pem)).toThrow(words);
  });
});

describe('loadPublicKey', () => {
  let directory: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'pesit-license-'));
  });
  afterAll(() => rm(directory, { recursive: true }));

  test('takes PEM text, the path of a PEM file, and nothing for the key of evaluation builds', async () => {
    const path = join(directory, 'vendor.pem');
    await writeFile(path, VENDOR.publicPem);
    expect(await loadPublicKey(path)).toEqual(await loadPublicKey(VENDOR.publicPem));
    expect((await loadPublicKey('')).pem).toBe(EVALUATION_PUBLIC_KEY);
    expect((await loadPublicKey('')).bits).toBeGreaterThanOrEqual(2048);
  });

  test('says what is wrong, and where', async () => {
    const path = join(directory, 'weak.pem');
    await writeFile(path, keyPair(1024).publicPem);
    await expect(loadPublicKey(path)).rejects.toThrow(`license.public-key (${path}): The public key has 1024 bits`);
    await expect(loadPublicKey(join(directory, 'missing.pem'))).rejects.toThrow(/PEM text or the path.*missing\.pem/);
  });
});

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { execFile } from 'node:child_process';
import { createPrivateKey } from 'node:crypto';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

import { inspectLicense, issueLicense, IssueError } from '../src/issue.js';
import { verifyLicense } from '../src/verify.js';
import { CLAIMS, keyPair, license, VENDOR, VENDOR_KEY } from './support/vendor.js';

const root = fileURLToPath(new URL('../../..', import.meta.url));

describe('issueLicense', () => {
  test('what it signs can be installed', () => {
    expect(verifyLicense(issueLicense(CLAIMS, VENDOR.privateKey), VENDOR_KEY)).toMatchObject({
      ok: true,
      license: CLAIMS,
    });
  });

  test('claims at fault are all named, weak keys refused', () => {
    const bad = { ...CLAIMS, maxClusters: 0, email: 'x' };
    expect(() => issueLicense(bad, VENDOR.privateKey)).toThrow(/email: .*; maxClusters: expected -1/);
    expect(() => issueLicense(bad, VENDOR.privateKey)).toThrow(IssueError);
    expect(() => issueLicense(CLAIMS, keyPair(1024).privateKey)).toThrow(/1024 bits/);
  });

  test('inspectLicense reads what another key signed, and nothing else', () => {
    expect(inspectLicense(license({}, keyPair().privateKey))).toEqual({
      header: { alg: 'RS256', typ: 'JWT' },
      payload: CLAIMS,
    });
    expect(inspectLicense('junk')).toBeUndefined();
  });
});

describe('npm run license', () => {
  let directory: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'pesit-license-'));
  });
  afterAll(() => rm(directory, { recursive: true }));

  const PASSPHRASE = 'correct horse battery';
  const tool = (...args: string[]): Promise<{ code: number; output: string; errors: string }> =>
    new Promise((resolve) => {
      const env = { ...process.env, NODE_OPTIONS: '', PESIT_LICENSE_PASSPHRASE: PASSPHRASE };
      const script = join(root, 'scripts/license.mjs');
      execFile(process.execPath, [script, ...args], { env, cwd: directory }, (error, output, errors) =>
        resolve({ code: error === null ? 0 : Number(error.code), output, errors }),
      );
    });

  test('from a key pair to a license that verifies', async () => {
    const keys = join(directory, 'keys');
    expect(await tool('keygen', '--out', keys, '--bits', '2048')).toMatchObject({ code: 0 });
    const privateFile = join(keys, 'license-private.pem');
    const pem = readFileSync(privateFile, 'utf8');
    expect(pem).toContain('-----BEGIN ENCRYPTED PRIVATE KEY-----');
    expect(statSync(privateFile).mode & 0o777).toBe(0o600);
    expect(() => createPrivateKey({ key: pem, passphrase: 'another one' })).toThrow();
    expect(await tool('keygen', '--out', keys)).toMatchObject({ code: 1, errors: expect.stringContaining('exists') });

    const details = ['--type', 'BUSINESS', '--customer', 'Banque Exemple', '--email', 'it@banque.example'];
    const issue = ['issue', '--key', privateFile, ...details, '--license-id', 'L-7'];
    const file = join(directory, 'license.txt');
    expect(await tool(...issue, '--expires', '2099-12-31', '--out', file)).toMatchObject({ code: 0, output: '' });
    expect(await tool('inspect', file)).toMatchObject({ code: 0, output: expect.stringContaining('"BUSINESS"') });
    const verify = ['verify', '--public-key', join(keys, 'license-public.pem')];
    expect(await tool(...verify, file)).toMatchObject({
      code: 0,
      output: 'Valid: BUSINESS license L-7 for Banque Exemple, to the end of 2099-12-31 (UTC)\n',
    });
    await writeFile(file, license());
    expect(await tool(...verify, file)).toMatchObject({
      code: 1,
      errors: expect.stringContaining('Not valid (wrong-signature)'),
    });
    expect(await tool(...issue, '--expires', 'never')).toMatchObject({
      code: 1,
      errors: expect.stringContaining('expiryDate: expected a day'),
    });
  });

  test('a private key is never written into the repository, by whatever way', async () => {
    const link = join(directory, 'link');
    await symlink(join(root, 'packages'), link);
    for (const out of [join(root, 'keys'), root, join(link, 'license/keys'), relative(directory, join(root, 'a/b'))]) {
      expect(await tool('keygen', '--out', out)).toMatchObject({
        code: 1,
        errors: expect.stringContaining('inside this repository'),
      });
    }
    expect(existsSync(join(root, 'keys'))).toBe(false);
  });

  test.each([
    [[], 'npm run license --'],
    [['keygen'], 'missing: --out'],
    [['issue', '--type', 'BUSINESS'], 'missing: --key, --customer, --email, --expires'],
    [['forge'], 'unknown command forge'],
    [['keygen', '--passphrase', 'secret'], 'Unknown option'],
  ])('%j is explained', async (args, words) => {
    const { code, output, errors } = await tool(...args);
    expect([code, output + errors]).toEqual([1, expect.stringContaining(words)]);
  });
});

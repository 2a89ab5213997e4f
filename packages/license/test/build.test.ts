/** Builds for customers: what is inside counts, whatever is configured. */
import { execFile } from 'node:child_process';
import { createHash, createPublicKey } from 'node:crypto';
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { emptyTables, withDatabase } from '@pesit-node/service/testing';
import type { TestDatabase } from '@pesit-node/service/testing';

import { bakeBuild } from '../src/bake.js';
import { BUILD, EVALUATION_BUILD } from '../src/build.js';
import { ExtensionCapError } from '../src/errors.js';
import { EVALUATION_PUBLIC_KEY } from '../src/evaluation-key.js';
import { LICENSE_MIGRATIONS } from '../src/migrations/index.js';
import { keyWithoutEffect, loadPublicKey } from '../src/public-key.js';
import { evaluationPeriod } from '../src/state.js';
import { startPod, VirtualClock } from './support/pods.js';
import { keyPair, license, VENDOR } from './support/vendor.js';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const DAY = 86_400_000;
const FOREIGN = keyPair();

const der = createPublicKey(VENDOR.publicPem).export({ type: 'spki', format: 'der' });
const FINGERPRINT = `sha256:${createHash('sha256').update(der).digest('hex')}`;

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'pesit-build-'));
});
afterAll(() => rm(directory, { recursive: true }));

const run = (args: readonly string[], cwd = directory): Promise<{ code: number; output: string; errors: string }> =>
  new Promise((resolve) => {
    const env = { ...process.env, NODE_OPTIONS: '' };
    execFile(process.execPath, args, { env, cwd }, (error, output, errors) =>
      resolve({ code: error === null ? 0 : Number(error.code), output, errors }),
    );
  });
const tool = (...args: string[]) => run([join(root, 'scripts/license.mjs'), ...args]);

describe('which key counts', () => {
  test('in an evaluation build, as the repository is: the configured one, else that of evaluation builds', async () => {
    expect(BUILD).toEqual(EVALUATION_BUILD);
    expect(await loadPublicKey('')).toMatchObject({ source: 'EVALUATION' });
    const configured = await loadPublicKey(VENDOR.publicPem);
    expect(configured).toMatchObject({ source: 'CONFIGURATION', fingerprint: FINGERPRINT });
    expect(keyWithoutEffect(VENDOR.publicPem, configured)).toEqual([]);
  });

  test('in a build for customers its own: what is configured is not even read, and said to do nothing', async () => {
    const build = { ...EVALUATION_BUILD, vendorKey: VENDOR.publicPem };
    for (const configured of [FOREIGN.publicPem, '/nowhere/at/all.pem', 'no key']) {
      const key = await loadPublicKey(configured, build);
      expect(key).toMatchObject({ source: 'BUILD', fingerprint: FINGERPRINT });
      expect(keyWithoutEffect(configured, key)).toEqual([
        { key: 'license.public-key', reason: "this build has the vendor's key inside, which alone counts" },
      ]);
    }
    expect(keyWithoutEffect('', await loadPublicKey('', build))).toEqual([]);
  });
});

describe('npm run license -- bake', () => {
  /** A copy of what was built, as a package would have it. */
  const tree = async (): Promise<string> => {
    const copy = await mkdtemp(join(directory, 'tree-'));
    await mkdir(join(copy, 'packages/license'), { recursive: true });
    for (const part of ['dist', 'package.json']) {
      await cp(join(root, 'packages/license', part), join(copy, 'packages/license', part), { recursive: true });
    }
    await symlink(join(root, 'node_modules'), join(copy, 'node_modules'));
    return copy;
  };
  const publicKey = async (pem = VENDOR.publicPem): Promise<string> => {
    const path = join(directory, 'vendor.pem');
    await writeFile(path, pem);
    return path;
  };

  beforeAll(async () => {
    // Builds what is copied.
    await tool('inspect', '/dev/null');
  });

  test('a build with the key inside installs its licenses, and none of a key that is configured', async () => {
    const copy = await tree();
    const baked = await tool(
      ...['bake', '--public-key', await publicKey(), '--tree', copy, '--max-extension-days', '60'],
    );
    expect([baked.code, baked.output]).toEqual([0, expect.stringContaining(FINGERPRINT)]);
    await writeFile(
      join(copy, 'decide.mjs'),
      `import { BUILD, checkLicense, loadPublicKey } from './packages/license/dist/index.js';
       const [configured, ours, foreign] = JSON.parse(process.argv[2]);
       const key = await loadPublicKey(configured);
       const now = Date.parse('2027-06-15T12:00:00Z');
       const faults = [ours, foreign].map((text) => checkLicense(text, key, now)).map(({ ok, refusal }) => ok || refusal.fault);
       console.log(JSON.stringify([key.source, BUILD.maxExtensionDays, ...faults]));`,
    );
    const given = [FOREIGN.publicPem, license(), license({}, FOREIGN.privateKey)];
    const { output, errors } = await run([join(copy, 'decide.mjs'), JSON.stringify(given)], copy);
    expect([errors, JSON.parse(output)]).toEqual(['', ['BUILD', 60, true, 'wrong-signature']]);
  });

  test('says what is wrong, and changes nothing then', async () => {
    const copy = await tree();
    const file = join(copy, 'packages/license/dist/build.js');
    const before = await readFile(file, 'utf8');
    const bake = async (pem: string, ...more: string[]) =>
      (await tool('bake', '--public-key', await publicKey(pem), '--tree', copy, ...more)).errors;
    expect(await bake(EVALUATION_PUBLIC_KEY)).toContain('key of evaluation builds');
    expect(await bake(keyPair(1024).publicPem)).toContain('1024 bits');
    expect(await bake(VENDOR.publicPem, '--max-extension-days', '4000')).toContain('expected 0 to 3650 days, got 4000');
    expect(await bake(VENDOR.publicPem, '--max-extension-days', 'x')).toContain('expected a number of days, got x');
    expect(await readFile(file, 'utf8')).toBe(before);
    const own = await tool('bake', '--public-key', await publicKey(), '--tree', root);
    expect([own.code, own.errors]).toEqual([1, expect.stringContaining('bake a copy')]);
    const none = await tool('bake', '--public-key', await publicKey(), '--tree', directory);
    expect(none.errors).toContain('holds no build');
  });

  test('a build is baked once', async () => {
    const dist = join(await tree(), 'packages/license/dist');
    await bakeBuild({ dist, vendorKey: VENDOR.publicPem });
    await expect(bakeBuild({ dist, vendorKey: FOREIGN.publicPem })).rejects.toThrow("has a vendor's key already");
  });
});

describe('a cap on extensions', () => {
  const clock = { startedAt: 0, counted: 0, highest: 0 };
  const extensions = [40, 40, 40].map((days, index) => ({ days, at: index, counted: 0 }));

  test('counts the days that were granted first', () => {
    const end = (maxExtensionDays?: number): number =>
      evaluationPeriod({ clock, extensions, evaluationDays: 30, maxExtensionDays }, 0).end / DAY;
    expect([end(), end(120), end(100), end(60), end(40), end(0)]).toEqual([150, 150, 130, 90, 70, 30]);
  });

  withDatabase((harness) => {
    let database: TestDatabase;
    beforeAll(async () => {
      database = await harness.open({ migrations: [LICENSE_MIGRATIONS], searchPath: ['public'] });
    });
    beforeAll(() => emptyTables(database, 'pesit_common'));

    test('ends them, in words; rows that were written past it count nothing', async () => {
      const time = new VirtualClock('2027-03-01T08:00:00Z');
      const { keeper, store } = await startPod(database, time, { maxExtensionDays: 60 });
      await keeper.extendEvaluation(30, 'jane');
      await expect(keeper.extendEvaluation(31, 'jane')).rejects.toThrow(
        'This build allows 60 days of extension in all, 30 were added before: expected at most 30 more, got 31',
      );
      await keeper.extendEvaluation(30, 'jane');
      await expect(keeper.extendEvaluation(1, 'jane')).rejects.toThrow(ExtensionCapError);
      expect(keeper.status).toMatchObject({ evaluationDaysRemaining: 90 });
      await store.extend({ days: 365, at: time.now(), counted: time.now() }, 'another pod');
      await keeper.refresh();
      expect(keeper.status).toMatchObject({ evaluationDaysRemaining: 90 });
    });

    test('without one they are cumulative', async () => {
      await emptyTables(database, 'pesit_common');
      const { keeper } = await startPod(database, new VirtualClock('2027-03-01T08:00:00Z'));
      for (let call = 0; call < 3; call += 1) await keeper.extendEvaluation(365, 'jane');
      expect(keeper.status).toMatchObject({ evaluationDaysRemaining: 30 + 3 * 365 });
    });
  });
});

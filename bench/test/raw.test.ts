import { afterAll, expect, test } from '@jest/globals';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type * as raw from '../src/raw.js';
import { sha256, writeRandomFile } from '../src/files.js';
import { issuePapers } from '../src/papers.js';

// The peers are processes: they run from the build, which `npm test` makes first.
const built = '../dist/raw.js';
const { rawCopy, writeAndFlush } = (await import(built)) as typeof raw;

const directory = await mkdtemp(join(tmpdir(), 'pesit-bench-test-'));
afterAll(() => rm(directory, { recursive: true, force: true }));

test.each([1, 4 << 20, (9 << 20) + 4321])('the raw copy of %d bytes arrives whole', async (size) => {
  const source = join(directory, `source-${size}`);
  const target = join(directory, `target-${size}`);
  await writeRandomFile(source, size);
  expect((await stat(source)).size).toBe(size);
  const measurement = await rawCopy(source, target);
  expect(measurement.bytes).toBe(size);
  expect(measurement.seconds).toBeGreaterThan(0);
  expect(await sha256(target)).toBe(await sha256(source));
});

test('the raw copy over TLS that computes hashes arrives whole', async () => {
  const [source, target] = [join(directory, 'source-tls'), join(directory, 'target-tls')];
  await writeRandomFile(source, 4321);
  await rawCopy(source, target, 'hashed', await issuePapers());
  expect(await sha256(target)).toBe(await sha256(source));
});

test('a copy that cannot be made fails with the reason, and does not hang', async () => {
  const source = join(directory, 'source');
  await writeRandomFile(source, 1000);
  await expect(rawCopy(source, join(directory, 'no such folder', 'target'))).rejects.toThrow(
    /ended with exit code 1\n[^]*ENOENT/,
  );
});

test('writing alone writes the whole size', async () => {
  const target = join(directory, 'written');
  await writeAndFlush(target, (3 << 20) + 1);
  expect((await stat(target)).size).toBe((3 << 20) + 1);
});

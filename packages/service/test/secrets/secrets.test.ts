import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { openSecretBox, SecretBox, SecretError } from '@pesit-node/service';

describe('secret box', () => {
  const [key, older] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];

  test('opens what it sealed, each time sealed anew', () => {
    const box = new SecretBox([key]);
    const sealed = box.seal('pä:ss', 'remote-server/7');
    expect(sealed).toMatch(/^v1\.[0-9a-f]{8}\.[\w-]+$/);
    expect(box.open(sealed, 'remote-server/7')).toBe('pä:ss');
    expect(box.seal('pä:ss', 'remote-server/7')).not.toBe(sealed);
    expect(box.open(box.seal('', 'x'), 'x')).toBe('');
  });

  test('opens nothing that was changed, moved, or sealed with another key', () => {
    const box = new SecretBox([key]);
    const sealed = box.seal('secret', 'a');
    const last = sealed.endsWith('A') ? 'B' : 'A';
    expect(() => box.open(sealed, 'b')).toThrow(SecretError);
    expect(() => box.open(`${sealed.slice(0, -3)}${last}${sealed.slice(-2)}`, 'a')).toThrow(SecretError);
    expect(() => box.open(sealed.slice(0, 20), 'a')).toThrow(SecretError);
    expect(() => box.open('secret', 'a')).toThrow('unknown form');
    expect(() => new SecretBox([older]).open(sealed, 'a')).toThrow(`needs the key ${box.keyId}`);
  });

  test('a key is rotated: the new one seals, the old one still opens', () => {
    const sealed = new SecretBox([older]).seal('secret', 'a');
    const rotated = new SecretBox([key, older]);
    expect(rotated.open(sealed, 'a')).toBe('secret');
    expect([rotated.isStale(sealed), rotated.isStale(rotated.seal('secret', 'a'))]).toEqual([true, false]);
  });
});

describe('secrets.key', () => {
  let directory: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'pesit-key-'));
  });
  afterAll(() => rm(directory, { recursive: true, force: true }));

  const open = (key: string, url = 'postgresql://h/d', data = directory) =>
    openSecretBox({ 'secrets.key': key, 'database.url': url, 'data.directory': data });

  test('as text, as a file of text, as a file of bytes: the same key', async () => {
    const bytes = randomBytes(32);
    await writeFile(join(directory, 'text'), `${bytes.toString('base64')}\n`);
    await writeFile(join(directory, 'bytes'), bytes);
    const boxes = await Promise.all([
      open(bytes.toString('base64')),
      open(join(directory, 'text')),
      open(join(directory, 'bytes')),
    ]);
    expect(new Set(boxes.map(({ keyId }) => keyId)).size).toBe(1);
    const two = await open(`${randomBytes(32).toString('base64')},${bytes.toString('base64')}`);
    expect(two.open((await open(bytes.toString('base64'))).seal('s', 'c'), 'c')).toBe('s');
  });

  test.each(['AAAA', '/does/not/exist', 'not a key'])('%j is refused, and not repeated', async (key) => {
    const error: unknown = await open(key).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      name: 'ConfigError',
      message: expect.stringContaining('secrets.key: expected 32 bytes'),
    });
    expect((error as Error).message).not.toContain(key);
  });

  test('a file that holds something else is refused', async () => {
    await writeFile(join(directory, 'short'), 'c2hvcnQ=');
    await expect(open(join(directory, 'short'))).rejects.toThrow('the file must hold 32 bytes');
  });

  test('required with PostgreSQL', async () => {
    await expect(open('')).rejects.toThrow('secrets.key is required with PostgreSQL');
  });

  test('made at the first start when embedded, for its owner alone, the same for both apps and later', async () => {
    const data = join(directory, 'data');
    const boxes = await Promise.all([open('', '', data), open('', '', data), open('', '', data)]);
    boxes.push(await open('', '', data));
    expect(new Set(boxes.map(({ keyId }) => keyId)).size).toBe(1);
    expect((await stat(join(data, 'secrets.key'))).mode & 0o777).toBe(0o600);
    expect(await readFile(join(data, 'secrets.key'), 'utf8')).toMatch(/^[A-Za-z0-9+/]{43}=\n$/);
  });
});

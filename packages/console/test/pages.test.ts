/** The server's half: which requests are pages of the console, and how its files are sent. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import express from 'express';
import type { Express } from 'express';
import request from 'supertest';

import { consolePages, PAGE_PATHS } from '@pesit-node/console';

const directory = mkdtempSync(join(tmpdir(), 'pesit-console-'));
const SCRIPT = 'export const one = 1;\n'.repeat(50);

const appOver = (site: string): Express => {
  const app = express();
  app.use(consolePages(site));
  app.use((_req, res) => res.status(404).send('not a page'));
  return app;
};

beforeAll(() => {
  mkdirSync(join(directory, 'assets'));
  writeFileSync(join(directory, 'index.html'), '<!doctype html><title>console</title>');
  writeFileSync(join(directory, 'assets/index-a1b2C3_d.js'), SCRIPT);
  writeFileSync(join(directory, 'assets/index-a1b2C3_d.js.br'), brotliCompressSync(SCRIPT));
  writeFileSync(join(directory, 'assets/index-a1b2C3_d.js.gz'), gzipSync(SCRIPT));
  writeFileSync(join(directory, '.built-from'), 'secret of the build');
  writeFileSync(join(directory, 'assets/notes.txt'), 'no page loads it');
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

describe('what is a page', () => {
  test.each([...PAGE_PATHS, '/transfers/42', '/partners/A%20B'])('%s', async (path) => {
    const { status, text, headers } = await request(appOver(directory)).get(path);
    expect([status, text]).toEqual([200, '<!doctype html><title>console</title>']);
    expect(headers['cache-control']).toBe('no-cache');
  });

  test.each([
    '/api/v1/transfers',
    '/metrics',
    '/docs',
    '/openapi.json',
    '/transfersx',
    '/actuator/health',
    '/.built-from',
  ])('%s is none', async (path) => expect((await request(appOver(directory)).get(path)).text).toBe('not a page'));

  test.each([
    '/assets/../index.html',
    '/assets/%2e%2e/.built-from',
    '/assets/notes.txt',
    '/assets/none.js',
    '/assets/',
  ])('%s is none of its files', async (path) =>
    expect((await request(appOver(directory)).get(path)).text).toBe('not a page'),
  );

  test('only GET and HEAD', async () => {
    const app = appOver(directory);
    expect((await request(app).post('/')).text).toBe('not a page');
    const head = await request(app).head('/');
    expect([head.status, head.text, head.headers['content-length']]).toEqual([200, undefined, '37']);
  });
});

describe('how files are sent', () => {
  const path = '/assets/index-a1b2C3_d.js';

  test.each([
    ['br, gzip', 'br'],
    ['gzip', 'gzip'],
    ['identity', undefined],
    ['br;q=0, gzip', 'gzip'],
    ['', undefined],
  ])('Accept-Encoding %j: %s', async (accepted, encoding) => {
    const { headers, status } = await request(appOver(directory))
      .get(path)
      .set('Accept-Encoding', accepted)
      .buffer(false);
    expect([status, headers['content-encoding'], headers['vary']]).toEqual([200, encoding, 'Accept-Encoding']);
    expect(headers['cache-control']).toBe('public, max-age=31536000, immutable');
    expect(headers['content-type']).toBe('text/javascript; charset=utf-8');
  });

  test('under a policy without exceptions', async () => {
    const { headers } = await request(appOver(directory)).get('/');
    expect(headers['content-security-policy']).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
  });

  test('a console that was not built says so, and is there as soon as it is', async () => {
    const late = join(directory, 'late');
    const app = appOver(late);
    const before = await request(app).get('/');
    expect([before.status, before.text]).toEqual([503, expect.stringContaining('npm run build')]);
    mkdirSync(late);
    writeFileSync(join(late, 'index.html'), 'built');
    expect((await request(app).get('/')).text).toBe('built');
  });

  test('files that cannot be read at one time are read at the next', async () => {
    const broken = join(directory, 'broken');
    const inTheWay = join(broken, 'index.html.br');
    mkdirSync(inTheWay, { recursive: true });
    writeFileSync(join(broken, 'index.html'), 'whole');
    const app = appOver(broken);
    expect((await request(app).get('/')).status).toBe(500);
    rmSync(inTheWay, { recursive: true });
    expect((await request(app).get('/')).text).toBe('whole');
  });
});

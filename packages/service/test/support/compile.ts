import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { transformFileSync } from '@swc/core';

const SOURCES = fileURLToPath(new URL('../../src', import.meta.url));
const DIST = fileURLToPath(new URL('../../dist', import.meta.url));

/** The sources as plain JavaScript in a directory of their own: what runs in another thread or process is never an old build. */
export const compileSources = (): { readonly directory: string; remove(): void } => {
  mkdirSync(DIST, { recursive: true });
  const directory = mkdtempSync(join(DIST, '.test-'));
  for (const name of readdirSync(SOURCES, { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.ts')) continue;
    const { code } = transformFileSync(join(SOURCES, name), {
      jsc: { target: 'es2022', parser: { syntax: 'typescript' } },
      module: { type: 'es6' },
    });
    const target = join(directory, name.replace(/\.ts$/, '.js'));
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, code);
  }
  return { directory, remove: () => rmSync(directory, { recursive: true, force: true }) };
};

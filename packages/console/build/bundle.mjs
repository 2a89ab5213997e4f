/** `bundle.mjs DIRECTORY`: bundles the pages of the console there; `buildConsole` runs it. */
import { fileURLToPath } from 'node:url';

import { build } from 'vite';

const here = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));

/** Files with hashes in their names, no inline script or style: the policy of the pages has no exception. */
await build({
  configFile: false,
  logLevel: 'warn',
  root: here('web'),
  base: '/',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: process.argv[2],
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
});

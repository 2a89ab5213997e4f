/** Each row of the interface specification is where docs/interface.md says. */
import { spawnSync } from 'node:child_process';

import { expect, test } from '@jest/globals';

const library = new URL('../lib/interface.mjs', import.meta.url).href;

/** Read by a process of its own: the apps as they are built, as `npm run docs` has them. */
const program = `
import { interfaceRows, isFound, readProduct } from ${JSON.stringify(library)};
const product = await readProduct();
const rows = interfaceRows().map(({ part, name, found }) => [part + ': ' + name, found.kind !== 'absent', isFound(product, found)]);
console.log(JSON.stringify(rows));`;

const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
  encoding: 'utf8',
  maxBuffer: 1024 * 1024,
});
if (stdout === '') throw new Error(stderr);
const rows = JSON.parse(stdout) as (readonly [name: string, isSaidToBeThere: boolean, isThere: boolean])[];

test.each(rows)('%s', (_, isSaidToBeThere, isThere) => {
  expect(isThere).toBe(isSaidToBeThere);
});

test('every row has a name of its own', () => {
  const names = rows.map(([name]) => name);
  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
});

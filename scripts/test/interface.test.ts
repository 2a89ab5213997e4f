/** Each row of the interface specification is where docs/interface.md says, and what texts tell the reader to ask for exists. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

import { expect, test } from '@jest/globals';

const library = new URL('../lib/interface.mjs', import.meta.url).href;

/** Read by a process of its own: the apps as they are built, as `npm run docs` has them. */
const program = `
import { interfaceRows, isFound, readProduct } from ${JSON.stringify(library)};
const product = await readProduct();
const rows = interfaceRows().map(({ part, name, found }) => [part + ': ' + name, found.kind !== 'absent', isFound(product, found)]);
const operations = Object.values(product.documents).flatMap(({ paths }) =>
  Object.entries(paths).flatMap(([path, verbs]) => Object.keys(verbs).map((verb) => verb.toUpperCase() + ' ' + path)));
console.log(JSON.stringify({ rows, operations }));`;

const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
  encoding: 'utf8',
  maxBuffer: 1024 * 1024,
});
if (stdout === '') throw new Error(stderr);
const { rows, operations } = JSON.parse(stdout) as {
  readonly rows: (readonly [name: string, isSaidToBeThere: boolean, isThere: boolean])[];
  /** `GET /api/v1/servers/{serverId}`, of either app. */
  readonly operations: readonly string[];
};

test.each(rows)('%s', (_, isSaidToBeThere, isThere) => {
  expect(isThere).toBe(isSaidToBeThere);
});

test('every row has a name of its own', () => {
  const names = rows.map(([name]) => name);
  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
});

/** `GET /api/v1/transfers/{id}` with what stands for its parts: `{id}`, `:id`, an identifier, or in a source an expression. */
const REQUEST = /\b(?:GET|POST|PUT|DELETE) \/(?:api|actuator|docs|openapi|metrics)\b[\w{}:$/.-]*/g;
const NAMED = /^(?:\{\w+\}|:\w+)$/;

const exists = (request: string): boolean =>
  operations.some((operation) => {
    const [parts, asked] = [operation.split(/[ /]+/), request.split(/[ /]+/)];
    return (
      parts.length === asked.length &&
      parts.every(
        (part, index) =>
          part === asked[index] || asked[index]?.includes('${') === true || (NAMED.test(part) && asked[index] !== ''),
      )
    );
  });

test('every request that a document or a message names is one of either app', () => {
  // docs/interface.md also names what is not there.
  const { stdout: listed } = spawnSync(
    'git',
    ['ls-files', '*.md', ':!docs/interface.md', 'apps/*/src/*.ts', 'packages/*/src/*.ts'],
    {
      encoding: 'utf8',
      cwd: new URL('../..', import.meta.url),
    },
  );
  const unknown = listed
    .trim()
    .split('\n')
    .flatMap((path) => {
      const text = readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
      // The end of a sentence is no part of it.
      const requests = (text.match(REQUEST) ?? []).map((request) => request.replace(/[.:/]+$/, ''));
      return requests.filter((request) => !exists(request)).map((request) => `${path}: ${request}`);
    });
  expect(unknown).toEqual([]);
});

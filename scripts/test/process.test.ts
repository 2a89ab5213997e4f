/** The end of a command, and what is undone then. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

import { expect, test } from '@jest/globals';

const library = fileURLToPath(new URL('../lib/process.mjs', import.meta.url));

/** Two things to undo, each of which takes a while; `body` is the command, which hears of the end of the second one. */
const command = (body: string): string => `
  import { setTimeout as wait } from 'node:timers/promises';
  import { atEnd, Failure, main } from ${JSON.stringify(library)};
  let gone;
  const ended = new Promise((resolve) => (gone = resolve));
  atEnd(async () => { await wait(100); console.log('first undone'); });
  atEnd(async () => { await wait(20); console.log('second undone'); gone(); });
  await main(async () => {
    const alive = setInterval(() => {}, 1000);
    console.log('ready');
    try { ${body} } finally { clearInterval(alive); }
  });
`;

const run = (body: string) => {
  const child = spawn(process.execPath, ['--input-type=module', '-e', command(body)], { stdio: 'pipe' });
  child.stdin.end();
  const lines: string[] = [];
  const errors: string[] = [];
  const reader = createInterface({ input: child.stdout }).on('line', (line) => lines.push(line));
  createInterface({ input: child.stderr }).on('line', (line) => errors.push(line));
  const ready = once(reader, 'line');
  const ended = once(child, 'close') as Promise<[number | null, string | null]>;
  return { child, lines, errors, ready, ended };
};

test.each([
  ['SIGTERM', 143],
  ['SIGINT', 130],
] as const)('%s: all is undone before the end, and what ends meanwhile is no failure', async (signal, code) => {
  const { child, lines, errors, ready, ended } = run("await ended; throw new Failure('one of them ended');");
  await ready;
  child.kill(signal);
  expect(await ended).toEqual([code, null]);
  expect(lines).toEqual(['ready', 'second undone', 'first undone']);
  expect(errors).toEqual([]);
});

test('a failure is said, all is undone, and the code is 1', async () => {
  const { lines, errors, ended } = run("throw new Failure('it did not work');");
  expect(await ended).toEqual([1, null]);
  expect(lines).toEqual(['ready', 'second undone', 'first undone']);
  expect(errors).toEqual(['it did not work']);
});

import { expect, test } from '@jest/globals';
import { ConfigError, DataDirectoryError, ListenError, runMain } from '@pesit-node/service';

class OwnError extends Error {}

const run = async (start: () => Promise<void>) => {
  const said: (string | number)[] = [];
  const process = {
    stderr: { write: (text: string) => said.push(text) },
    exit: (code: number) => void said.push(code),
  };
  await runMain(process, [OwnError], start);
  return said;
};

test.each([
  ['a port in use', new ListenError('Port 1 is in use'), 'Port 1 is in use\n'],
  ['the configuration', new ConfigError(['x']), 'The configuration is not usable:\n  - x\n'],
  ['a directory that cannot be used', new DataDirectoryError('No rights'), 'No rights\n'],
  ['an error of the app', new OwnError('own'), 'own\n'],
])('%s is said in a sentence', async (_what, error, text) => {
  expect(await run(() => Promise.reject(error))).toEqual([text, 1]);
});

test('anything else keeps its stack', async () => {
  const [text, code] = await run(() => Promise.reject(new TypeError('a bug')));
  expect(text).toMatch(/^TypeError: a bug\n {4}at /);
  expect(code).toBe(1);
});

test('a start that succeeds ends nothing', async () => {
  expect(await run(() => Promise.resolve())).toEqual([]);
});

import { expect, test } from '@jest/globals';

import { deferred, untilDone } from '../src/index.js';

test('work until it is done: shared while it runs, begun again after a failure, never again after it was done', async () => {
  const runs: ReturnType<typeof deferred<string>>[] = [];
  const ask = untilDone(() => {
    const run = deferred<string>();
    runs.push(run);
    return run.promise;
  });
  const [first, second] = [ask(), ask()];
  expect(runs).toHaveLength(1);
  runs[0]?.reject(new Error('ESTALE'));
  await expect(first).rejects.toThrow('ESTALE');
  await expect(second).rejects.toThrow('ESTALE');
  const third = ask();
  expect(runs).toHaveLength(2);
  runs[1]?.resolve('well');
  expect(await third).toBe('well');
  expect(await ask()).toBe('well');
  expect(runs).toHaveLength(2);
});

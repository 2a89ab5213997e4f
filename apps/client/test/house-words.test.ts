import { afterAll, test } from '@jest/globals';
import { withDatabase } from '@pesit-node/service/testing';

import { expectHouseWords } from '../../../packages/service/test/support/house-words.js';
import { AUTHORIZATION, expectNoSecrets } from './support/service.js';
import { world } from './support/world.js';

afterAll(expectNoSecrets);

withDatabase((harness) => {
  const the = world(harness);

  test('what a request gets wrong is said in words of ours, for every field of every operation', async () => {
    const { app } = await the.service();
    await expectHouseWords(app, AUTHORIZATION);
  });
});

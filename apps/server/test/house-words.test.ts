import { test } from '@jest/globals';
import { withDatabase } from '@pesit-node/service/testing';

import { expectHouseWords } from '../../../packages/service/test/support/house-words.js';
import { ADMIN, useRest } from './support/rest.js';

withDatabase((harness) => {
  const rest = useRest(harness);

  test('what a request gets wrong is said in words of ours, for every field of every operation', async () => {
    const login = Buffer.from(`${ADMIN.username}:${ADMIN.password}`).toString('base64');
    await expectHouseWords(rest.app, `Basic ${login}`);
  });
});

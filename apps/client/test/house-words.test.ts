import { afterAll, test } from '@jest/globals';
import { withDatabase } from '@pesit-node/service/testing';

import { expectHouseWords } from '../../../packages/service/test/support/house-words.js';
import { AUTHORIZATION, expectNoSecrets } from './support/service.js';
import { useWorld } from './support/world.js';

afterAll(expectNoSecrets);

withDatabase((harness) => {
  const world = useWorld(harness);

  test('what a request gets wrong is said in words of ours, for every field of every operation', async () => {
    const { app } = await world.service();
    await expectHouseWords(app, AUTHORIZATION, [
      'GET /api/v1/servers/{id}',
      'DELETE /api/v1/servers/{id}',
      'POST /api/v1/servers/{id}/test',
      'GET /api/v1/servers/{id}/trace',
      'GET /api/v1/transfers/{id}',
      'POST /api/v1/transfers/{id}/cancel',
      'GET /api/v1/certificates/truststores/{name}',
    ]);
  });
});

import { test } from '@jest/globals';
import { withDatabase } from '@pesit-node/service/testing';

import { expectHouseWords } from '../../../packages/service/test/support/house-words.js';
import { ADMIN, useRest } from './support/rest.js';

withDatabase((harness) => {
  const rest = useRest(harness);

  test('what a request gets wrong is said in words of ours, for every field of every operation', async () => {
    const login = Buffer.from(`${ADMIN.username}:${ADMIN.password}`).toString('base64');
    await expectHouseWords(rest.app, `Basic ${login}`, [
      'GET /api/v1/servers/{serverId}',
      'POST /api/v1/servers/{serverId}/start',
      'GET /api/v1/config/partners/{partnerId}',
      'GET /api/v1/config/partners/{partnerId}/trace',
      'DELETE /api/v1/config/files/{fileId}',
      'GET /api/v1/transfers/{id}',
      'GET /api/v1/certificates/keystores/{name}',
      'GET /api/v1/certificates/issued/{serial}',
    ]);
  });
});

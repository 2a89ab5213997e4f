import { test } from '@jest/globals';
import { withDatabase } from '@pesit-node/service/testing';

import { expectCrossSiteRefused } from '../../../packages/service/test/support/cross-site.js';
import { ADMIN, useRest } from './support/rest.js';

withDatabase((harness) => {
  const rest = useRest(harness);

  test('a page of another origin changes nothing with the login that the browser remembers', async () => {
    const login = Buffer.from(`${ADMIN.username}:${ADMIN.password}`).toString('base64');
    await expectCrossSiteRefused(rest.app, `Basic ${login}`);
  });
});

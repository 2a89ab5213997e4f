import { afterAll, test } from '@jest/globals';
import { withDatabase } from '@pesit-node/service/testing';

import { expectCrossSiteRefused } from '../../../packages/service/test/support/cross-site.js';
import { AUTHORIZATION, expectNoSecrets } from './support/service.js';
import { world } from './support/world.js';

afterAll(expectNoSecrets);

withDatabase((harness) => {
  const the = world(harness);

  test('a page of another origin changes nothing with the login that the browser remembers', async () => {
    const { app } = await the.service();
    await expectCrossSiteRefused(app, AUTHORIZATION);
  });
});

import { afterAll, test } from '@jest/globals';
import { withDatabase } from '@pesit-node/service/testing';

import { expectCrossSiteRefused } from '../../../packages/service/test/support/cross-site.js';
import { AUTHORIZATION, expectNoSecrets } from './support/service.js';
import { useWorld } from './support/world.js';

afterAll(expectNoSecrets);

withDatabase((harness) => {
  const world = useWorld(harness);

  test('a page of another origin changes nothing with the login that the browser remembers', async () => {
    const { app } = await world.service();
    await expectCrossSiteRefused(app, AUTHORIZATION);
  });
});

/** The server app as a process: everything that differs from other services, and the only reader of the environment. */
import { LICENSE_KEY } from '@pesit-node/license';
import { runService } from '@pesit-node/service';

import { REST_HTTPS } from './certificates/rest-https.js';
import { DECLARED_LISTS } from './declared.js';
import { MIGRATIONS } from './migrations/index.js';
import { createNode } from './node.js';

await runService(process, {
  app: 'server',
  name: 'pesit-server',
  manifest: new URL('../package.json', import.meta.url),
  schema: MIGRATIONS.schema,
  env: process.env,
  lists: DECLARED_LISTS,
  first: LICENSE_KEY,
  build: (ground, licenseKey) => {
    const { app, metrics, reloaded, certificates, databaseStep, spansStep, exchangeStep } = createNode({
      ...ground,
      licenseKey,
    });
    return {
      app,
      metrics,
      reloaded,
      keystores: certificates,
      beforeHttp: [databaseStep, spansStep],
      afterHttp: [exchangeStep],
    };
  },
  https: REST_HTTPS,
});

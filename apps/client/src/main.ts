/** The client app as a process: everything that differs from other services, and the only reader of the environment. */
import { LICENSE_KEY } from '@pesit-node/license';
import { runService } from '@pesit-node/service';

import { REST_HTTPS } from './certificates/rest-https.js';
import { DECLARED_LISTS } from './declared.js';
import { CLIENT_MIGRATIONS } from './migrations/index.js';
import { createNode } from './node.js';

/** How long an HTTP connection may be silent: longer than the longest `?wait`. */
const HTTP_SILENCE_MS = 310_000;

await runService(process, {
  app: 'client',
  name: 'pesit-client',
  manifest: new URL('../package.json', import.meta.url),
  schema: CLIENT_MIGRATIONS.schema,
  env: process.env,
  lists: DECLARED_LISTS,
  first: LICENSE_KEY,
  build: (ground, licenseKey) => {
    const { app, metrics, reloaded, certificates, steps } = createNode({ ...ground, licenseKey });
    return {
      app,
      metrics,
      reloaded,
      keystores: certificates,
      beforeHttp: [steps.database, steps.spans, steps.files],
      afterHttp: [steps.exchange],
    };
  },
  https: REST_HTTPS,
  http: (server) => {
    // An upload takes as long as it takes; what is silent is cut.
    server.requestTimeout = 0;
    server.setTimeout(HTTP_SILENCE_MS);
  },
});

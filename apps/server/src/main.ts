/** The server app as a process: what differs from other services, and the only reader of the environment. */
import { LICENSE_KEY } from '@pesit-node/license';
import { runService } from '@pesit-node/service';

import { MIGRATIONS } from './migrations/index.js';
import { createNode } from './node.js';

await runService(process, {
  app: 'server',
  name: 'pesit-server',
  manifest: new URL('../package.json', import.meta.url),
  schema: MIGRATIONS.schema,
  env: process.env,
  first: LICENSE_KEY,
  build: (ground, licenseKey) => {
    const { config } = ground;
    const { app, metrics, license, databaseStep, exchangeStep } = createNode({ ...ground, licenseKey });
    return {
      ...{ app, metrics, beforeHttp: [databaseStep], afterHttp: [exchangeStep] },
      reloaded: () => license.useSources({ file: config['license.file'], content: config['license.content'] }),
    };
  },
});

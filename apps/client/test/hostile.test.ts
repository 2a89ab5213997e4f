/** Every operation against requests that it must refuse, or survive: made from the document of the interface. */
import { randomUUID } from 'node:crypto';

import { afterAll, expect, test } from '@jest/globals';
import { freePort, selfSigned, withDatabase } from '@pesit-node/service/testing';
import { driveHostile } from '@pesit-node/service/testing/hostile';

import { AUTHORIZATION, empty, expectNoSecrets } from './support/service.js';
import { useWorld } from './support/world.js';

afterAll(expectNoSecrets);

const MAX_BODY = 1024 * 1024;
const IDENTITY = selfSigned('hostile');
const STORES = '/api/v1/certificates';
const FILE = { server: 'bank', virtualFile: 'INVOICES' };
/** Written behind an answer: the log of who was refused, and what the last contact with a remote server was. */
const BESIDES = {
  audit_entries: 'all',
  audit_chain: 'all',
  // The leader gives up what a deleted hook has left.
  hook_deliveries: 'all',
  remote_servers: [
    ...['status', 'status_reason', 'last_contact', 'seen', 'single_article', 'negotiated'],
    ...['circuit_failures', 'circuit_tries', 'circuit_reason', 'circuit_opened_time', 'circuit_until'],
    'circuit_probe_until',
  ],
} as const;

withDatabase((harness) => {
  const world = useWorld(harness);

  test('hostile requests are refused in words, change nothing, and are no fault of the service', async () => {
    // Nobody listens there.
    const port = await freePort();
    const service = await world.service({
      config: { 'http.max-body': MAX_BODY, 'transfer.executor.max-pool-size': 1 },
    });
    const bank = { name: 'bank', host: '127.0.0.1', port, serverId: 'BANKSRV', clientId: 'NODE1' };
    const keystore = { name: 'k2', ...IDENTITY };
    const hook = { hookId: 'run', enabled: false, target: 'exec:start-batch' };
    const truststore = { name: 't2', certificates: IDENTITY.certificate };
    let server = '1';
    let transfer: string = randomUUID();
    const outcome = await driveHostile({
      app: service.app,
      authorization: AUTHORIZATION,
      maxBody: MAX_BODY,
      database: world.database(),
      schema: 'pesit_client',
      besides: BESIDES,
      params: (path) => ({
        ...{ id: path.includes('/servers/') ? server : transfer, part: 'swagger-ui.css', session: randomUUID() },
        name: path.includes('/truststores/') ? 't' : 'k',
        ...(path.includes('/hook-deliveries/') ? { id: randomUUID() } : {}),
        hookId: 'run',
      }),
      bodies: {
        'POST /api/v1/license': { license: 'ZXlKaGJHY2lPaUpTVXpJMU5pSjk=' },
        'POST /api/v1/license/extend-evaluation': { days: 30 },
        'POST /api/v1/hooks': { ...hook, hookId: 'other' },
        'PUT /api/v1/hooks/{hookId}': { description: 'Starts the batch' },
        'POST /api/v1/servers': { ...bank, name: 'other' },
        'PUT /api/v1/servers/{id}': { description: 'A bank' },
        'PUT /api/v1/servers/{id}/trace': { minutes: 5 },
        'POST /api/v1/transfers/send': { ...FILE, remoteFilename: 'a.csv', fileContent: 'aGVsbG8=' },
        'POST /api/v1/transfers/receive': FILE,
        'POST /api/v1/transfers/message': { ...FILE, message: 'hello' },
        [`POST ${STORES}/keystores`]: keystore,
        [`PUT ${STORES}/keystores/{name}`]: IDENTITY,
        [`POST ${STORES}/truststores`]: truststore,
        [`PUT ${STORES}/truststores/{name}`]: { certificates: IDENTITY.certificate },
      },
      reset: async () => {
        await empty(world.database());
        server = String((await service.api.post('/servers', bank)).body.id);
        // It has failed when the answer comes: nothing changes behind it.
        const sent = await service.api.post('/transfers/send?wait=90', {
          ...FILE,
          remoteFilename: 'a',
          fileContent: 'aGk=',
        });
        transfer = sent.body.id as string;
        await service.api.post('/certificates/keystores', { ...keystore, name: 'k' });
        await service.api.post('/hooks', hook);
        await service.api.post('/certificates/truststores', { ...truststore, name: 't' });
      },
    });
    expect([`seed ${outcome.seed}`, ...outcome.wrong]).toEqual([`seed ${outcome.seed}`]);
    expect(outcome.refused).toBeGreaterThan(outcome.taken);
  });
});

/** Every operation against requests that it must refuse, or survive: made from the document of the interface. */
import { randomUUID } from 'node:crypto';

import { expect, test } from '@jest/globals';
import { emptyTables, freePort, selfSigned, withDatabase } from '@pesit-node/service/testing';
import { driveHostile } from '@pesit-node/service/testing/hostile';

import { ADMIN, useRest } from './support/rest.js';

const MAX_BODY = 1024 * 1024;
const IDENTITY = selfSigned('hostile');
const STORES = '/api/v1/certificates';

withDatabase((harness) => {
  const rest = useRest(harness, { 'http.max-body': MAX_BODY });

  test('hostile requests are refused in words, change nothing, and are no fault of the service', async () => {
    const port = await freePort();
    const listener = { serverId: 'NODE2', port, autoStart: false };
    const partner = { partnerId: 'ACME2', password: 'Zq!7xUp0', allowedFiles: ['A*'] };
    const file = { fileId: 'ORDERS', direction: 'BOTH', receiveDirectory: 'in' };
    const trace = { minutes: 5 };
    const keystore = { name: 'k2', ...IDENTITY };
    const hook = { hookId: 'run', enabled: false, target: 'exec:start-batch' };
    const truststore = { name: 't2', certificates: IDENTITY.certificate };
    const PARAMS = { serverId: 'NODE1', partnerId: 'ACME', fileId: 'INVOICES', name: 'k', clusterId: 'pesit' };
    const outcome = await driveHostile({
      app: rest.app,
      authorization: `Basic ${Buffer.from(`${ADMIN.username}:${ADMIN.password}`).toString('base64')}`,
      maxBody: MAX_BODY,
      database: rest.database,
      schema: 'pesit_server',
      // Who was refused is written there, behind the answer.
      besides: { audit_entries: 'all', audit_chain: 'all' },
      params: (path) => ({
        ...{
          ...PARAMS,
          id: '1',
          part: 'swagger-ui.css',
          b64: 'AA%3D',
          serial: '01',
          session: randomUUID(),
          sessionId: 's1',
        },
        ...(path.includes('/truststores/') ? { name: 't' } : {}),
        ...(path.includes('/hook-deliveries/') ? { id: randomUUID() } : {}),
        hookId: 'run',
      }),
      bodies: {
        'POST /api/v1/license': { license: 'ZXlKaGJHY2lPaUpTVXpJMU5pSjk=' },
        'POST /api/v1/license/extend-evaluation': { days: 30 },
        'POST /api/v1/hooks': { ...hook, hookId: 'other' },
        'PUT /api/v1/hooks/{hookId}': { description: 'Starts the batch' },
        'POST /api/v1/servers': listener,
        'POST /api/servers': listener,
        'PUT /api/v1/servers/{serverId}': { maxConnections: 7 },
        'PUT /api/servers/{serverId}': { maxConnections: 7 },
        'POST /api/v1/config/partners': partner,
        'PUT /api/v1/config/partners/{partnerId}': { name: 'Acme' },
        'PUT /api/v1/config/partners/{partnerId}/trace': trace,
        'POST /api/v1/config/files': file,
        'PUT /api/v1/config/files/{fileId}': { name: 'Invoices' },
        'POST /api/v1/clusters/{clusterId}/virtual-files': file,
        [`POST ${STORES}/ca`]: { commonName: 'Local CA', validityDays: 30 },
        [`POST ${STORES}/issue`]: { name: 'made', commonName: 'a.example', sans: ['a.example'], ttlDays: 1 },
        [`POST ${STORES}/revoked`]: { serial: '01' },
        [`POST ${STORES}/keystores`]: keystore,
        [`PUT ${STORES}/keystores/{name}`]: IDENTITY,
        [`POST ${STORES}/truststores`]: truststore,
        [`PUT ${STORES}/truststores/{name}`]: { certificates: IDENTITY.certificate },
      },
      reset: async () => {
        for (const { serverId } of (await rest.get('/api/v1/servers')).body as { serverId: string }[]) {
          await rest.post(`/api/v1/servers/${encodeURIComponent(serverId)}/stop`);
        }
        await emptyTables(rest.database, 'pesit_server');
        await rest.post('/api/v1/servers', { serverId: 'NODE1', port, autoStart: false });
        await rest.post('/api/v1/config/partners', { partnerId: 'ACME', password: 'Zq!7xUp0' });
        await rest.post('/api/v1/config/files', { fileId: 'INVOICES', direction: 'RECEIVE' });
        await rest.post('/api/v1/hooks', hook);
        await rest.post(`${STORES}/keystores`, { ...keystore, name: 'k' });
        await rest.post(`${STORES}/truststores`, { ...truststore, name: 't' });
      },
    });
    expect([`seed ${outcome.seed}`, ...outcome.wrong]).toEqual([`seed ${outcome.seed}`]);
    expect(outcome.refused).toBeGreaterThan(outcome.taken);
  });
});

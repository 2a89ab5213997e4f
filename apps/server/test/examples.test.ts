/** What the document of the interface shows is what the service takes; and whatever changes something is in the audit log. */
import { expect, test } from '@jest/globals';
import type { OpenApiDocument } from '@pesit-node/service';
import { freePort, selfSigned, sendExamples, withDatabase } from '@pesit-node/service/testing';
import request from 'supertest';

import { ADMIN, useRest } from './support/rest.js';

const IDENTITY = selfSigned('examples');
const STORES = '/api/v1/certificates';
const HOOK = { hookId: 'batch', target: 'exec:start-batch' };
const PARTNER = { partnerId: 'ACME', password: 'Zq!7xUp0' };

/** Nothing runs, and nobody vouches for the license of the example. */
const STATES = {
  'POST /api/v1/license': 400,
  'DELETE /api/v1/servers/{serverId}/sessions/{sessionId}': 404,
  'DELETE /api/servers/{serverId}/sessions/{sessionId}': 404,
  'DELETE /api/v1/config/partners/{partnerId}/trace/{session}': 404,
  'POST /api/v1/hook-deliveries/{id}/redeliver': 404,
  'POST /api/v1/transfers/{id}/cancel': 404,
} as const;

withDatabase((harness) => {
  const rest = useRest(harness, { 'http.trusted-proxies': ['127.0.0.0/8', '::1'], 'hooks.webhooks': true });

  test('every operation that may change something takes its example, and leaves an audit entry', async () => {
    const document = (await rest.get('/openapi.json')).body as OpenApiDocument;
    // Those of the examples may be taken on this machine.
    const port = await freePort();
    let serial = '';
    const without = async (path: string): Promise<void> => {
      await rest.delete(path);
    };
    const { outcomes, wrong } = await sendExamples({
      ...{ app: rest.app, document, states: STATES },
      prepare: async (name) => {
        const [method = '', path = ''] = name.split(' ');
        const isCreate = method === 'POST' && !path.includes('{');
        if (path.includes('/servers')) {
          await rest.post('/api/v1/servers/NODE1/stop');
          await without('/api/v1/servers/NODE1');
          if (!isCreate)
            await rest.post('/api/v1/servers', {
              serverId: 'NODE1',
              port,
              autoStart: /\/(?:stop|restart)$/.test(path),
            });
        } else if (path.includes('/partners')) {
          await without('/api/v1/config/partners/ACME');
          if (!isCreate) await rest.post('/api/v1/config/partners', PARTNER);
          // Stopped, so that nobody waits for an answer.
          if (path.endsWith('/test')) {
            await rest.post('/api/v1/servers', { serverId: 'NODE1', port, autoStart: false });
          }
        } else if (path.includes('/hooks')) {
          await without('/api/v1/hooks/batch?force=true');
          if (!isCreate) await rest.post('/api/v1/hooks', { ...HOOK, enabled: false });
        } else if (path.includes('files')) {
          await without('/api/v1/config/files/INVOICES');
          if (method !== 'POST') await rest.post('/api/v1/config/files', { fileId: 'INVOICES', direction: 'RECEIVE' });
        } else if (path.endsWith('/revoked')) {
          const issued = await rest.post(`${STORES}/issue`, { name: 'acme', commonName: 'ACME', kind: 'partner' });
          ({ serial } = issued.body as { serial: string });
        } else if (path.endsWith('stores') || path.endsWith('stores/{name}')) {
          const store = path.includes('keystores') ? 'keystores/node1' : 'truststores/partners';
          await without(`${STORES}/${store}`);
          const [kind, named] = store.split('/');
          const content = kind === 'keystores' ? IDENTITY : { certificates: IDENTITY.certificate };
          if (!isCreate) await rest.post(`${STORES}/${kind}`, { name: named, ...content });
        }
      },
      params: (name) => ({
        ...{ serverId: 'NODE1', partnerId: 'ACME', fileId: 'INVOICES', clusterId: 'pesit', hookId: 'batch' },
        id: name.includes('hook-deliveries') ? '6f1f2c1e-5d7a-4c52-9b0e-3f6a2d9c8b71' : '1',
        session: '6f1f2c1e-5d7a-4c52-9b0e-3f6a2d9c8b71',
        name: name.endsWith('/rotate') ? 'rest' : name.includes('keystores') ? 'node1' : 'partners',
      }),
      body: (name, example) => {
        const given = example as Readonly<Record<string, unknown>>;
        // Another certificate than the one that is there: else nothing changes.
        const { certificate, privateKey } = name.startsWith('PUT') ? selfSigned('changed') : IDENTITY;
        return {
          ...given,
          ...(given['port'] === undefined ? {} : { port }),
          ...(given['certificate'] === undefined ? {} : { certificate, privateKey }),
          ...(given['certificates'] === undefined ? {} : { certificates: certificate }),
          ...(given['serial'] === undefined ? {} : { serial }),
        };
      },
      send: async ({ method, path, body, from }) => {
        const call = request(rest.app)[method](path).auth(ADMIN.username, ADMIN.password).set('X-Forwarded-For', from);
        return await (body === undefined ? call : call.send(body as object));
      },
    });
    expect(wrong).toEqual([]);
    expect(outcomes.length).toBeGreaterThan(30);
    await rest.audit.flush();
    const entries = rest.database.knex.withSchema('pesit_server').from('audit_entries').distinct('address');
    const audited = new Set(await entries.pluck<string[]>('address'));
    // Where nothing is there to be changed, that it is declared has to do.
    const silent = outcomes.filter(({ from, status, declared }) => (status < 300 ? !audited.has(from) : !declared));
    expect(silent.map(({ name }) => name)).toEqual([]);
    await rest.post('/api/v1/servers/NODE1/stop');
  });
});

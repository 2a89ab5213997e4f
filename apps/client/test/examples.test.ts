/** What the document of the interface shows is what the service takes; and whatever changes something is in the audit log. */
import { afterAll, expect, test } from '@jest/globals';
import type { OpenApiDocument } from '@pesit-node/service';
import { freePort, selfSigned, sendExamples, withDatabase } from '@pesit-node/service/testing';
import request from 'supertest';

import { AUTHORIZATION, expectNoSecrets } from './support/service.js';
import { until, useWorld } from './support/world.js';

afterAll(expectNoSecrets);

const IDENTITY = selfSigned('examples');

/** Nobody vouches for the license of the example, nothing is traced, and nothing waits for a release or a cancel. */
const STATES = {
  'POST /api/v1/license': 400,
  'POST /api/v1/hook-deliveries/{id}/redeliver': 404,
  'DELETE /api/v1/servers/{id}/trace/{session}': 404,
  'POST /api/v1/transfers/{id}/release': 409,
  'POST /api/v1/transfers/{id}/cancel': 409,
} as const;

const NOBODY = '6f1f2c1e-5d7a-4c52-9b0e-3f6a2d9c8b71';

/** Their entry is that of the outcome, by the node; the record says who asked (audit.test.ts). */
const BY_OUTCOME = ['send', 'receive', 'message'].map((verb) => `POST /api/v1/transfers/${verb}`);

withDatabase((harness) => {
  const world = useWorld(harness);

  test('every operation that may change something takes its example, and leaves an audit entry', async () => {
    const service = await world.service({
      config: { 'http.trusted-proxies': ['127.0.0.0/8', '::1'], 'hooks.webhooks': true },
    });
    const { api, app } = service;
    const document = (await api.document()).body as OpenApiDocument;
    // Nobody listens there.
    const port = await freePort();
    let [server, transfer] = ['', ''];
    const { outcomes, wrong } = await sendExamples({
      ...{ app, document, states: STATES },
      prepare: async (name) => {
        const [method = '', path = ''] = name.split(' ');
        const isCreate = method === 'POST' && !path.includes('{');
        if (path.includes('/transfers') || path.includes('/servers')) {
          const known = (await api.get('/servers')).body as { id: number; name: string }[];
          for (const { id } of known) await api.delete(`/servers/${id}?force=true`);
          if (isCreate && path.endsWith('/servers')) return;
          const bank = { name: 'bank', host: '127.0.0.1', port, serverId: 'BANK', clientId: 'NODE1' };
          server = String((await api.post('/servers', bank)).body.id);
          if (!path.includes('/transfers/{id}')) return;
          const file = { server: 'bank', virtualFile: 'INVOICES', remoteFilename: 'a', fileContent: 'aGk=' };
          transfer = (await api.post('/transfers/send?wait=90', file)).body.id as string;
        } else if (path.includes('/hooks')) {
          await api.delete('/hooks/batch?force=true');
          const hook = { hookId: 'batch', enabled: false, target: 'exec:start-batch' };
          if (!isCreate) await api.post('/hooks', hook);
        } else if (path.includes('stores')) {
          const [kind, named] = path.includes('keystores') ? ['keystores', 'node1'] : ['truststores', 'partners'];
          await api.delete(`/certificates/${kind}/${named}`);
          const content = kind === 'keystores' ? IDENTITY : { certificates: IDENTITY.certificate };
          if (!isCreate) await api.post(`/certificates/${kind}`, { name: named, ...content });
        }
      },
      params: (name) => ({
        id: name.includes('/hook-deliveries') ? NOBODY : name.includes('/transfers') ? transfer : server,
        hookId: 'batch',
        name: name.includes('keystores') ? 'node1' : 'partners',
        session: NOBODY,
      }),
      body: (name, example) => {
        const given = example as Readonly<Record<string, unknown>>;
        // Another certificate than the one that is there: else nothing changes.
        const { certificate, privateKey } = name.startsWith('PUT') ? selfSigned('changed') : IDENTITY;
        return {
          ...given,
          ...(given['certificate'] === undefined ? {} : { certificate, privateKey }),
          ...(given['certificates'] === undefined ? {} : { certificates: certificate }),
        };
      },
      send: async ({ method, path, body, from }) => {
        // It has ended when the answer comes.
        const target = /\/(?:send|receive|message|retry|replay)$/.test(path) ? `${path}?wait=90` : path;
        const call = request(app)[method](target).set('Authorization', AUTHORIZATION).set('X-Forwarded-For', from);
        return await (body === undefined ? call : call.send(body as object));
      },
    });
    expect(wrong).toEqual([]);
    expect(outcomes.length).toBeGreaterThan(15);
    const silent = async (): Promise<readonly string[]> => {
      const entries = world.database().knex.withSchema('pesit_client').from('audit_entries').distinct('address');
      const audited = new Set(await entries.pluck<string[]>('address'));
      // Where nothing is there to be changed, that it is declared has to do.
      return outcomes
        .filter(({ from, status, declared }) => (status < 300 ? !audited.has(from) : !declared))
        .map(({ name }) => name);
    };
    // Some are written behind the answer.
    await until(async () => (await silent()).length === BY_OUTCOME.length);
    expect(await silent()).toEqual(BY_OUTCOME);
  });
});

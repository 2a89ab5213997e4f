/** Every answer of GET can be put back: from the document of the interface, over every resource that can be changed. */
import { afterAll, beforeEach, expect, test } from '@jest/globals';
import { commonResources, describePutBack, withDatabase } from '@pesit-node/service/testing';

import { expectNoSecrets } from './support/service.js';
import type { Service } from './support/service.js';
import { useWorld } from './support/world.js';

afterAll(expectNoSecrets);

const COMMON = commonResources();

const BANK = { name: 'bank', host: 'pesit.example', serverId: 'BANKSRV', clientId: 'NODE1' };

withDatabase((harness) => {
  const world = useWorld(harness);
  let service: Service;
  beforeEach(async () => {
    service = await world.service();
  });
  const below = (path: string) => path.replace('/api/v1', '');

  describePutBack({
    resources: {
      ...COMMON.resources,
      '/api/v1/servers/{id}': {
        collection: '/api/v1/servers',
        table: 'remote_servers',
        minimal: BANK,
        names: {
          ...COMMON.stores,
        },
        full: {
          ...{ ...BANK, name: 'other', port: 7000, password: 'Zq!7xUp0', enabled: false, description: 'd' },
          ...{
            maxConnections: 3,
            maxBytesPerSecond: 65_536,
            tcpipHeader: 'raw',
            maxEntitySize: 4096,
            syncInterval: 0,
            syncWindow: 0,
          },
          ...{ compression: 'both', crc: true, resync: true, ebcdic: true, codePage: '1147', selectByName: true },
          ...{ multiArticle: false, concatenation: false, preconnectId: 'X', preconnectPassword: 'Yk?3-wRe' },
          ...{ recordLength: 80, recordFormat: 0, text: true, tlsEnabled: true, tlsPort: 5002, keystoreName: 'k' },
          ...{ truststoreName: 't', tlsServerName: 'a.example', certificateFingerprint: ['00'.repeat(32)] },
          revocation: 'hard',
        },
      },
    },
    switches: ['/api/v1/servers/{id}/trace'],
    get: (path) => (path === '/openapi.json' ? service.api.document() : service.api.get(below(path))),
    post: (path, body) => service.api.post(below(path), body),
    put: (path, body) => service.api.put(below(path), body),
    stored: async (table) => (await service.database.knex(table).first()) as Record<string, unknown>,
  });

  test('the id may be put back, and no other', async () => {
    const { body } = await service.api.post('/servers', BANK);
    const put = await service.api.put('/servers/1', { ...body, id: 2 });
    expect([put.status, put.body.details]).toEqual([
      400,
      [{ field: 'id', message: 'cannot be changed from 1: create another remote server' }],
    ]);
    expect((await service.api.put('/servers/1', { id: 1 })).body).toEqual(body);
  });
});

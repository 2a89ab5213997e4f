/** Every answer of GET can be put back: from the document of the interface, over every resource that can be changed. */
import { describe, expect, test } from '@jest/globals';
import { commonResources, describePutBack, withDatabase } from '@pesit-node/service/testing';
import type { Changeable } from '@pesit-node/service/testing';

import { faultyFields, useRest } from './support/rest.js';

const PARTNER: Changeable = {
  collection: '/api/v1/config/partners',
  table: 'partners',
  minimal: { partnerId: 'MINIMAL', password: 'Zq!7xUp0' },
  full: {
    ...{ partnerId: 'FULL', password: 'Zq!7xUp0', name: 'n', description: 'd', enabled: false, accessType: 'READ' },
    mayChangePassword: true,
    ...{
      quotaBytes: 5_000_000_000,
      quotaFiles: 100,
      maxConnections: 7,
      preconnectId: 'X',
      preconnectPassword: 'Yk?3-wRe',
      multiArticle: false,
    },
    ...{ concatenation: false, allowedFiles: ['A*', 'B'], allowedListeners: [] },
    ...{ allowedAddresses: ['192.0.2.0/24', '2001:db8::1'], maxBytesPerSecond: 5_000_000_000 },
    ...{
      tlsRequired: true,
      certificateFingerprint: ['00'.repeat(32)],
      certificateSubject: 'CN=x',
      certificateSan: ['DNS:x'],
    },
  },
};

const VIRTUAL_FILE: Changeable = {
  collection: '/api/v1/config/files',
  table: 'virtual_files',
  minimal: { fileId: 'MINIMAL' },
  full: {
    ...{ fileId: 'FULL', name: 'n', description: 'd', direction: 'SEND', enabled: false, receiveDirectory: 'in' },
    ...{ sendFile: 'out/one.txt', filenamePattern: '*.x', receiveFilenamePattern: '${uuid}', overwrite: true },
    ...{
      maxFileSize: 5_000_000_000,
      recordLength: 80,
      recordFormat: 128,
      text: true,
      durability: 'end',
      ebcdic: true,
      codePage: '1147',
    },
    ...{ compression: 'both', allowedPartners: ['BANK*'] },
  },
};

const COMMON = commonResources();

const LISTENER: Changeable = {
  collection: '/api/v1/servers',
  table: 'listeners',
  minimal: { serverId: 'MINIMAL' },
  names: {
    ...COMMON.stores,
  },
  full: {
    ...{ serverId: 'FULL', port: 7777, autoStart: false, maxConnections: 3, readTimeout: 5000, receiveDirectory: 'in' },
    ...{ sendDirectory: 'out', strictServerId: true, tcpipHeader: 'raw', maxEntitySize: 4096, syncInterval: 0 },
    syncWindow: 0,
    ...{ tlsPort: 7778, sslEnabled: true, sslClientAuth: 'WANT', keystoreName: 'k', truststoreName: 't' },
    ...{ proxyProtocol: 'optional', trustedProxies: ['192.0.2.0/24', '2001:db8::1'] },
    revocation: 'hard',
    maxBytesPerSecond: 65_536,
  },
};

const RESOURCES: Readonly<Record<string, Changeable>> = {
  '/api/v1/config/partners/{partnerId}': PARTNER,
  '/api/v1/config/files/{fileId}': VIRTUAL_FILE,
  '/api/v1/servers/{serverId}': LISTENER,
  ...COMMON.resources,
  '/api/servers/{serverId}': { ...LISTENER, collection: '/api/servers' },
};
/** The switch of a trace has no state of its own to put back: what it is told is for how long. */
const SWITCHES = ['/api/v1/config/partners/{partnerId}/trace'];

withDatabase((harness) => {
  const rest = useRest(harness);
  describePutBack({
    resources: RESOURCES,
    switches: SWITCHES,
    get: (path) => rest.get(path),
    post: (path, body) => rest.post(path, { ...body }),
    put: (path, body) => rest.put(path, { ...body }),
    stored: async (table) => (await rest.database.knex(table).first()) as Record<string, unknown>,
  });

  describe('of two names of a field, the one that was edited counts', () => {
    test.each<[Changeable, Record<string, unknown>, Record<string, unknown>]>([
      [VIRTUAL_FILE, { sendDirectory: 'elsewhere' }, { sendDirectory: 'elsewhere', sendFile: 'elsewhere' }],
      [VIRTUAL_FILE, { sendFile: 'x/y' }, { sendDirectory: 'x/y', sendFile: 'x/y' }],
      [VIRTUAL_FILE, { sendFile: null }, { sendDirectory: null, sendFile: null }],
      [PARTNER, { accessType: 'BOTH' }, { accessType: 'BOTH', allowedOperations: ['READ', 'WRITE'] }],
      [PARTNER, { allowedOperations: ['WRITE'] }, { accessType: 'WRITE', allowedOperations: ['WRITE'] }],
    ])('edit %#', async ({ collection, full }, edit, expected) => {
      const { body } = await rest.post(collection, full);
      const put = await rest.put(`${collection}/FULL`, { ...body, ...edit });
      expect([put.status, put.body]).toEqual([200, { ...body, ...expected }]);
    });

    test.each<[Changeable, Record<string, unknown>, string]>([
      [VIRTUAL_FILE, { sendDirectory: 'a', sendFile: 'b' }, 'sendFile'],
      [PARTNER, { accessType: 'BOTH', allowedOperations: ['WRITE'] }, 'accessType'],
      [PARTNER, { id: 'OTHER' }, 'id'],
      [VIRTUAL_FILE, { fileId: 'OTHER' }, 'fileId'],
      [LISTENER, { serverId: 'OTHER' }, 'serverId'],
    ])('edit %# that contradicts itself, or asks for a new identifier, is refused', async (resource, edit, field) => {
      const { collection, full, names = {} } = resource;
      for (const [path, named] of Object.entries(names)) await rest.post(path, named);
      const { body } = await rest.post(collection, full);
      const put = await rest.put(`${collection}/FULL`, { ...body, ...edit });
      expect([put.status, faultyFields(put)]).toEqual([400, [field]]);
      expect((await rest.get(`${collection}/FULL`)).body).toEqual(body);
    });
  });

  test('an unset record length is no limit afterwards', async () => {
    const { body } = await rest.post('/api/v1/config/files', { fileId: 'F' });
    expect(body.recordLength).toBeNull();
    await rest.put('/api/v1/config/files/F', { ...body, description: 'edited' });
    expect(await rest.database.knex('virtual_files').first('record_length', 'description')).toEqual({
      record_length: null,
      description: 'edited',
    });
  });
});

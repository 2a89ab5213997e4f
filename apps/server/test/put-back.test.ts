/** Every answer of GET can be put back: from the document of the interface, over every resource that can be changed. */
import { describe, expect, test } from '@jest/globals';
import type { OpenApiDocument } from '@pesit-node/service';
import { withDatabase, operationFor, operationsOf, resolveIn, violations } from '@pesit-node/service/testing';

import { faultyFields, useRest } from './support/rest.js';

interface Resource {
  readonly collection: string;
  readonly table: string;
  /** Fewest fields, and all of them. */
  readonly minimal: Readonly<Record<string, unknown>>;
  readonly full: Readonly<Record<string, unknown>>;
}

const PARTNER: Resource = {
  collection: '/api/v1/config/partners',
  table: 'partners',
  minimal: { partnerId: 'MINIMAL', password: 'Zq!7xUp0' },
  full: {
    ...{ partnerId: 'FULL', password: 'Zq!7xUp0', name: 'n', description: 'd', enabled: false, accessType: 'READ' },
    ...{ maxConnections: 7, preconnectId: 'X', preconnectPassword: 'Yk?3-wRe', multiArticle: false },
    ...{ concatenation: false, allowedFiles: ['A*', 'B'], allowedListeners: [] },
  },
};

const VIRTUAL_FILE: Resource = {
  collection: '/api/v1/config/files',
  table: 'virtual_files',
  minimal: { fileId: 'MINIMAL' },
  full: {
    ...{ fileId: 'FULL', name: 'n', description: 'd', direction: 'SEND', enabled: false, receiveDirectory: 'in' },
    ...{ sendFile: 'out/one.txt', filenamePattern: '*.x', receiveFilenamePattern: '${uuid}', overwrite: true },
    ...{ recordLength: 80, recordFormat: 128, text: true, durability: 'end', ebcdic: true, codePage: '1147' },
    ...{ compression: 'both', allowedPartners: ['BANK*'] },
  },
};

const LISTENER: Resource = {
  collection: '/api/v1/servers',
  table: 'listeners',
  minimal: { serverId: 'MINIMAL' },
  full: {
    ...{ serverId: 'FULL', port: 7777, autoStart: false, maxConnections: 3, readTimeout: 5000, receiveDirectory: 'in' },
    ...{ sendDirectory: 'out', strictServerId: true, tcpipHeader: 'raw', maxEntitySize: 4096, syncInterval: 0 },
    syncWindow: 0,
  },
};

const RESOURCES: Readonly<Record<string, Resource>> = {
  '/api/v1/config/partners/{partnerId}': PARTNER,
  '/api/v1/config/files/{fileId}': VIRTUAL_FILE,
  '/api/v1/servers/{serverId}': LISTENER,
  '/api/servers/{serverId}': { ...LISTENER, collection: '/api/servers' },
};
/** The switch of a trace has no state of its own to put back: what it is told is for how long. */
const SWITCHES = ['/api/v1/config/partners/{partnerId}/trace'];

withDatabase((harness) => {
  const rest = useRest(harness);
  const read = async () => (await rest.get('/openapi.json')).body as OpenApiDocument;
  const bodySchema = (document: OpenApiDocument, method: string, path: string) =>
    resolveIn(document, operationFor(document, method, path)?.requestBody?.content['application/json']?.schema ?? {});
  const stored = async (table: string) => {
    const [row] = await rest.database.knex(table).select('*');
    const { updated_at: _, ...settings } = row as Record<string, unknown>;
    return settings;
  };

  test('every resource of the document is tried here', async () => {
    const changeable = [...operationsOf(await read()).keys()].filter((name) => name.startsWith('PUT '));
    expect(changeable.map((name) => name.slice(4)).sort()).toEqual([...Object.keys(RESOURCES), ...SWITCHES].sort());
  });

  describe.each(Object.entries(RESOURCES))('%s', (template, { collection, table, minimal, full }) => {
    const path = (given: Resource['minimal']) => template.replace(/\{\w+\}/, String(Object.values(given)[0]));

    test.each([
      ['with nothing set', minimal],
      ['with everything set', full],
    ])('what GET answers can be put back, %s', async (_, given) => {
      const document = await read();
      expect((await rest.post(collection, given)).status).toBe(201);
      const before = await stored(table);
      const { body } = await rest.get(path(given));
      expect(violations(document, bodySchema(document, 'PUT', path(given)), body, { closed: true })).toEqual([]);
      const put = await rest.put(path(given), body);
      expect([put.status, put.body]).toEqual([200, body]);
      expect(await stored(table)).toEqual(before);
    });

    test('the full body of this test has every field that can be set', async () => {
      const document = await read();
      const { properties = {} } = bodySchema(document, 'POST', collection);
      const { body } = await rest.post(collection, full);
      const fieldOf = (name: string) =>
        /^Another \w+ of `(\w+)`/.exec(properties[name]?.description ?? '')?.[1] ?? name;
      const given = new Set(Object.keys(full).map(fieldOf));
      const missing = Object.keys(properties).filter((name) => !given.has(fieldOf(name)));
      for (const name of missing) expect(properties[name]?.description).toMatch(/^Not built/);
      expect(body).not.toHaveProperty('error');
    });

    test('what may be null is answered as null when nothing is set, and null unsets it', async () => {
      const document = await read();
      const isNullable = (schema: unknown) => JSON.stringify(schema).includes('"null"');
      const { properties = {} } = bodySchema(document, 'PUT', path(minimal));
      const { body: unset } = await rest.post(collection, minimal);
      await rest.post(collection, full);
      for (const [name, schema] of Object.entries(properties)) {
        if (schema['readOnly'] === true || !(schema.description ?? '').includes('null: ')) continue;
        expect([name, isNullable(schema)]).toEqual([name, true]);
        if (!(name in unset)) continue;
        expect([name, unset[name]]).toEqual([name, null]);
        const put = await rest.put(path(full), { [name]: null });
        expect([put.status, put.body[name]]).toEqual([200, null]);
      }
    });

    test('what no request sets is ignored in PUT, whatever it says, and refused in POST', async () => {
      const { properties = {} } = bodySchema(await read(), 'PUT', path(minimal));
      const { body } = await rest.post(collection, minimal);
      const before = await stored(table);
      const figures = Object.keys(properties).filter((name) => properties[name]?.['readOnly'] === true);
      for (const name of figures) {
        expect(properties[name]?.description).toContain('Ignored here.');
        expect((await rest.put(path(minimal), { [name]: 'another' })).body).toEqual(body);
        expect(faultyFields(await rest.post(collection, { ...minimal, [name]: body[name] }))).toEqual([name]);
      }
      expect(await stored(table)).toEqual(before);
    });
  });

  describe('of two names of a field, the one that was edited counts', () => {
    test.each<[Resource, Record<string, unknown>, Record<string, unknown>]>([
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

    test.each<[Resource, Record<string, unknown>, string]>([
      [VIRTUAL_FILE, { sendDirectory: 'a', sendFile: 'b' }, 'sendFile'],
      [PARTNER, { accessType: 'BOTH', allowedOperations: ['WRITE'] }, 'accessType'],
      [PARTNER, { id: 'OTHER' }, 'id'],
      [VIRTUAL_FILE, { fileId: 'OTHER' }, 'fileId'],
      [LISTENER, { serverId: 'OTHER' }, 'serverId'],
    ])('edit %# that contradicts itself, or asks for a new identifier, is refused', async (resource, edit, field) => {
      const { collection, full } = resource;
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

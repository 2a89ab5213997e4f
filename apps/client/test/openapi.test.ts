import { afterAll, expect, test } from '@jest/globals';
import type { OpenApiDocument } from '@pesit-node/service';
import {
  withDatabase,
  operationFor,
  operationsOf,
  roleViolations,
  structureProblems,
  usersOfRoles,
  violations,
} from '@pesit-node/service/testing';
import request from 'supertest';

import { expectNoSecrets } from './support/service.js';
import { useWorld } from './support/world.js';

afterAll(expectNoSecrets);

/** Payloads as the interface specification has them. */
const EXAMPLES: readonly (readonly [string, string, object])[] = [
  [
    'POST',
    '/api/v1/servers',
    {
      name: 'bank',
      host: 'bank.example',
      port: 6502,
      serverId: 'BANK',
      clientId: 'NODE1',
      password: 'pw',
      tlsEnabled: false,
    },
  ],
  [
    'POST',
    '/api/v1/servers',
    { name: 'b', host: '10.0.0.1', serverId: 'B', clientId: 'N', enabled: true, description: 'x' },
  ],
  ['PUT', '/api/v1/servers/1', { name: 'bank', password: 'pw' }],
  [
    'POST',
    '/api/v1/transfers/send',
    { serverId: 1, remoteFilename: 'FILE', partnerId: 'NODE1', virtualFile: 'INVOICES', fileContent: 'aGVsbG8=' },
  ],
  [
    'POST',
    '/api/v1/transfers/send',
    { server: 'bank', partnerId: 'NODE1', filename: 'in/a.csv', remoteFilename: 'A', syncPointsEnabled: true },
  ],
  ['POST', '/api/v1/transfers/receive', { serverId: 1, remoteFilename: 'F', partnerId: 'NODE1', virtualFile: 'X' }],
  ['POST', '/api/v1/license/extend-evaluation', { days: 365 }],
];

const RECORD = ['id', 'status', 'direction', 'filename', 'serverName', 'size', 'startTime', 'endTime', 'duration'];

withDatabase((harness) => {
  const world = useWorld(harness);

  test('the document: structure, paths and payloads of the specification', async () => {
    const { app } = await world.service();
    const { body } = await request(app).get('/openapi.json').auth('admin', 'rest-secret-1');
    const document = body as OpenApiDocument;
    expect(structureProblems({ ...document })).toEqual([]);
    expect([...operationsOf(document).keys()]).toEqual(
      expect.arrayContaining([
        'GET /api/v1/servers',
        'POST /api/v1/servers/{id}/test',
        'POST /api/v1/transfers/message',
        'GET /api/v1/transfers/history',
        'GET /api/v1/transfers',
        'GET /api/v1/transfers/stats',
        'POST /api/v1/transfers/{id}/replay',
        'POST /api/v1/transfers/{id}/cancel',
        'POST /api/v1/transfers/{id}/retry',
        'GET /actuator/info',
      ]),
    );
    for (const [method, path, payload] of EXAMPLES) {
      const schema = operationFor(document, method, path)?.requestBody?.content['application/json']?.schema ?? {};
      expect(Object.keys(schema)).not.toEqual([]);
      expect(violations(document, schema, payload, { closed: true })).toEqual([]);
      expect(violations(document, schema, { ...payload, unheardOf: 1 }, { closed: false })).not.toEqual([]);
    }
    const roles = [...operationsOf(document)].map(([name, operation]) => [name, operation['x-role']] as const);
    const traces = '/api/v1/servers/{id}/trace';
    expect(roles.flatMap(([name, role]) => (role === 'operator' ? [name] : [])).sort()).toEqual([
      `DELETE ${traces}`,
      ...['', '/export.csv', '/export.jsonl'].map((rest) => `GET /api/v1/audit${rest}`),
      'GET /api/v1/hook-deliveries/{id}',
      `GET ${traces}/content`,
      `GET ${traces}/{session}`,
      'GET /api/v1/transfers/{id}/content',
      'POST /api/v1/hook-deliveries/{id}/redeliver',
      'POST /api/v1/servers/{id}/close-circuit',
      'POST /api/v1/servers/{id}/test',
      ...['message', 'receive', 'send'].map((verb) => `POST /api/v1/transfers/${verb}`),
      ...['cancel', 'release', 'replay', 'retry'].map((verb) => `POST /api/v1/transfers/{id}/${verb}`),
      `PUT ${traces}`,
    ]);
    expect(roles.filter(([name, role]) => !name.startsWith('GET ') && role !== 'operator' && role !== 'admin')).toEqual(
      [],
    );
    const { parameters = [] } = operationFor(document, 'GET', '/api/v1/transfers/history') ?? {};
    expect(parameters.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['page', 'size', 'sort', 'status', 'direction', 'serverId', 'from', 'to']),
    );
    expect(Object.keys(document.components.schemas['Transfer']?.properties ?? {})).toEqual(
      expect.arrayContaining(RECORD),
    );
  });

  test('every operation is for the roles that it declares, and for no lesser one', async () => {
    const users = await usersOfRoles();
    const { app } = await world.service({ config: { 'admin.users': users.path } });
    const { wrong, calls } = await roleViolations(app, (method, path, user, password) =>
      request(app)[method](path).auth(user, password),
    );
    users.remove();
    expect(wrong).toEqual([]);
    expect(calls).toBeGreaterThan(70);
  });

  test('a file as the body: its fields are parameters, and none is asked for with a body of JSON', async () => {
    const { app } = await world.service();
    const { body } = await request(app).get('/openapi.json').auth('admin', 'rest-secret-1');
    const { parameters = [], requestBody } =
      operationFor(body as OpenApiDocument, 'POST', '/api/v1/transfers/send') ?? {};
    const content = requestBody?.content ?? {};
    expect(Object.keys(content)).toEqual(['application/json', 'application/octet-stream', 'multipart/form-data']);
    expect(content['multipart/form-data']?.schema).toMatchObject({
      required: ['file'],
      properties: { file: { format: 'binary' }, server: { type: 'string' }, syncInterval: { type: 'integer' } },
    });
    expect(parameters.filter(({ required }) => required)).toEqual([]);
    expect(parameters.find(({ name }) => name === 'serverId')).toMatchObject({
      in: 'query',
      schema: { type: 'integer', minimum: 1 },
    });
    expect(parameters.filter((one) => one.in === 'header').map(({ name }) => name)).toEqual([
      'Prefer',
      'Idempotency-Key',
      'Content-Digest',
    ]);
  });
});

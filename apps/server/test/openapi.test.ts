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

import { useRest } from './support/rest.js';

/** Method, path and payload as the interface specification has them. */
const EXAMPLES: readonly (readonly [string, string, object])[] = [
  ['POST', '/api/v1/servers', { serverId: 'NODE1', port: 6502, tlsPort: 5001, autoStart: true, maxConnections: 100 }],
  ['POST', '/api/servers', { serverId: 'NODE1', readTimeout: 60_000, receiveDirectory: '/data/in', tcpipHeader: true }],
  ['POST', '/api/v1/servers', { serverId: 'NODE1', sslEnabled: false, sslClientAuth: 'false', sendDirectory: 'out' }],
  [
    'POST',
    '/api/v1/config/partners',
    { partnerId: 'ACME', name: 'Acme', password: 'Zq!7xUp0', enabled: true, allowedOperations: ['READ', 'WRITE'] },
  ],
  ['POST', '/api/v1/config/partners', { id: 'ACME', description: 'x', password: 'Zq!7xUp0', accessType: 'BOTH' }],
  ['PUT', '/api/v1/config/partners/ACME', { name: 'Acme', enabled: false }],
  ['PUT', '/api/v1/config/partners/ACME', { preconnectId: 'CFT01', preconnectPassword: 'Zq!7xUp0' }],
  [
    'POST',
    '/api/v1/config/files',
    {
      ...{ fileId: 'INVOICES', name: 'Invoices', receiveDirectory: '/data/in', filenamePattern: '*.csv' },
      ...{ receiveFilenamePattern: '${partner}_${timestamp}_${uuid}', overwrite: false, direction: 'RECEIVE' },
    },
  ],
  [
    'POST',
    '/api/v1/config/files',
    { id: 'X', sendFile: '/data/x', recordLength: 80, recordFormat: 0, text: true, ebcdic: true, enabled: true },
  ],
  ['PUT', '/api/v1/config/files/INVOICES', { direction: 'BOTH', sendDirectory: 'out', maxRetries: 3 }],
  ['POST', '/api/v1/license', { license: 'ZXlKaGJHY2lPaUpTVXpJMU5pSjk=' }],
  ['POST', '/api/v1/license/extend-evaluation', { days: 30 }],
];

/** What the interface specification says of answers: method, path, status, fields that must be described. */
const ANSWERS: readonly (readonly [string, string, readonly string[]])[] = [
  [
    'GET',
    '/api/v1/servers/{serverId}/status',
    ['serverId', 'status', 'port', 'tlsPort', 'activeConnections', 'totalTransfers', 'uptime'],
  ],
  ['POST', '/api/v1/servers/{serverId}/start', ['serverId', 'status', 'message']],
  [
    'GET',
    '/api/v1/config/partners/{partnerId}',
    ['partnerId', 'id', 'name', 'enabled', 'lastConnection', 'transferCount'],
  ],
  ['GET', '/api/v1/transfers', ['content', 'totalElements']],
  [
    'GET',
    '/api/v1/transfers/{id}',
    ['id', 'partnerId', 'direction', 'filename', 'virtualFileId', 'size', 'status', 'startTime', 'endTime'],
  ],
  [
    'GET',
    '/api/v1/license',
    [
      ...['valid', 'evaluation', 'blocked', 'type', 'customer', 'expirationDate', 'daysUntilExpiration', 'maxClusters'],
      ...['maxPodsPerCluster', 'evaluationStartDate', 'evaluationExpirationDate', 'evaluationDaysRemaining'],
    ],
  ],
];

const users = await usersOfRoles();
afterAll(() => users.remove());

withDatabase((harness) => {
  const rest = useRest(harness, { 'admin.users': users.path });
  const read = async () => (await rest.get('/openapi.json')).body as OpenApiDocument;

  test('is OpenAPI 3.1 in its structure', async () => {
    expect(structureProblems({ ...(await read()) })).toEqual([]);
  });

  test('every path of the specification is there, and every filter of the history', async () => {
    const document = await read();
    expect([...operationsOf(document).keys()]).toEqual(
      expect.arrayContaining([
        'GET /api/v1/servers',
        'POST /api/servers/{serverId}/start',
        'POST /api/v1/servers/{serverId}/stop',
        'DELETE /api/v1/config/partners/{partnerId}',
        'PUT /api/v1/config/files/{fileId}',
        'GET /actuator/health/readiness',
        'GET /api/v1/transfers/active',
        'GET /api/v1/transfers/stats',
        'GET /actuator/prometheus',
        'GET /api/v1/cluster',
        'GET /api/v1/cluster/status',
        'GET /api/v1/cluster/transfers',
        'POST /api/v1/clusters/{clusterId}/virtual-files',
      ]),
    );
    const { parameters = [] } = operationFor(document, 'GET', '/api/v1/transfers') ?? {};
    expect(parameters.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['page', 'size', 'sort', 'partnerId', 'direction', 'status', 'from', 'to']),
    );
  });

  test('an operator runs listeners and traces, ends what runs, and reads the audit log; whatever else changes something takes an admin', async () => {
    const operations = [...operationsOf(await read())];
    const named = (keep: (name: string, role: string | undefined) => boolean): string[] =>
      operations.filter(([name, operation]) => keep(name, operation['x-role'])).map(([name]) => name);
    const traces = '/api/v1/config/partners/{partnerId}/trace';
    expect(named((_, role) => role === 'operator').sort()).toEqual([
      'DELETE /api/servers/{serverId}/sessions/{sessionId}',
      `DELETE ${traces}`,
      'DELETE /api/v1/servers/{serverId}/sessions/{sessionId}',
      ...['', '/export.csv', '/export.jsonl'].map((rest) => `GET /api/v1/audit${rest}`),
      `GET ${traces}/content`,
      `GET ${traces}/{session}`,
      'GET /api/v1/hook-deliveries/{id}',
      ...['restart', 'start', 'stop'].map((verb) => `POST /api/servers/{serverId}/${verb}`),
      'POST /api/v1/config/partners/{partnerId}/test',
      'POST /api/v1/hook-deliveries/{id}/redeliver',
      ...['restart', 'start', 'stop'].map((verb) => `POST /api/v1/servers/{serverId}/${verb}`),
      'POST /api/v1/transfers/{id}/cancel',
      `PUT ${traces}`,
    ]);
    expect(named((name, role) => !name.startsWith('GET ') && role === 'viewer')).toEqual([]);
    expect(named((name, role) => role === undefined && !name.includes('/actuator/health')).sort()).toEqual([
      'GET /crl',
      'GET /ocsp/{b64}',
      'POST /ocsp',
    ]);
  });

  test('every operation is for the roles that it declares, and for no lesser one', async () => {
    const { wrong, calls } = await roleViolations(rest.app, (method, path, user, password) =>
      request(rest.app)[method](path).auth(user, password),
    );
    expect(wrong).toEqual([]);
    expect(calls).toBeGreaterThan(100);
  });

  test.each(EXAMPLES)('%s %s %j', async (method, path, payload) => {
    const document = await read();
    const schema = operationFor(document, method, path)?.requestBody?.content['application/json']?.schema ?? {};
    expect(Object.keys(schema)).not.toEqual([]);
    expect(violations(document, schema, payload, { closed: true })).toEqual([]);
    expect(violations(document, schema, { ...payload, unheardOf: 1 }, { closed: false })).not.toEqual([]);
  });

  test.each(ANSWERS)('%s %s answers %j', async (method, path, fields) => {
    const document = await read();
    const response = operationFor(document, method, path)?.responses['200'];
    const schema =
      response !== undefined && 'content' in response ? response.content['application/json']?.schema : undefined;
    const { $ref } = schema ?? {};
    const named = typeof $ref === 'string' ? document.components.schemas[$ref.replace(/.*\//, '')] : schema;
    const { properties = {} } = named ?? {};
    expect(Object.keys(properties)).toEqual(expect.arrayContaining([...fields]));
  });
});

import { describe, expect, test } from '@jest/globals';
import { createHttpApp, endpoint, HealthRegistry, pageOf, pagingFields, Routes } from '@pesit-node/service';
import type { OpenApiDocument } from '@pesit-node/service';
import {
  answerViolations,
  operationsOf,
  routesOf,
  silentLogger,
  structureProblems,
  testConfig,
  testMetrics,
  violations,
} from '@pesit-node/service/testing';
import request from 'supertest';
import { z } from 'zod';

import { openApiDocument } from '../../src/openapi/document.js';

const thing = z.object({ id: z.int(), name: z.string().nullable() }).meta({ id: 'Thing' });
const createThing = z.strictObject({
  name: z.string().min(1).max(5),
  sizes: z.array(z.int().min(1)).optional(),
  readOnly: z.undefined().optional(),
  style: z.union([z.enum(['a', 'b']), z.boolean().transform((yes) => (yes ? 'a' : 'b'))]).optional(),
  mode: z.enum(['x', 'y']).default('x'),
});

const mount = (routes: Routes): void => {
  routes.resource(['/api/v1/things', '/api/things'], {
    get: endpoint(
      {
        summary: 'All things',
        query: z.strictObject(pagingFields({ sortable: { name: 'name' }, defaultSort: 'name,asc' })),
        answers: { 200: pageOf(thing) },
      },
      ({ res }) => res.json({}),
    ),
    post: endpoint({ summary: 'Makes a thing', body: createThing, answers: { 201: thing, 409: 'Taken.' } }, ({ res }) =>
      res.json({}),
    ),
  });
  routes.resource('/api/v1/things/:id', {
    delete: endpoint(
      { summary: 'Removes a thing', params: z.strictObject({ id: z.string() }), answers: { 204: 'Gone.' } },
      ({ res }) => res.status(204).end(),
    ),
  });
};

const documentOf = (define: (routes: Routes) => void = mount): OpenApiDocument => {
  const routes = new Routes();
  define(routes);
  return openApiDocument({ name: 'test', version: '1.2.3' }, routes.mounted);
};

describe('the document', () => {
  const document = documentOf();
  const operations = operationsOf(document);

  test('is OpenAPI 3.1 in its structure', () => {
    expect(structureProblems({ ...document })).toEqual([]);
  });

  test('has every path, other names of it too', () => {
    expect([...operations.keys()]).toEqual([
      'GET /api/v1/things',
      'POST /api/v1/things',
      'GET /api/things',
      'POST /api/things',
      'DELETE /api/v1/things/{id}',
    ]);
    expect(operations.get('POST /api/things')).toMatchObject({
      operationId: 'postApiThings',
      description: 'Another name of /api/v1/things.',
      tags: ['things'],
    });
  });

  test('has the answers that follow from what is asked and who may ask', () => {
    const statuses = (name: string) => Object.keys(operations.get(name)?.responses ?? {}).map(Number);
    expect(statuses('POST /api/v1/things')).toEqual([201, 400, 401, 402, 403, 409, 413, 415, 429, 500, 503]);
    expect(statuses('DELETE /api/v1/things/{id}')).toEqual([204, 400, 401, 402, 403, 413, 415, 429, 500, 503]);
    expect(operations.get('POST /api/v1/things')?.responses['402']).toEqual({
      $ref: '#/components/responses/LicenseRequired',
    });
  });

  test('has query fields as parameters, as they are sent and not as they are read', () => {
    const size = operations.get('GET /api/v1/things')?.parameters?.find(({ name }) => name === 'size');
    expect(size).toEqual({
      name: 'size',
      in: 'query',
      required: false,
      description: '1 to 500; default 20.',
      schema: { type: 'string', pattern: '^\\d{1,9}$' },
    });
  });

  test('has request bodies as they are sent: fields of answers alone are not there', () => {
    const schema = operations.get('POST /api/v1/things')?.requestBody?.content['application/json']?.schema ?? {};
    expect(schema).toEqual({
      type: 'object',
      properties: {
        name: { type: 'string', minLength: 1, maxLength: 5 },
        sizes: { type: 'array', items: { type: 'integer', minimum: 1 } },
        style: { anyOf: [{ type: 'string', enum: ['a', 'b'] }, { type: 'boolean' }] },
        mode: { type: 'string', enum: ['x', 'y'], default: 'x' },
      },
      required: ['name'],
      additionalProperties: false,
    });
  });

  test('has named schemas once', () => {
    expect(Object.keys(document.components.schemas)).toEqual(['Error', 'LicenseRequired', 'Thing']);
    expect(document.components.schemas['Thing']).toEqual({
      type: 'object',
      properties: { id: { type: 'integer' }, name: { type: ['string', 'null'] } },
      required: ['id', 'name'],
    });
  });

  test('two schemas of one name are a mistake of the code', () => {
    const two = (schema: z.ZodType) => (routes: Routes) =>
      routes.resource('/x', {
        get: endpoint({ summary: 's', answers: { 200: thing, 201: schema } }, () => undefined),
      });
    // zod itself keeps one registry of names.
    expect(() => documentOf(two(z.object({ other: z.string() }).meta({ id: 'Thing' })))).toThrow('Thing');
  });
});

describe('/openapi.json and /docs', () => {
  const build = (isPublic = false) =>
    createHttpApp({
      config: testConfig('server', { 'data.directory': '/nowhere', 'metrics.public': isPublic }),
      info: { name: 'pesit <server>', version: '1.2.3' },
      logger: silentLogger,
      health: new HealthRegistry(),
      metrics: testMetrics('server'),
      routes: mount,
    });
  const read = async (isPublic = false) => {
    const app = build(isPublic);
    const { body } = await request(app).get('/openapi.json').auth('admin', 'admin').expect(200);
    return { app, document: body as OpenApiDocument };
  };

  test.each(['/openapi.json', '/docs'])('%s needs the login', async (path) => {
    expect((await request(build()).get(path)).status).toBe(401);
  });

  test('every route of Express is in the document, and the reverse', async () => {
    const { app, document } = await read();
    expect(structureProblems({ ...document })).toEqual([]);
    expect([...operationsOf(document).keys()].sort()).toEqual([...routesOf(app)].sort());
    expect(routesOf(app)).toEqual(expect.arrayContaining(['GET /metrics', 'GET /openapi.json', 'GET /docs']));
  });

  test('a route that was not declared is found by this', async () => {
    const { app, document } = await read();
    app.get('/api/v1/forgotten', () => undefined);
    expect(routesOf(app).filter((route) => !operationsOf(document).has(route))).toEqual(['GET /api/v1/forgotten']);
  });

  test('what is open says so, and is', async () => {
    for (const isPublic of [false, true]) {
      const { app, document } = await read(isPublic);
      for (const [name, { security }] of operationsOf(document)) {
        const [method = '', path = ''] = name.split(' ');
        const { status } = await request(app)[method.toLowerCase() as 'get'](path.replace('{id}', '1'));
        expect([name, status === 401]).toEqual([name, security === undefined]);
      }
    }
  });

  test('the page and its parts: nothing that a strict policy stops, nothing from elsewhere', async () => {
    const { app } = await read();
    const get = (path: string) => request(app).get(path).auth('admin', 'admin');
    const { text, headers, status } = await get('/docs');
    expect([status, headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
    expect(text).toContain('pesit &lt;server&gt; 1.2.3');
    expect(text).not.toMatch(/https?:\/\/|javascript:|<script>|<style|\sstyle=|\son\w+=/);
    expect(headers['content-security-policy']).toContain("script-src 'self';");
    const parts = [...text.matchAll(/(?:href|src)="(docs\/[^"]+)"/g)].map(([, part = '']) => part);
    expect(parts).toHaveLength(3);
    for (const part of parts) {
      const answer = await get(`/${part}`);
      const type = part.endsWith('.css') ? 'text/css; charset=utf-8' : 'text/javascript; charset=utf-8';
      expect([part, answer.status, answer.headers['content-type']]).toEqual([part, 200, type]);
    }
    const start = await get('/docs/start.js');
    expect(start.text).toContain("new URL('openapi.json'");
    expect((await get('/docs/')).headers['location']).toBe('../docs');
    expect((await get('/docs/..%2fpackage.json')).status).toBe(404);
    expect((await get('/docs/constructor')).status).toBe(404);
  });
});

describe('the readers of the tests', () => {
  const document = documentOf();
  const body =
    operationsOf(document).get('POST /api/v1/things')?.requestBody?.content['application/json']?.schema ?? {};
  const problems = (value: unknown, closed = false) => violations(document, body, value, { closed });

  test.each<[unknown, readonly string[]]>([
    [{ name: 'abc' }, []],
    [{ name: 'abc', sizes: [1, 2], style: true }, []],
    [{}, ['$.name: is missing']],
    [{ name: '' }, ['$.name: expected 1 to 5 characters, got ""']],
    [{ name: 'abc', sizes: [0] }, ['$.sizes[0]: expected 1 to Infinity, got 0']],
    [{ name: 'abc', sizes: [1.5] }, ['$.sizes[0]: expected type integer, got 1.5']],
    [{ name: 'abc', more: 1 }, ['$.more: is not in the schema']],
    [[], ['$: expected type object, got []']],
    [
      { name: 'abc', style: 'c' },
      ['$.style: expected one of ["a","b"], got "c"', '$.style: expected type boolean, got "c"'],
    ],
  ])('%j', (value, expected) => {
    expect(problems(value)).toEqual(expected);
  });

  test('answers', () => {
    const answer = (status: number, text: string, contentType = 'application/json; charset=utf-8') =>
      answerViolations(document, { method: 'POST', path: '/api/v1/things', status, contentType, text });
    expect(answer(201, '{"id":1,"name":null}')).toEqual([]);
    expect(answer(201, '{"id":1,"name":null,"more":1}')).toEqual([
      'POST /api/v1/things → 201: $.more: is not in the schema',
    ]);
    expect(answer(200, '{}')).toEqual(['POST /api/v1/things → 200: the status is not in the document']);
    expect(answer(201, 'x', 'text/plain')).toEqual(['POST /api/v1/things → 201: text/plain is not in the document']);
    expect(answer(409, '{"error":"CONFLICT"}')).toHaveLength(3);
  });

  test('answers where the document has nothing: errors alone', () => {
    const answer = (method: string, path: string, status: number, text: string) =>
      answerViolations(document, { method, path, status, contentType: 'application/json', text });
    const body = (error: string) =>
      JSON.stringify({ error, message: 'm', path: '/x', timestamp: '2026-11-21T09:30:00.000Z' });
    expect(answer('PATCH', '/api/v1/things', 405, body('METHOD_NOT_ALLOWED'))).toEqual([]);
    expect(answer('GET', '/nowhere', 404, body('NOT_FOUND'))).toEqual([]);
    expect(answer('HEAD', '/nowhere', 404, '')).toEqual([]);
    expect(answer('GET', '/nowhere', 404, '{}')).toHaveLength(4);
    expect(answer('GET', '/nowhere', 200, '{}')).toEqual([
      'GET /nowhere → 200: an answer of success that is not in the document',
    ]);
  });

  test('structure', () => {
    const broken = JSON.parse(
      JSON.stringify(document)
        .replace('"name":"id","in":"path"', '"name":"key","in":"path"')
        .replace('Responses/', 'x/'),
    ) as Record<string, unknown>;
    expect(structureProblems(broken)).toEqual(['delete /api/v1/things/{id}: path parameters']);
    expect(structureProblems({})).toEqual(['openapi is not 3.1.x', 'info: title, version', 'no operation']);
  });
});

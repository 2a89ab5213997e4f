import { expect } from '@jest/globals';
import type { OpenApiDocument } from '@pesit-node/service';
import { operationsOf } from '@pesit-node/service/testing';
import type { Express } from 'express';
import request from 'supertest';

/** How the validator speaks when nobody has put it into words. */
const RAW =
  /invalid (?:input|option|string|key|element|date)|too (?:small|big)|received|unrecognized|must match pattern|\bNaN\b/i;

/** None of them is right for all fields. */
const VALUES = [null, true, 1.5, -1, 1e300, '', 'x'.repeat(5000), 'a\u0000b', [], [{}], {}, { a: 1 }];

type Details = readonly { readonly field: string; readonly message: string }[];

const propertiesOf = ({ components }: OpenApiDocument, schema: unknown): readonly string[] => {
  const { $ref, properties, allOf, anyOf, oneOf } = (schema ?? {}) as Readonly<Record<string, unknown>>;
  if (typeof $ref === 'string') {
    return propertiesOf({ components } as OpenApiDocument, components.schemas[$ref.replace(/.*\//, '')]);
  }
  const parts = [allOf, anyOf, oneOf].flatMap((one) => (Array.isArray(one) ? (one as unknown[]) : []));
  return [
    ...Object.keys(properties ?? {}),
    ...parts.flatMap((part) => propertiesOf({ components } as OpenApiDocument, part)),
  ];
};

/** Gives every field of every operation of an app what it cannot take, or nothing: each complaint is in words of ours. */
export const expectHouseWords = async (app: Express, authorization: string): Promise<void> => {
  const document = (await request(app).get('/openapi.json').set('Authorization', authorization))
    .body as OpenApiDocument;
  const raw = new Set<string>();
  const missing = new Set<string>();
  let asked = 0;

  const call = async (route: string, path: string, query: Readonly<Record<string, string>>, body?: object) => {
    const [method = ''] = route.split(' ');
    const test = request(app)[method.toLowerCase() as 'post'](path).set('Authorization', authorization).query(query);
    const response = await (body === undefined ? test : test.send(body));
    asked++;
    const { details = [] } = response.body as { readonly details?: Details };
    for (const { field, message } of details) {
      if (RAW.test(message)) raw.add(`${route} ${field}: ${message}`);
      if (message.startsWith('required')) missing.add(`${route} ${field}`);
    }
  };

  for (const [route, { parameters = [], requestBody }] of operationsOf(document)) {
    const path = (route.split(' ')[1] ?? '').replace(/\{\w+\}/g, '1');
    const queries = parameters.filter((one) => one.in === 'query').map(({ name }) => name);
    const schema = requestBody?.content['application/json']?.schema;
    if (schema !== undefined) {
      await call(route, path, {}, {});
      await call(route, path, {}, []);
      for (const value of VALUES) {
        await call(route, path, {}, Object.fromEntries(propertiesOf(document, schema).map((name) => [name, value])));
      }
    }
    for (const value of ['', 'x', '-1', '1.5', '99999999999999999999', 'a\u0000b']) {
      await call(route, path, Object.fromEntries(queries.map((name) => [name, value])));
      await call(route, path.replace(/\/1(?=\/|$)/g, `/${encodeURIComponent(value || ' ')}`), {});
    }
  }
  expect([...raw]).toEqual([]);
  expect(asked).toBeGreaterThan(100);
  expect([...missing]).toContain('POST /api/v1/license license');
};

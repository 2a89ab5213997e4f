import { expect } from '@jest/globals';
import { listen } from '@pesit-node/service';
import type { OpenApiDocument } from '@pesit-node/service';
import { operationsOf } from '@pesit-node/service/testing';
import type { Express } from 'express';

/** How the validator speaks when nobody has put it into words. */
const RAW =
  /invalid (?:input|option|string|key|element|date)|too (?:small|big)|received|unrecognized|must match pattern|\bNaN\b/i;

/** None of them is right for all fields. */
const VALUES = [null, true, 1.5, -1, 1e300, '', 'x'.repeat(5000), 'a\u0000b', [], [{}], {}, { a: 1 }];

/** What stands behind a path with identifiers that nothing has. */
const NOBODY = ['1', '00000000-0000-4000-8000-000000000000'];
const LISTED = /^\S.* does not exist: see GET (\/\S+)$/;

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

/**
 * Gives every field of every operation of an app what it cannot take, or nothing: each complaint is in words of ours. Asks for
 * what does not exist under every path: each answer names a request that lists what does.
 * @param missing operations that must be among those that answered so
 */
export const expectHouseWords = async (
  app: Express,
  authorization: string,
  missing: readonly string[],
): Promise<void> => {
  const server = await listen(app, { host: '127.0.0.1', port: 0 });
  try {
    const unknown = await askEverything(`http://127.0.0.1:${server.port}`, authorization);
    expect([...unknown]).toEqual(expect.arrayContaining([...missing]));
  } finally {
    await server.close();
  }
};

/** @returns the operations that something does not exist for */
const askEverything = async (base: string, authorization: string): Promise<ReadonlySet<string>> => {
  const document = (await (
    await fetch(`${base}/openapi.json`, { headers: { authorization } })
  ).json()) as OpenApiDocument;
  const raw = new Set<string>();
  const missing = new Set<string>();
  const unknown = new Set<string>();
  const unlisted = new Set<string>();
  const lists = Object.entries(document.paths).flatMap(([path, operations]) =>
    'get' in operations ? [new RegExp(`^${path.replace(/\{\w+\}/g, '[^/]+')}$`)] : [],
  );
  let asked = 0;

  const call = async (route: string, path: string, body?: object): Promise<void> => {
    const [method = ''] = route.split(' ');
    const response = await fetch(base + path, {
      method,
      headers: { authorization, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    asked++;
    if (response.headers.get('content-type')?.startsWith('application/json') !== true) {
      await response.body?.cancel();
      return;
    }
    const { details = [], message: text } = (await response.json()) as {
      readonly details?: Details;
      readonly message?: string;
    };
    if (response.status === 404 && route.includes('{')) {
      unknown.add(route);
      const seen = LISTED.exec(text ?? '')?.[1];
      if (!lists.some((list) => seen !== undefined && list.test(seen))) unlisted.add(`${route}: ${text ?? ''}`);
    }
    for (const { field, message } of details) {
      if (RAW.test(message)) raw.add(`${route} ${field}: ${message}`);
      if (message.startsWith('required')) missing.add(`${route} ${field}`);
    }
  };

  for (const [route, { parameters = [], requestBody }] of operationsOf(document)) {
    const template = route.split(' ')[1] ?? '';
    const path = template.replace(/\{\w+\}/g, '1');
    const queries = parameters.filter((one) => one.in === 'query').map(({ name }) => name);
    const schema = requestBody?.content['application/json']?.schema;
    if (schema !== undefined) {
      const names = propertiesOf(document, schema);
      for (const body of [{}, [], ...VALUES.map((value) => Object.fromEntries(names.map((name) => [name, value])))]) {
        await call(route, path, body);
      }
    }
    if (template !== path) for (const id of NOBODY) await call(route, template.replace(/\{\w+\}/g, id), schema && {});
    for (const value of ['', 'x', '-1', '1.5', '99999999999999999999', 'a\u0000b']) {
      const query = new URLSearchParams(queries.map((name): [string, string] => [name, value]));
      if (queries.length > 0) await call(route, `${path}?${query.toString()}`);
      if (template !== path) await call(route, template.replace(/\{\w+\}/g, encodeURIComponent(value || ' ')));
    }
  }
  expect([...raw]).toEqual([]);
  expect([...unlisted]).toEqual([]);
  expect(asked).toBeGreaterThan(100);
  expect([...missing]).toContain('POST /api/v1/license license');
  return unknown;
};

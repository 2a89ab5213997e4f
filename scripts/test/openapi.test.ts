/** The documents of both apps as files: clients and their types are made from them. */
import { readFileSync } from 'node:fs';

import { describe, expect, test } from '@jest/globals';
import { Validator } from '@seriousme/openapi-schema-validator';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';

interface Medium {
  readonly schema: object;
  readonly example?: unknown;
}

type Content = Readonly<Record<string, Medium>>;

interface Operation {
  readonly requestBody?: { readonly content: Content };
  readonly responses: Readonly<Record<string, { readonly content?: Content }>>;
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

const read = (app: string) =>
  JSON.parse(readFileSync(new URL(`../../docs/openapi-${app}.json`, import.meta.url), 'utf8')) as Document;

/** Bodies of JSON without a schema: the document itself. */
const WITHOUT = new Set(['get /openapi.json: answer 200']);

const bodiesOf = ({ paths }: Document): readonly (readonly [name: string, body: Medium])[] =>
  Object.entries(paths)
    .flatMap(([path, methods]) =>
      Object.entries(methods).flatMap(([method, { requestBody, responses }]) => [
        [`${method} ${path}: request`, requestBody?.content['application/json']] as const,
        ...Object.entries(responses)
          .filter(([status]) => status.startsWith('2'))
          .map(
            ([status, { content }]) => [`${method} ${path}: answer ${status}`, content?.['application/json']] as const,
          ),
      ]),
    )
    .flatMap(([name, body]) => (body === undefined || WITHOUT.has(name) ? [] : [[name, body] as const]));

describe.each(['server', 'client'])('docs/openapi-%s.json', (app) => {
  const document = read(app);

  test('is OpenAPI 3.1 for an independent validator', async () => {
    expect(await new Validator().validate({ ...structuredClone(document) })).toEqual({ valid: true });
  });

  test('has an example of every request and of every answer of success, which fits its schema', () => {
    const ajv = new Ajv2020({ strict: false, allErrors: true });
    formats.default(ajv);
    ajv.addSchema(document, 'document');
    const bodies = bodiesOf(document);
    const wrong = bodies.flatMap(([name, { schema, example }]) => {
      if (example === undefined) return [`${name}: no example`];
      const fits = ajv.compile(JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"document#/')) as object);
      return fits(example) ? [] : [`${name}: ${ajv.errorsText(fits.errors)}`];
    });
    expect(wrong).toEqual([]);
    expect(bodies.length).toBeGreaterThan(50);
  });
});

import { describe, expect, test } from '@jest/globals';

import type { OpenApiDocument } from '../openapi/document.js';
import type { JsonSchema } from '../openapi/json-schema.js';
import { violations } from './json-schema.js';
import { operationFor, operationsOf, resolveIn } from './openapi.js';

type Fields = Readonly<Record<string, unknown>>;

/** Something that is created in `collection` and can be changed. */
export interface Changeable {
  readonly collection: string;
  /** Table of the database. */
  readonly table: string;
  /** Requests to create one: with the fewest fields, and with all that can be set. */
  readonly minimal: Fields;
  readonly full: Fields;
  /** Things that it names, by their collections: there before it. */
  readonly names?: Readonly<Record<string, Fields>>;
}

interface Answer {
  readonly status: number;
  readonly body: Record<string, unknown>;
  readonly headers: Readonly<Record<string, string>>;
}

export interface PutBackOptions {
  /** Every path of the document with a PUT: what can be put back there. */
  readonly resources: Readonly<Record<string, Changeable>>;
  /** Paths with a PUT that has no state of its own. */
  readonly switches: readonly string[];
  /** Whole paths. */
  readonly get: (path: string) => Promise<Answer>;
  readonly post: (path: string, body: object) => Promise<Answer>;
  readonly put: (path: string, body: object) => Promise<Answer>;
  /** The only row of a table. */
  readonly stored: (table: string) => Promise<Fields>;
}

const isNullable = (schema: JsonSchema): boolean => JSON.stringify(schema).includes('"null"');

/** The field that a name is another one of, as the document says. */
const fieldOf = (properties: Readonly<Record<string, JsonSchema>>, name: string): string =>
  /^Another \w+ of `(\w+)`/.exec(properties[name]?.description ?? '')?.[1] ?? name;

/**
 * Tests that every answer of GET can be put back (design §4), from the document of the interface and over every resource that
 * it says can be changed.
 */
export const describePutBack = ({ resources, switches, get, post, put, stored }: PutBackOptions): void => {
  const read = async () => (await get('/openapi.json')).body as unknown as OpenApiDocument;
  const fieldsOf = (document: OpenApiDocument, method: string, path: string): JsonSchema =>
    resolveIn(document, operationFor(document, method, path)?.requestBody?.content['application/json']?.schema ?? {});

  test('every resource of the document is tried', async () => {
    const changeable = [...operationsOf(await read()).keys()].filter((name) => name.startsWith('PUT '));
    expect(changeable.map((name) => name.slice(4)).sort()).toEqual([...Object.keys(resources), ...switches].sort());
  });

  describe.each(Object.entries(resources))('%s', (template, { collection, table, minimal, full, names = {} }) => {
    const create = async (given: Fields): Promise<{ readonly path: string; readonly body: Fields }> => {
      for (const [path, named] of Object.entries(names)) await post(path, named);
      const { status, headers, body } = await post(collection, given);
      expect([status, body['details']]).toEqual([201, undefined]);
      return { path: template.replace(/\{\w+\}/, headers['location']?.split('/').at(-1) ?? ''), body };
    };
    /** But for the time of the last change. */
    const row = async () =>
      Object.fromEntries(Object.entries(await stored(table)).filter(([column]) => column !== 'updated_at'));

    test.each([
      ['nothing set', minimal],
      ['everything set', full],
    ])('what GET answers can be put back, with %s', async (_, given) => {
      const document = await read();
      const { path } = await create(given);
      const before = await row();
      const { body } = await get(path);
      expect(violations(document, fieldsOf(document, 'PUT', path), body, { closed: true })).toEqual([]);
      const again = await put(path, body);
      expect([again.status, again.body]).toEqual([200, body]);
      expect(await row()).toEqual(before);
    });

    test('the full request of this test has every field that can be set', async () => {
      const { properties = {} } = fieldsOf(await read(), 'POST', collection);
      const given = new Set(Object.keys(full).map((name) => fieldOf(properties, name)));
      for (const name of Object.keys(properties).filter((one) => !given.has(fieldOf(properties, one)))) {
        expect([name, properties[name]?.description]).toEqual([name, expect.stringMatching(/^Not built/)]);
      }
    });

    test('what is not set is answered as null, and null unsets it', async () => {
      const document = await read();
      const { body: unset } = await create(minimal);
      const { path } = await create(full);
      const { properties = {} } = fieldsOf(document, 'PUT', path);
      for (const [name, schema] of Object.entries(properties)) {
        if (schema['readOnly'] === true || !(schema.description ?? '').includes('null: ')) continue;
        expect([name, isNullable(schema)]).toEqual([name, true]);
        // A secret is never answered.
        if (!(name in unset)) continue;
        expect([name, unset[name]]).toEqual([name, null]);
        const { status, body } = await put(path, { [name]: null });
        expect([name, status, body[name]]).toEqual([name, 200, null]);
      }
    });

    test('what no request sets is ignored in PUT, whatever it says, and refused in POST', async () => {
      const { path, body } = await create(minimal);
      const { properties = {} } = fieldsOf(await read(), 'PUT', path);
      const before = await row();
      for (const name of Object.keys(properties).filter((one) => properties[one]?.['readOnly'] === true)) {
        const refused = await post(collection, { ...minimal, [name]: body[name] });
        expect([refused.status, refused.body['details']]).toEqual([
          400,
          [{ field: name, message: 'is read-only: leave it out' }],
        ]);
        if (!(properties[name]?.description ?? '').includes('Ignored here.')) continue;
        const { status, body: after } = await put(path, { [name]: 'another' });
        expect([name, status, after]).toEqual([name, 200, body]);
      }
      expect(await row()).toEqual(before);
    });
  });
};

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { ConfigError, DeclaredList, FieldTable, isRemoteServer, loadConfig } from '@pesit-node/service';
import fc from 'fast-check';
import { stringify } from 'yaml';
import { z } from 'zod';

const THING = new FieldTable(
  { id: 'DeclaredThing', noun: 'thing', table: 'things' },
  {
    thingId: { column: 'thing_id', schema: z.string().max(5), key: true, aliases: ['id'] },
    name: { column: 'name', schema: z.string(), unset: 'none' },
    size: { column: 'size', schema: z.int().min(1), default: 7 },
    rights: {
      column: 'access',
      schema: z.codec(z.array(z.enum(['R', 'W'])), z.enum(['R', 'W', 'RW']), {
        decode: (list) => (list.length > 1 ? 'RW' : (list[0] ?? 'R')),
        encode: (access) => access.split('') as ('R' | 'W')[],
      }),
      forms: { access: z.enum(['R', 'W', 'RW']) },
      default: 'RW',
    },
    login: { column: 'login', schema: z.string(), unset: 'none' },
    loginPassword: { column: 'login_hash', schema: z.string().max(8), secret: true, needs: 'login', unset: 'none' },
    password: { column: 'hash', schema: z.string('expected a password').max(8), secret: true },
    made: { column: 'made', schema: z.string(), readOnly: true, unset: 'never' },
    turbo: { schema: z.boolean(), notBuilt: false },
  },
);
/** What YAML gives a meaning to. */
const SIGNS = '[ ] { } : - & * ! | > # % @ ` , ? ~ \' " a b 1'.split(' ').concat(' ', '\n', '\t');
const LIST = new DeclaredList({ list: 'partners', fields: THING });

describe('an item', () => {
  test('says all of its thing: what it leaves out is as in a new one, whatever name a field has', () => {
    const { items, problems } = LIST.read([
      { id: 'A' },
      { thingId: 'B', access: 'R', size: 3, name: 'b', turbo: false },
    ]);
    expect(problems).toEqual([]);
    expect(items).toEqual([
      {
        ...{ place: 'partners[0]', id: 'A', secrets: [] },
        body: { id: 'A', name: null, size: 7, rights: 'RW', login: null },
      },
      {
        ...{ place: 'partners[1]', id: 'B', secrets: [] },
        body: { thingId: 'B', access: 'R', size: 3, name: 'b', turbo: false, login: null },
      },
    ]);
  });

  test('may leave its secrets out, remove them, or say in which file they stand', () => {
    const { items, problems } = LIST.read([
      { id: 'A', password: 's3cret', login: 'me', loginPassword: null },
      { id: 'B', passwordFile: '/run/b' },
    ]);
    expect(problems).toEqual([]);
    expect(items.map(({ secrets }) => secrets)).toEqual([
      [
        { field: 'loginPassword', column: 'login_hash', given: { value: null } },
        { field: 'password', column: 'hash', given: { value: 's3cret' } },
      ],
      [{ field: 'password', column: 'hash', given: { path: '/run/b' } }],
    ]);
    expect(JSON.stringify(items.map(({ body }) => body))).not.toContain('s3cret');
  });

  test.each([
    ['no object', 'A', ['partners[0]: expected an object, got a text']],
    ['no identifier', { size: 2 }, ['partners[0].thingId: expected thingId (or id)']],
    [
      'all of its faults',
      { id: 'A', size: 0, sizee: 'x', made: 'y', password: 8 },
      [
        'partners[0].size: expected at least 1, got 0',
        'partners[0].password: expected a password',
        'partners[0].made: is read-only: leave it out',
        'partners[0].sizee: unknown field: did you mean size?',
      ],
    ],
    [
      'two names that differ',
      { id: 'A', thingId: 'B' },
      ['partners[0].id: expected the same value as thingId, or one of the two'],
    ],
    ['what is not built', { id: 'A', turbo: true }, ['partners[0].turbo: not built yet']],
    [
      'a secret without the field that it needs',
      { id: 'A', loginPassword: 'x' },
      ['partners[0].login: expected beside loginPassword'],
    ],
    [
      'a secret twice',
      { id: 'A', password: 'x', passwordFile: '/x' },
      ['partners[0].passwordFile: expected password, or passwordFile, not both'],
    ],
  ])('with %s is refused', (_name, item, problems) => {
    expect(LIST.read([item])).toEqual({ items: [], problems: expect.arrayContaining(problems) });
    expect(LIST.read([item]).problems).toHaveLength(problems.length);
  });

  test('is refused where it stands twice, and never shows a secret', () => {
    const { items, problems } = LIST.read([
      { id: 'A' },
      { thingId: 'A', password: 'hunter22' },
      { id: 'B', login: 'hunter22x', password: 7 },
    ]);
    expect(items.map(({ id }) => id)).toEqual(['A']);
    expect(problems).toEqual([
      'partners[1]: thing "A" is in the list already, as partners[0]: leave one of them out',
      'partners[2].password: expected a password',
    ]);
  });
});

test('problems are bounded', () => {
  const { problems } = LIST.read(Array.from({ length: 1000 }, () => 7));
  expect(problems).toHaveLength(101);
  expect(problems.at(-1)).toBe('partners: 900 more problems of this kind');
  expect(LIST.read(Array.from({ length: 100_001 }, () => 7)).problems).toEqual([
    'partners: expected at most 100000 items, got 100001',
  ]);
});

test('an item of servers is told by its fields', () => {
  const server = { serverId: 'BANK' };
  expect([{ host: 'h' }, { name: 'n' }, { clientId: 'c' }].map((one) => isRemoteServer({ ...server, ...one }))).toEqual(
    [true, true, true],
  );
  expect([server, { ...server, port: 1, autoStart: false }].map(isRemoteServer)).toEqual([false, false]);
  const listeners = new DeclaredList({ list: 'servers', fields: THING, has: (item) => !isRemoteServer(item) });
  expect(listeners.read([{ id: 'A', host: 'h' }, { id: 'B' }, 7])).toMatchObject({
    items: [{ id: 'B', place: 'servers[1]' }],
    problems: ['servers[2]: expected an object, got a number'],
  });
});

describe('in the configuration', () => {
  let directory: string;
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'pesit-declared-'));
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  const load = (text: string) => {
    const file = join(directory, 'pesit.yaml');
    writeFileSync(file, text);
    return loadConfig({ app: 'server', env: { PESIT_CONFIG: file }, argv: [], cwd: directory, lists: [LIST] });
  };
  const problems = (text: string): readonly string[] => {
    try {
      load(text);
    } catch (error) {
      if (error instanceof ConfigError) return error.problems;
      throw error;
    }
    return [];
  };

  test('its problems are told with all others, before anything runs', () => {
    expect(load('partners:\n  - id: A\n').partners).toEqual([{ id: 'A' }]);
    expect(load('partners:\n').partners).toEqual([]);
    expect(problems('server.port: x\npartners: [{ id: A, size: zero }, { id: B, passwrd: hunter22 }]\n')).toEqual([
      expect.stringContaining('server.port'),
      'partners[0].size: expected a number, got a text',
      'partners[1].passwrd: unknown field: did you mean password?',
    ]);
    expect(problems('partners: hunter22\n')).toEqual([
      expect.stringMatching(
        /^partners \(.*pesit\.yaml\): expected a list of objects .* got a value that is not shown$/,
      ),
    ]);
  });

  test('whatever stands in the lists: it is read, or a ConfigError', () => {
    const value = fc.oneof(
      fc.jsonValue(),
      fc.dictionary(
        fc.constantFrom(
          'id',
          'thingId',
          'size',
          'rights',
          'access',
          'password',
          'passwordFile',
          'login',
          '__proto__',
          'x',
        ),
        fc.oneof(fc.jsonValue(), fc.constantFrom('A', 'R', 3, null)),
      ),
    );
    fc.assert(
      fc.property(fc.array(value, { maxLength: 5 }), (items) => {
        const { items: read, problems: found } = LIST.read(items);
        expect(read.length > 0 || found.length > 0 || items.length === 0).toBe(true);
      }),
    );
    // A load reads every key: it is the YAML that differs here.
    const written = fc.oneof(
      fc.array(value, { maxLength: 5 }).map((list) => stringify({ partners: list })),
      fc.string({ maxLength: 60, unit: fc.constantFrom(...SIGNS) }).map((one) => `partners:${one}`),
    );
    fc.assert(
      fc.property(written, (text) => {
        expect(problems(text).every((problem) => typeof problem === 'string')).toBe(true);
      }),
      { numRuns: 50 },
    );
  });
});

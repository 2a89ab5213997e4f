import { describe, expect, test } from '@jest/globals';
import { ApiError, FieldTable, orDefault, storedTime } from '@pesit-node/service';
import type { RowOf } from '@pesit-node/service';
import { z } from 'zod';

const THING = new FieldTable(
  { id: 'TableThing', noun: 'thing', table: 'things' },
  {
    thingId: { column: 'thing_id', schema: z.string().max(5), key: true, aliases: ['id'] },
    size: { column: 'size', schema: z.int().min(1), unset: 'any' },
    colour: { column: 'colour', schema: orDefault(z.enum(['red', 'blue']), 'red'), default: 'red' },
    place: { column: 'place', schema: z.string(), aliases: ['path'], unset: 'none' },
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
    password: { column: 'hash', schema: z.string(), secret: true, needs: 'login', unset: 'none' },
    made: { column: 'made', schema: storedTime(), readOnly: true, unset: 'never' },
    level: { schema: z.int(), readOnly: true },
    turbo: { schema: z.boolean(), notBuilt: false },
  },
);

const ROW: RowOf<typeof THING.rows> = {
  thing_id: 'A',
  size: null,
  colour: 'red',
  place: 'here',
  access: 'RW',
  login: 'me',
  hash: 'h',
  made: null,
};

/** What is refused: status, and the fields with their messages. */
const refusal = (run: () => unknown) => {
  try {
    run();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return [error.status, ...(error.details ?? []).map(({ field, message }) => `${field}: ${message}`)];
  }
  throw new Error('nothing was refused');
};

describe('a request to create one', () => {
  test('needs the identifier by one of its names, and both must agree', () => {
    const messages = (body: object) => THING.create.safeParse(body).error?.issues.map(({ message }) => message);
    expect(messages({ id: 'A' })).toBeUndefined();
    expect(messages({ id: 'A', thingId: 'A' })).toBeUndefined();
    expect(messages({})).toEqual(['expected thingId (or id)']);
    expect(messages({ id: 'A', thingId: 'B' })).toEqual(['expected the same value as thingId, or one of the two']);
    expect(messages({ id: 'A', level: 1 })).toEqual(['is read-only: leave it out']);
  });

  test('has defaults for what it does not say, by column', () => {
    expect(THING.defaults).toEqual({
      ...{ size: null, colour: 'red', place: null, access: 'RW', login: null, hash: null },
    });
  });

  test('is refused for what is not built, and for a field without the one that it needs', () => {
    expect(refusal(() => THING.asked({ id: 'A', turbo: true }))).toEqual([422, 'turbo: not built yet']);
    expect(refusal(() => THING.asked({ id: 'A', password: 'x' }))).toEqual([400, 'login: expected beside password']);
    expect(THING.asked({ id: 'A', turbo: false })).toMatchObject({ id: 'A' });
  });
});

describe('a request to change one', () => {
  const changes = (body: object) => THING.changes(THING.update.parse(body), ROW);

  test('is what differs: not what is as it was, nor what no request sets', () => {
    expect(
      changes({ thingId: 'A', id: 'A', size: null, colour: null, rights: ['R', 'W'], made: 'x', level: 9 }),
    ).toEqual({});
    expect(changes({ size: 3, colour: 'blue' })).toEqual({ size: 3, colour: 'blue' });
  });

  test('of two names of a field, the one that differs counts; two that differ must agree', () => {
    expect(changes({ place: 'there', path: 'here' })).toEqual({ place: 'there' });
    expect(changes({ place: 'here', path: 'there' })).toEqual({ path: 'there' });
    expect(changes({ rights: ['R', 'W'], access: 'R' })).toEqual({ access: 'R' });
    expect(refusal(() => changes({ place: 'a', path: 'b' }))).toEqual([
      400,
      'path: expected the same value as place, or one of the two',
    ]);
  });

  test('does not change the identifier', () => {
    expect(refusal(() => changes({ id: 'B' }))).toEqual([400, 'id: cannot be changed from A: create another thing']);
  });

  test('keeps nothing of a field whose need is cleared', () => {
    expect(changes({ login: null })).toEqual({ login: null, password: null });
    expect(refusal(() => changes({ login: null, password: 'x' }))).toEqual([400, 'login: expected beside password']);
  });
});

describe('what is stored and answered', () => {
  test('columns, a secret as it is kept', async () => {
    const keep = (secret: string, field: string) => `${field}(${secret.length})`;
    expect(await THING.values({ path: 'x', access: 'W', password: 'abc' }, keep)).toEqual({
      ...{ place: 'x', access: 'W', hash: 'password(3)' },
    });
    expect(await THING.values({ password: null }, keep)).toEqual({ hash: null });
  });

  test('no secret is stored when nobody says how', async () => {
    await expect(THING.values({ password: 'abc' })).rejects.toThrow('nobody said how password is kept');
  });

  test('every name, no secret, null for what is not set', () => {
    const made = new Date('2026-11-21T09:30:00Z');
    expect(THING.view({ ...ROW, made }, { level: 2 })).toEqual({
      ...{ thingId: 'A', id: 'A', size: null, colour: 'red', place: 'here', path: 'here', login: 'me' },
      ...{ rights: ['R', 'W'], access: 'RW', made: '2026-11-21T09:30:00.000Z', level: 2, turbo: false },
    });
  });
});

test('a table without a key is a mistake of the code', () => {
  expect(() => new FieldTable({ id: 'NoKey', noun: 'x', table: 'x' }, { a: { schema: z.int() } })).toThrow('NoKey');
});

import { expect, test } from '@jest/globals';
import { check } from '@pesit-node/service';
import type { ApiError } from '@pesit-node/service';
import { z } from 'zod';

const complaint = (schema: z.ZodType, value: unknown, part: 'body' | 'query' = 'body'): readonly string[] => {
  try {
    check(z.strictObject({ field: schema }), value === undefined ? {} : { field: value }, part);
    return [];
  } catch (error) {
    return ((error as ApiError).details ?? []).map(({ message }) => message);
  }
};

const union = z.union([z.int(), z.enum(['all', 'none'])]);

test.each<[string, z.ZodType, unknown, string]>([
  ['missing', z.string(), undefined, 'required'],
  ['missing, of several values', z.enum(['a', 'b']), undefined, 'required'],
  ['missing, of several kinds', union, undefined, 'required'],
  [
    'missing, with words of its own',
    z.string({ error: 'expected the name of a bank' }),
    undefined,
    'required: expected the name of a bank',
  ],
  ['words of its own', z.string({ error: 'expected the name of a bank' }), 1, 'expected the name of a bank'],
  ['another kind', z.string(), 1, 'expected a text, got a number'],
  ['null', z.boolean(), null, 'expected true or false, got null'],
  ['a list', z.strictObject({}), [], 'expected an object, got a list'],
  ['a fraction', z.int(), 1.5, 'expected a whole number, got a fraction'],
  ['one of several values', z.enum(['a', 'b']), 'secret', 'expected one of a, b'],
  ['one value', z.literal(0), 'secret', 'expected 0'],
  ['one of several kinds', union, 'secret', 'expected a number, or one of all, none, got a text'],
  ['too short', z.string().min(2), 'a', 'expected at least 2 characters, got 1'],
  ['empty', z.string().min(1), '', 'expected at least 1 character, got none'],
  ['too many', z.array(z.string()).max(1), ['a', 'b'], 'expected at most 1 entry, got 2'],
  ['too small', z.int().min(1), -3, 'expected at least 1, got -3'],
  ['too large for the column', z.int().max(100_000), 1e15, 'expected at most 100000, got 1000000000000000'],
  ['one of several kinds, out of bounds', z.union([z.int().max(5), z.enum(['all'])]), 6, 'expected at most 5, got 6'],
  ['too large', z.number().lt(5), 5, 'expected less than 5, got 5'],
  ['no multiple', z.int().multipleOf(4), 6, 'expected a multiple of 4, got 6'],
  ['no UUID', z.uuid(), 'secret', 'expected a UUID'],
  ['another form', z.string().regex(/^a$/), 'secret', 'not in the form that is expected'],
  ['what a function refuses', z.string().refine(() => false), 'secret', 'not valid'],
])('%s', (_what, schema, value, message) => {
  expect(complaint(schema, value)).toEqual([message]);
});

test('a field of a query that is given twice', () => {
  expect(complaint(z.string(), ['a', 'b'], 'query')).toEqual(['expected once, got 2 times']);
});

test('a word of a query that is none of those to choose from comes back; any other text may be a secret', () => {
  const kinds = z.enum(['day', 'partner']);
  const expected = 'expected one of day, partner';
  expect(complaint(kinds, 'colour', 'query')).toEqual([`${expected}, got colour`]);
  for (const text of ['colour\n', 's3cret', '<b>', 'x'.repeat(21), '']) {
    expect(complaint(kinds, text, 'query')).toEqual([expected]);
  }
  expect(complaint(kinds, 'colour')).toEqual([expected]);
});

import { expect, test } from '@jest/globals';
import { RequestFields } from '@pesit-node/service';
import { z } from 'zod';

const FIELDS = new RequestFields({
  name: { schema: z.string().min(2), in: ['order', 'form', 'note'], required: ['note'], words: 'Who asks.' },
  amount: { schema: z.int().max(99), in: ['order', 'form'], kept: true, wordsIn: { form: 'How many, in digits.' } },
  size: { schema: z.union([z.literal(0), z.literal(128)]).describe('One of two.'), in: ['order', 'form'] },
  fast: { schema: z.boolean(), in: ['order', 'form'], kept: true },
  text: { schema: z.string(), in: ['note'], kept: true },
});

const order = z.strictObject(FIELDS.shape('order'));
const form = z.strictObject(FIELDS.shapeInTexts('form'));
const note = z.strictObject(FIELDS.shape('note'));

test('a request has its own fields alone, and must have those that it requires', () => {
  expect(order.parse({ name: 'ab', amount: 3 })).toEqual({ name: 'ab', amount: 3 });
  expect(order.parse({})).toEqual({});
  expect(order.safeParse({ text: 'not of an order' }).error?.issues[0]).toMatchObject({ keys: ['text'] });
  expect(note.parse({ name: 'ab' })).toEqual({ name: 'ab' });
  expect(note.safeParse({ text: 'x' }).error?.issues.map(({ path }) => path)).toEqual([['name']]);
});

test('texts are read as numbers and flags before the rule of the field is applied', () => {
  const given = { name: '12', amount: '7', size: '128', fast: 'true' };
  expect(form.parse(given)).toEqual({ name: '12', amount: 7, size: 128, fast: true });
  expect(form.parse({})).toEqual({});
  expect(order.safeParse(given).success).toBe(false);
  for (const [field, value] of Object.entries({ amount: '100', size: '1', fast: 'yes' })) {
    expect(form.safeParse({ [field]: value }).error?.issues.map(({ path }) => path)).toEqual([[field]]);
  }
});

test('what is kept of a request are the values of the rows that say so, whatever else was given', () => {
  const given = { name: 'ab', amount: 3, unknown: 1 };
  expect(FIELDS.kept(given)).toEqual({ amount: 3, fast: undefined, text: undefined });
});

test('the document has the words of the row, those for the request first', () => {
  const words = (schema: z.ZodType) =>
    Object.fromEntries(
      Object.entries((z.toJSONSchema(schema, { io: 'input' }) as { properties: object }).properties).map(
        ([name, { description }]: [string, { description?: string }]) => [name, description],
      ),
    );
  expect(words(order)).toEqual({ name: 'Who asks.', amount: undefined, size: 'One of two.', fast: undefined });
  expect(words(form)).toMatchObject({ name: 'Who asks.', amount: 'How many, in digits.' });
});

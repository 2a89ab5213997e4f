import { z } from 'zod';

/** Printable ASCII without `/ \ : * ? " < > |` (design §4, Identifiers). */
const IDENTIFIER = /^[\x20-\x7e]*$/;
const FORBIDDEN = /[/\\:*?"<>|]/;

/**
 * An identifier of the interface: 1 to `max` printable ASCII characters, no blank at either end, none of `/ \ : * ? " < > |`,
 * not `.` or `..`. serverId and partnerId have at most 24, fileId 76.
 */
export const identifier = (max: number) =>
  z
    .string()
    .min(1)
    .max(max)
    .superRefine((value, refinement) => {
      const complain = (message: string): void => refinement.addIssue({ code: 'custom', message });
      if (!IDENTIFIER.test(value)) complain('expected printable ASCII characters alone');
      if (FORBIDDEN.test(value)) complain('none of / \\ : * ? " < > | is allowed');
      if (value.trim() !== value) complain('a blank at either end is not allowed');
      if (value === '.' || value === '..') complain('. and .. are not allowed');
    })
    .meta({ description: 'Printable ASCII, no blank at either end, none of / \\ : * ? " < > |, not . or ..' });

/** Text for people (names, descriptions): at most `max` characters, no NUL and no other control character but tab and line ends. */
export const plainText = (max: number) =>
  z
    .string()
    .max(max)
    .regex(/^[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f]*$/, 'control characters are not allowed');

/** A field of answers that no request may set. */
export const readOnly = () => z.undefined({ error: 'is read-only: leave it out' }).optional();

/** A moment in an answer: ISO 8601 UTC. */
export const timestamp = () => z.string().meta({ format: 'date-time' });

/** A moment as the database has it, and as an answer shows it. */
export const storedTime = () =>
  z.codec(timestamp(), z.date(), { decode: (text) => new Date(text), encode: (time) => time.toISOString() });

/** A text or a list of them; several are for a change-over. A list is answered. */
export const oneOrMore = (schema: z.ZodType<string, string>) =>
  z.union([schema.transform((value) => [value]), z.array(schema).min(1).max(100)]).pipe(z.array(z.string()));

/** Null in a request is `preset`. */
export const orDefault = <T extends string | boolean>(schema: z.ZodType<T, T>, preset: NoInfer<T>) =>
  schema
    .nullable()
    .transform((value) => value ?? preset)
    // TypeScript does not see that neither kind is a promise.
    .pipe(schema as unknown as z.ZodType<T, Awaited<T>>);

/**
 * A path segment that is a row number: a positive integer as the column holds it.
 * @param largest default: what PostgreSQL's `integer` holds; `Number.MAX_SAFE_INTEGER` for a `bigint`
 */
export const rowId = (largest = 2_147_483_647) =>
  z
    .string()
    .regex(/^[1-9]\d{0,15}$/, `expected a positive integer up to ${largest}`)
    .transform(Number)
    .refine((value) => value <= largest, `expected a positive integer up to ${largest}`);

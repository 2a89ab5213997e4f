import type { z } from 'zod';

type RawIssue = z.core.$ZodRawIssue;

interface Sized {
  readonly origin: string;
  readonly input?: unknown;
}

/** JSON's types as the interface names them. */
const KINDS: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
  null: 'null',
  undefined: 'nothing',
  never: 'nothing',
};

const kindOf = (value: unknown): string => {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'number' && !Number.isInteger(value)) return 'a fraction';
  if (typeof value === 'boolean') return String(value);
  return KINDS[typeof value] ?? typeof value;
};

const UNITS: Readonly<Record<string, readonly [one: string, more: string]>> = {
  string: [' character', ' characters'],
  array: [' entry', ' entries'],
};

/** Says what came: a number itself, which is never a secret; how long a text or a list is. */
const sizeOf = (input: unknown): string => {
  if (typeof input === 'number') return `, got ${input}`;
  return typeof input === 'string' || Array.isArray(input) ? `, got ${input.length === 0 ? 'none' : input.length}` : '';
};

const bound = (word: string, limit: number | bigint, { origin, input }: Sized): string =>
  `expected ${word} ${String(limit)}${UNITS[origin]?.[Number(limit) === 1 ? 0 : 1] ?? ''}${sizeOf(input)}`;

const FORMATS: Readonly<Record<string, string>> = {
  uuid: 'expected a UUID',
  regex: 'not in the form that is expected',
};

/** The distinct complaints of the members of a union: what each would have taken. */
const either = (errors: readonly (readonly z.core.$ZodIssue[])[]): string => {
  const first = errors.flatMap(([issue]) => (issue === undefined ? [] : [issue]));
  // A member that took the value itself and complains of something inside is the one that was meant.
  const inside = first.find(({ path }) => path.length > 0);
  if (inside !== undefined) return `${inside.path.join('.')}: ${inside.message}`;
  const messages = first.map(({ message }) => message.replace(/^expected /, ''));
  const wanted = [...new Set(messages.map((message) => message.replace(/, got .*$/s, '')))].join(', or ');
  const got = /, got .*$/s.exec(messages[0] ?? '')?.[0] ?? '';
  return wanted === '' ? 'not valid' : `expected ${wanted}${got}`;
};

/**
 * Says what is wrong with a value, for people: what was expected, and what kind of thing came, or which number, or how long a text. The text
 * itself is left out: it may be a secret. A schema that has words of its own is not asked.
 */
export const words = (issue: RawIssue): string => {
  const { input } = issue;
  switch (issue.code) {
    case 'invalid_type':
      if (input === undefined) return 'required';
      return `expected ${KINDS[issue.expected] ?? issue.expected}, got ${kindOf(input)}`;
    case 'invalid_value': {
      if (input === undefined) return 'required';
      const values = issue.values.map(String).join(', ');
      return `expected ${issue.values.length > 1 ? 'one of ' : ''}${values}`;
    }
    case 'invalid_union':
      return input === undefined ? 'required' : either(issue.errors);
    case 'too_small':
      return bound(issue.inclusive === false ? 'more than' : 'at least', issue.minimum, issue);
    case 'too_big':
      return bound(issue.inclusive === false ? 'less than' : 'at most', issue.maximum, issue);
    case 'not_multiple_of':
      return `expected a multiple of ${String(issue.divisor)}${sizeOf(input)}`;
    case 'invalid_format':
      return FORMATS[issue.format] ?? `expected the form of ${issue.format}`;
    case 'unrecognized_keys':
      return 'unknown field';
    default:
      return 'not valid';
  }
};

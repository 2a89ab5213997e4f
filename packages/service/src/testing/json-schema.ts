/** A reader of JSON Schema 2020-12 of its own, for what the documents of the apps use; it knows nothing of how they are made. */
import { inspect } from 'node:util';

import type { OpenApiDocument } from '../openapi/document.js';

type Schema = Readonly<Record<string, unknown>>;
type Document = Pick<OpenApiDocument, 'components'>;
/** Where a value does not fit: `path: what was expected`; empty when it fits. */
type Check = (value: unknown, path: string) => readonly string[];

interface Reader {
  readonly document: Document;
  readonly closed: boolean;
  /** The check of a schema, made once. */
  readonly check: (schema: Schema) => Check;
}

/** The check of one group of keywords; undefined when the schema has none of them. */
type Rule = (schema: Schema, reader: Reader) => Check | undefined;

const FITS: readonly string[] = [];

/** A value may be deeper than the stack. */
const shown = (value: unknown): string =>
  typeof value === 'object' ? inspect(value, { depth: 3, breakLength: Infinity }) : JSON.stringify(value);

const unless =
  (fits: (value: unknown) => boolean, expected: string): Check =>
  (value, path) =>
    fits(value) ? FITS : [`${path}: expected ${expected}, got ${shown(value)}`];

const joined =
  (checks: readonly Check[]): Check =>
  (value, path) => {
    const problems = checks.map((check) => check(value, path)).filter((found) => found.length > 0);
    return problems.length === 0 ? FITS : problems.flat();
  };

const typeOf = (value: unknown): string => {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return Number.isInteger(value) ? 'integer' : typeof value;
};

const FORMATS: Readonly<Record<string, RegExp>> = {
  'date-time': /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/,
  date: /^\d{4}-\d\d-\d\d$/,
  uuid: /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i,
};

const ofType: Rule = ({ type }) => {
  if (type === undefined) return undefined;
  const allowed = new Set([type].flat() as unknown[]);
  if (allowed.has('number')) allowed.add('integer');
  return unless((value) => allowed.has(typeOf(value)), `type ${[type].flat().map(String).join(' or ')}`);
};

const oneOfValues: Rule = ({ enum: values }) =>
  Array.isArray(values) ? unless((value) => values.includes(value), `one of ${JSON.stringify(values)}`) : undefined;

const constant: Rule = (schema) =>
  'const' in schema ? unless((value) => value === schema['const'], JSON.stringify(schema['const'])) : undefined;

const allOfSchemas: Rule = ({ allOf }, { check }) =>
  allOf === undefined ? undefined : joined((allOf as Schema[]).map(check));

const someOfSchemas: Rule = ({ anyOf, oneOf }, { check }) => {
  const choices = ((anyOf ?? oneOf) as Schema[] | undefined)?.map(check);
  if (choices === undefined) return undefined;
  return (value, path) => {
    const tried = choices.map((choice) => choice(value, path));
    return tried.some((found) => found.length === 0) ? FITS : tried.flat();
  };
};

/** A rule for values of one kind, which lets all others pass. */
const when = (is: (value: unknown) => boolean, check: Check): Check => {
  return (value, path) => (is(value) ? check(value, path) : FITS);
};
const isString = (value: unknown): boolean => typeof value === 'string';
const isNumber = (value: unknown): boolean => typeof value === 'number';
const isObject = (value: unknown): boolean => typeof value === 'object' && value !== null && !Array.isArray(value);

const lengths: Rule = ({ minLength = 0, maxLength = Infinity }) => {
  const [min, max] = [minLength as number, maxLength as number];
  if (min === 0 && max === Infinity) return undefined;
  const fits = (value: unknown): boolean => (value as string).length >= min && (value as string).length <= max;
  return when(isString, unless(fits, `${min} to ${max} characters`));
};

const patterns: Rule = ({ pattern }) => {
  if (typeof pattern !== 'string') return undefined;
  const expression = new RegExp(pattern, 'u');
  return when(
    isString,
    unless((value) => expression.test(value as string), `pattern ${pattern}`),
  );
};

const formats: Rule = ({ format }) => {
  const expression = FORMATS[String(format)];
  if (expression === undefined) return undefined;
  return when(
    isString,
    unless((value) => expression.test(value as string), `format ${String(format)}`),
  );
};

const bounds: Rule = ({ minimum = -Infinity, maximum = Infinity }) => {
  const [min, max] = [minimum as number, maximum as number];
  if (min === -Infinity && max === Infinity) return undefined;
  return when(
    isNumber,
    unless((value) => (value as number) >= min && (value as number) <= max, `${min} to ${max}`),
  );
};

const elements: Rule = ({ items, minItems = 0, maxItems = Infinity }, { check }) => {
  const element = items === undefined ? undefined : check(items as Schema);
  const [min, max] = [minItems as number, maxItems as number];
  if (element === undefined && min === 0 && max === Infinity) return undefined;
  const counted = unless((value) => {
    const { length } = value as readonly unknown[];
    return length >= min && length <= max;
  }, `${min} to ${max} elements`);
  return when(Array.isArray, (value, path) => {
    const each = (value as readonly unknown[]).flatMap((one, index) => element?.(one, `${path}[${index}]`) ?? FITS);
    return [...counted(value, path), ...each];
  });
};

const fields: Rule = (schema, { check, closed }) => {
  const { properties, required = [], additionalProperties } = schema;
  const others = typeof additionalProperties === 'object' ? check(additionalProperties as Schema) : undefined;
  const isClosed = additionalProperties === false || (closed && properties !== undefined && others === undefined);
  const known = new Map(Object.entries((properties ?? {}) as Record<string, Schema>).map(([n, s]) => [n, check(s)]));
  const needed = required as readonly string[];
  return when(isObject, (value, path) => {
    const object = value as Readonly<Record<string, unknown>>;
    const problems = needed.filter((name) => !(name in object)).map((name) => `${path}.${name}: is missing`);
    for (const [name, child] of Object.entries(object)) {
      const own = known.get(name) ?? others;
      if (own !== undefined) problems.push(...own(child, `${path}.${name}`));
      else if (isClosed) problems.push(`${path}.${name}: is not in the schema`);
    }
    return problems;
  });
};

/** Checks a value of the right type. */
const RULES: readonly Rule[] = [
  oneOfValues,
  constant,
  allOfSchemas,
  someOfSchemas,
  lengths,
  patterns,
  formats,
  bounds,
  elements,
  fields,
];

const KEYWORDS = new Set(
  [
    ['$ref', 'type', 'enum', 'const', 'anyOf', 'oneOf', 'allOf', 'properties', 'required', 'additionalProperties'],
    [
      'items',
      'propertyNames',
      'minimum',
      'maximum',
      'minLength',
      'maxLength',
      'minItems',
      'maxItems',
      'pattern',
      'format',
    ],
    ['default', 'description', 'readOnly', 'writeOnly', 'examples'],
  ].flat(),
);

const read = (schema: Schema, reader: Reader): Check => {
  const unknown = Object.keys(schema).filter((keyword) => !KEYWORDS.has(keyword));
  if (unknown.length > 0) {
    return (_value, path) => [`${path}: the schema has ${unknown.join(', ')}, which this reader does not know`];
  }
  const { $ref } = schema;
  if (typeof $ref === 'string') {
    const target = reader.document.components.schemas[$ref.replace('#/components/schemas/', '')];
    if (target === undefined) return (_value, path) => [`${path}: no component ${$ref}`];
    // Read when it is needed: a schema may lead back to itself.
    return (value, path) => reader.check(target)(value, path);
  }
  const type = ofType(schema, reader);
  const rest = joined(RULES.flatMap((rule) => rule(schema, reader) ?? []));
  if (type === undefined) return rest;
  return (value, path) => {
    const wrong = type(value, path);
    return wrong.length > 0 ? wrong : rest(value, path);
  };
};

const readerOf = (document: Document, closed: boolean): Reader => {
  const made = new WeakMap<Schema, Check>();
  const reader: Reader = {
    document,
    closed,
    check: (schema) => {
      const known = made.get(schema) ?? read(schema, reader);
      made.set(schema, known);
      return known;
    },
  };
  return reader;
};

const readers = { open: new WeakMap<Document, Reader>(), closed: new WeakMap<Document, Reader>() };

export interface ViolationOptions {
  /** Fields that a schema of an object does not name are violations, too, unless it says what they may be. */
  readonly closed: boolean;
}

/** Where `value` does not fit `schema`: `path: what was expected`; empty when it fits. Each schema of a document is read once. */
export const violations = (
  document: Document,
  schema: Schema,
  value: unknown,
  { closed }: ViolationOptions,
): readonly string[] => {
  const known = readers[closed ? 'closed' : 'open'];
  const reader = known.get(document) ?? readerOf(document, closed);
  known.set(document, reader);
  return reader.check(schema)(value, '$');
};

/** A reader of JSON Schema 2020-12 of its own, for what the documents of the apps use; it knows nothing of how they are made. */
import type { OpenApiDocument } from '../openapi/document.js';

type Schema = Readonly<Record<string, unknown>>;

const KEYWORDS = new Set(
  [
    [
      '$ref',
      'type',
      'enum',
      'const',
      'anyOf',
      'oneOf',
      'allOf',
      'properties',
      'required',
      'additionalProperties',
      'items',
    ],
    ['propertyNames', 'minimum', 'maximum', 'minLength', 'maxLength', 'minItems', 'pattern', 'format'],
    ['default', 'description'],
  ].flat(),
);

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

export interface ViolationOptions {
  /** Fields that a schema of an object does not name are violations, too, unless it says what they may be. */
  readonly closed: boolean;
}

/** Where `value` does not fit `schema`: `path: what was expected`; empty when it fits. */
export const violations = (
  document: Pick<OpenApiDocument, 'components'>,
  schema: Schema,
  value: unknown,
  { closed }: ViolationOptions,
  path = '$',
): readonly string[] => {
  const unknown = Object.keys(schema).filter((keyword) => !KEYWORDS.has(keyword));
  if (unknown.length > 0) return [`${path}: the schema has ${unknown.join(', ')}, which this reader does not know`];
  const into = (child: Schema, at: unknown, where: string): readonly string[] =>
    violations(document, child, at, { closed }, where);
  const complain = (isWrong: boolean, expected: string): readonly string[] =>
    isWrong ? [`${path}: expected ${expected}, got ${JSON.stringify(value)}`] : [];

  const { $ref, type, enum: values, anyOf, oneOf, allOf, pattern, format } = schema;
  if (typeof $ref === 'string') {
    const target = document.components.schemas[$ref.replace('#/components/schemas/', '')];
    return target === undefined ? [`${path}: no component ${$ref}`] : into(target, value, path);
  }
  const kind = typeOf(value);
  const allowed = type === undefined ? undefined : ([type].flat() as unknown[] as string[]);
  const fits = allowed === undefined || allowed.includes(kind) || (kind === 'integer' && allowed.includes('number'));
  if (!fits) return complain(true, `type ${allowed.join(' or ')}`);
  const problems = [
    ...complain(Array.isArray(values) && !values.includes(value), `one of ${JSON.stringify(values)}`),
    ...complain('const' in schema && schema['const'] !== value, JSON.stringify(schema['const'])),
    ...((allOf ?? []) as Schema[]).flatMap((one) => into(one, value, path)),
  ];
  const choices = (anyOf ?? oneOf) as Schema[] | undefined;
  if (choices !== undefined) {
    const tried = choices.map((one) => into(one, value, path));
    if (!tried.some((found) => found.length === 0)) problems.push(...tried.flat());
  }
  if (typeof value === 'string') {
    const { minLength = 0, maxLength = Infinity } = schema as {
      readonly minLength?: number;
      readonly maxLength?: number;
    };
    problems.push(
      ...complain(value.length < minLength || value.length > maxLength, `${minLength} to ${maxLength} characters`),
      ...complain(typeof pattern === 'string' && !new RegExp(pattern, 'u').test(value), `pattern ${String(pattern)}`),
      ...complain(typeof format === 'string' && FORMATS[format]?.test(value) === false, `format ${String(format)}`),
    );
  }
  if (typeof value === 'number') {
    const { minimum = -Infinity, maximum = Infinity } = schema as {
      readonly minimum?: number;
      readonly maximum?: number;
    };
    problems.push(...complain(value < minimum || value > maximum, `${minimum} to ${maximum}`));
  }
  if (Array.isArray(value)) {
    const { items = {}, minItems = 0 } = schema as { readonly items?: Schema; readonly minItems?: number };
    problems.push(
      ...complain(value.length < minItems, `${minItems} elements or more`),
      ...value.flatMap((one: unknown, index) => into(items, one, `${path}[${index}]`)),
    );
  } else if (typeof value === 'object' && value !== null) {
    const {
      properties,
      required = [],
      additionalProperties,
    } = schema as {
      readonly properties?: Readonly<Record<string, Schema>>;
      readonly required?: readonly string[];
      readonly additionalProperties?: boolean | Schema;
    };
    const others = typeof additionalProperties === 'object' ? additionalProperties : undefined;
    const isClosed = additionalProperties === false || (closed && properties !== undefined && others === undefined);
    problems.push(...required.filter((name) => !(name in value)).map((name) => `${path}.${name}: is missing`));
    for (const [name, child] of Object.entries(value)) {
      const known = properties?.[name] ?? others;
      if (known !== undefined) problems.push(...into(known, child, `${path}.${name}`));
      else if (isClosed) problems.push(`${path}.${name}: is not in the schema`);
    }
  }
  return problems;
};

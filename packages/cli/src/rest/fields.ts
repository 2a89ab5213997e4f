/** `name=value` of a command line as a JSON body, with the types that the OpenAPI document of the service gives. */
import { usageError } from '../frame/exit-codes.js';

/** As much of a JSON schema as tells types. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly description?: string;
}

interface Document {
  readonly paths?: Readonly<
    Record<
      string,
      Readonly<
        Record<
          string,
          { readonly requestBody?: { readonly content?: Readonly<Record<string, { readonly schema?: Schema }>> } }
        >
      >
    >
  >;
}

const resolveRef = (document: object, schema: Schema): Schema => {
  if (schema.$ref === undefined) return schema;
  const found = schema.$ref
    .split('/')
    .slice(1)
    .reduce<unknown>((part, name) => (part as Readonly<Record<string, unknown>> | undefined)?.[name], document);
  return found ?? {};
};

/** Alternatives of a schema, references followed. */
const alternatives = (document: object, schema: Schema, depth = 0): readonly Schema[] => {
  const own = resolveRef(document, schema);
  const inner = [...(own.anyOf ?? []), ...(own.oneOf ?? []), ...(own.allOf ?? [])];
  if (inner.length === 0 || depth > 5) return [own];
  return [own, ...inner.flatMap((one) => alternatives(document, one, depth + 1))];
};

/** Fields that a request may have. @param path as the document names it, `/api/v1/servers/{id}` */
export const bodyFields = (
  document: object,
  method: string,
  path: string,
): Readonly<Record<string, readonly Schema[]>> => {
  const operation = (document as Document).paths?.[path]?.[method.toLowerCase()];
  const schema = operation?.requestBody?.content?.['application/json']?.schema;
  if (schema === undefined) return {};
  const fields = alternatives(document, schema).flatMap(({ properties = {} }) => Object.entries(properties));
  return Object.fromEntries(fields.map(([name, field]) => [name, alternatives(document, field)]));
};

const typesOf = (schemas: readonly Schema[]): ReadonlySet<string> =>
  new Set(
    schemas.flatMap(({ type, enum: values = [] }) => [
      ...(typeof type === 'string' ? [type] : (type ?? [])),
      ...values.map((value) => typeof value),
    ]),
  );

const convert = (name: string, text: string, schemas: readonly Schema[]): unknown => {
  const types = typesOf(schemas);
  if (text === 'null' && types.has('null')) return null;
  if (types.has('boolean') && /^(?:true|false)$/.test(text)) return text === 'true';
  if ((types.has('integer') || types.has('number')) && /^-?\d+(?:\.\d+)?$/.test(text)) return Number(text);
  if (types.has('string')) return text;
  if (types.has('array')) return text === '' ? [] : text.split(',').map((one) => one.trim());
  if (types.has('object')) return parseJson(name, text);
  // The service says what it expects.
  return text;
};

const parseJson = (name: string, text: string): unknown => {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw usageError(`${name}: expected JSON, got ${JSON.stringify(text)}`);
  }
};

/** Splits `name=value`, `name:=json`. @throws CliError usage */
export const splitPair = (
  pair: string,
): { readonly name: string; readonly value: string; readonly isJson: boolean } => {
  const [, name, colon, value] = /^([A-Za-z][\w.-]*)(:?)=(.*)$/s.exec(pair) ?? [];
  if (name === undefined || value === undefined)
    throw usageError(`expected name=value, got ${JSON.stringify(pair)} (name:=value takes JSON)`);
  return { name, value, isJson: colon === ':' };
};

/** @throws CliError usage naming a field that the service does not have */
export const bodyFrom = (
  pairs: readonly string[],
  fields: Readonly<Record<string, readonly Schema[]>>,
): Readonly<Record<string, unknown>> => {
  const known = Object.keys(fields);
  return Object.fromEntries(
    pairs.map((pair) => {
      const { name, value, isJson } = splitPair(pair);
      if (known.length > 0 && fields[name] === undefined)
        throw usageError(`there is no field ${name}; there are: ${known.join(', ')}`);
      return [name, isJson ? parseJson(name, value) : convert(name, value, fields[name] ?? [])];
    }),
  );
};

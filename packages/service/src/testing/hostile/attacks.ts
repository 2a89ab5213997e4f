/** Requests that an operation must refuse, or survive: made from what its document says that it takes. */
import { gzipSync } from 'node:zlib';

import fc from 'fast-check';

import type { OpenApiDocument, OperationObject } from '../../openapi/document.js';
import type { JsonSchema } from '../../openapi/json-schema.js';
import { violations } from '../json-schema.js';
import { resolveIn } from '../openapi.js';
import { brokenJson, contentType, hostileSegment, hostileValue, noObject, unknownName, wellFormed } from './values.js';

export interface Attack {
  /** The fault that it has. */
  readonly what: string;
  readonly method: string;
  /** Path and query as they go over the line. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Buffer;
  /** The answer must be one of these. Default: anything but a fault of the service. */
  readonly statuses?: readonly number[];
  /** A refusal must name one of these fields. */
  readonly fields?: readonly string[];
}

/** One operation, with a request that it would take. */
export interface Target {
  readonly document: OpenApiDocument;
  readonly method: string;
  readonly template: string;
  readonly operation: OperationObject;
  /** Whether it takes any field in its query. */
  readonly anyQuery: boolean;
  readonly params: Readonly<Record<string, string>>;
  readonly body: object | undefined;
  /** `http.max-body`. */
  readonly maxBody: number;
}

const JSON_TYPE = 'application/json';
const JSON_HEADERS = { 'Content-Type': JSON_TYPE };

const pathWith = (template: string, params: Readonly<Record<string, string>>): string =>
  template.replace(/\{(\w+)\}/g, (_, name: string) => params[name] ?? '0');

const parametersOf = (template: string): readonly string[] =>
  [...template.matchAll(/\{(\w+)\}/g)].map(([, name]) => name as string);

const encoded = (params: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(params).map(([name, value]) => [name, encodeURIComponent(value)]));

/** The text of an object of JSON; unlike `JSON.stringify` it takes values that are texts already, and any name. */
const objectText = (fields: readonly (readonly [name: string, json: string])[]): string =>
  `{${fields.map(([name, json]) => `${JSON.stringify(name)}:${json}`).join(',')}}`;

/** The names that a refusal may call a field by: its own, and the one that it is another name of. */
const namesOf = (name: string, schema: JsonSchema | undefined): readonly string[] => {
  const of = /^Another \w+ of `(\w+)`/.exec(schema?.description ?? '')?.[1];
  return of === undefined ? [name] : [name, of];
};

type Make = fc.Arbitrary<Attack>;

/** The attacks on one operation. */
export const attacksOn = (target: Target): readonly Make[] => {
  const made = [...onBody(target), ...onQuery(target), ...onPath(target), ...onHeaders(target)];
  const unknown = parametersOf(target.template).filter((name) => target.params[name] === undefined);
  if (unknown.length === 0) return made;
  // The path may be at fault before what the attack is about.
  return made.map((one) =>
    one.map((attack) => (attack.fields === undefined ? attack : { ...attack, fields: [...attack.fields, ...unknown] })),
  );
};

const base = ({ method, template, params, body }: Target): Attack => ({
  what: 'nothing',
  method,
  target: pathWith(template, encoded(params)),
  headers: body === undefined ? {} : JSON_HEADERS,
  ...(body === undefined ? {} : { body: Buffer.from(JSON.stringify(body)) }),
});

const onBody = (target: Target): readonly Make[] => {
  const { document, operation, body, maxBody } = target;
  const media = operation.requestBody?.content[JSON_TYPE];
  const plain = base(target);
  const takesOthers = Object.keys(operation.requestBody?.content ?? {}).some((type) => type !== JSON_TYPE);
  const refusedType = takesOthers ? [400, 404, 409, 415, 422] : [400, 415];
  if (media === undefined || body === undefined) {
    if (operation.requestBody !== undefined || target.method === 'GET') return [];
    const none = fc.tuple(contentType, fc.constantFrom('xxxx', '{"a":1}')).map(([type, text]): Attack => ({
      ...{ ...plain, what: 'a body where none is taken' },
      headers: { 'Content-Type': type },
      ...{ body: Buffer.from(text), statuses: [400, 415] },
    }));
    return [none];
  }
  const schema = resolveIn(document, media.schema);
  const { properties = {}, required = [] } = schema;
  const names = Object.keys(properties);
  const texts = Object.entries(body).map(([name, value]) => [name, JSON.stringify(value)] as const);
  const without = (name: string) => texts.filter(([one]) => one !== name);
  const json = (text: string, more: Omit<Partial<Attack>, 'body'> & { readonly what: string }): Attack => ({
    ...{ ...plain, headers: JSON_HEADERS, body: Buffer.from(text) },
    ...more,
  });
  const wrongValue = fc.tuple(fc.constantFrom(...names), hostileValue).map(([name, value]) => {
    const wrong = violations(document, properties[name] ?? {}, JSON.parse(value), { closed: true }).length > 0;
    return json(objectText([...without(name), [name, value]]), {
      what: `${wrong ? 'a wrong' : 'a strange'} value of ${name}`,
      ...(wrong ? { statuses: [400], fields: namesOf(name, properties[name]) } : {}),
    });
  });
  const unknown = fc.tuple(unknownName, hostileValue).map(([name, value]) =>
    names.includes(name)
      ? plain
      : json(objectText([...texts, [name, value]]), {
          what: 'an unknown field',
          statuses: [400],
          fields: [name === '' ? '""' : name],
        }),
  );
  const missing = required.map((name) =>
    fc.constant(
      json(objectText(without(name)), {
        ...{ what: `${name} is missing`, statuses: [400], fields: namesOf(name, properties[name]) },
      }),
    ),
  );
  const whole: readonly Make[] = [
    brokenJson.map((bytes) => ({
      ...json('', { what: 'broken JSON', statuses: [400], fields: ['(body)'] }),
      body: bytes,
    })),
    noObject.map((text) => json(text, { what: 'no object', statuses: [400], fields: ['(body)'] })),
    fc.constant(
      json(objectText(Array.from({ length: 5_000 }, (_, index) => [`n${index}`, '1'])), {
        ...{ what: 'thousands of unknown fields', statuses: [400], fields: ['n0'] },
      }),
    ),
    fc.constant({ ...plain, headers: {}, body: Buffer.alloc(0), what: 'no body', statuses: refusedType }),
    fc.constant(json('', { what: 'an empty body' })),
    contentType.map((type) => ({
      ...{ ...plain, what: 'another content type', headers: { 'Content-Type': type } },
      ...(type.startsWith(JSON_TYPE) && !type.startsWith(`${JSON_TYPE}x`) ? {} : { statuses: refusedType }),
    })),
    fc.constantFrom('gzip', 'deflate', 'br', 'zstd', 'x'.repeat(100)).map((encoding) =>
      json('{"a":', {
        what: `an encoding that it is not in: ${encoding.slice(0, 10)}`,
        headers: { ...JSON_HEADERS, 'Content-Encoding': encoding },
        statuses: [400, 415],
      }),
    ),
    fc.constant({
      ...json('', { what: 'more than it may be, once unpacked', statuses: [413] }),
      headers: { ...JSON_HEADERS, 'Content-Encoding': 'gzip' },
      body: gzipSync(Buffer.alloc(maxBody + 1, 0x20)),
    }),
    fc.constant({
      ...json('', { what: 'more than it may be', statuses: [413] }),
      body: Buffer.alloc(maxBody + 1, 0x20),
    }),
  ];
  return [
    ...(names.length === 0 ? [] : [wrongValue, wrongValue, wrongValue, wrongValue]),
    unknown,
    ...(missing.length === 0 ? [] : [fc.oneof(...missing)]),
    ...whole,
  ];
};

/** Whether a text of a query can be what a schema wants, as far as its type tells. */
const mayBe = ({ type, enum: values }: JsonSchema, text: string): boolean => {
  if (Array.isArray(values)) return values.some((value) => String(value) === text);
  if (type === 'integer' || type === 'number') return /^[\s+-]*[\d.]/.test(text);
  return type !== 'boolean' || text === 'true' || text === 'false';
};

const decoded = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
};

const onQuery = (target: Target): readonly Make[] => {
  const { operation, anyQuery } = target;
  const plain = base(target);
  const query = (operation.parameters ?? []).filter((one) => one.in === 'query');
  const uploads = Object.keys(operation.requestBody?.content ?? {}).some((type) => type !== JSON_TYPE);
  const all = query.filter(({ description = '' }) => !description.startsWith('With a body of'));
  const unknown = fc.tuple(unknownName, hostileSegment).map(([name, value]): Attack => {
    const given = wellFormed(name);
    const isKnown = query.some((one) => one.name === given);
    return {
      ...{ ...plain, what: 'an unknown parameter', target: `${plain.target}?${encodeURIComponent(given)}=${value}` },
      // `?=1` gives nothing a name.
      ...(anyQuery || isKnown || given === '' ? {} : { statuses: [400], fields: [given] }),
    };
  });
  if (all.length === 0) return [unknown];
  const wrong = fc.tuple(fc.constantFrom(...all), hostileSegment).map(([{ name, schema }, value]): Attack => {
    const text = decoded(value);
    return {
      ...{ ...plain, what: `a strange value of ?${name}`, target: `${plain.target}?${name}=${value}` },
      ...(text === undefined || mayBe(schema, text) ? {} : { statuses: [400], fields: [name] }),
    };
  });
  const twice = fc.constantFrom(...all).map(({ name }): Attack => ({
    ...{ ...plain, what: `?${name} twice`, target: `${plain.target}?${name}=1&${name}=2` },
    ...{ statuses: [400], fields: [name] },
  }));
  const nested = fc.constantFrom(...all).map(({ name }): Attack => ({
    ...{ ...plain, what: `?${name}[a]`, target: `${plain.target}?${name}%5Ba%5D=1&${name}[]=2` },
    ...(uploads ? {} : { statuses: [400], fields: [`${name}[a]`] }),
  }));
  return [unknown, wrong, wrong, twice, nested];
};

const onPath = (target: Target): readonly Make[] => {
  const { template, params } = target;
  const plain = base(target);
  const names = parametersOf(template);
  if (names.length === 0) return [];
  return [
    fc.tuple(fc.constantFrom(...names), hostileSegment).map(([name, segment]): Attack => ({
      ...{ ...plain, what: `a strange ${name} in the path` },
      target: pathWith(template, { ...encoded(params), [name]: segment }),
    })),
  ];
};

const STRANGE_METHODS = ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE', 'PROPFIND', 'PURGE'] as const;

const onHeaders = (target: Target): readonly Make[] => {
  const { document, template, operation } = target;
  const plain = base(target);
  const there = Object.keys(document.paths[template] ?? {}).map((method) => method.toUpperCase());
  const method = fc
    .constantFrom(...STRANGE_METHODS.filter((one) => !there.includes(one)))
    .map((one): Attack => ({ ...plain, what: 'another method', method: one, statuses: [405] }));
  const own = (operation.parameters ?? []).filter((one) => one.in === 'header').map(({ name }) => name);
  const headers = fc
    .tuple(
      fc.constantFrom('Accept', 'Accept-Encoding', 'Prefer', 'Range', 'Idempotency-Key', 'X-Request-Id', ...own),
      fc.constantFrom('', '*', ',', 'wait=-1', 'wait=1e99', 'bytes=9-1', 'a;q=x', '\u00ff', 'x'.repeat(3_000)),
    )
    .map(([name, value]): Attack => ({
      ...{ ...plain, what: `a strange ${name}`, headers: { ...plain.headers, [name]: value } },
    }));
  return [method, headers];
};

import type { Request, Response } from 'express';
import { z } from 'zod';

import { nearest } from '../config/nearest.js';
import { ApiError, validation } from '../errors.js';
import type { FieldError } from '../errors.js';
import type { Endpoint, Operation } from './routes.js';
import { words } from './words.js';

type Part = 'body' | 'query' | 'params';

type PartOf<S extends Operation, P extends Part> = S[P] extends z.ZodType ? z.output<S[P]> : undefined;

/** Arguments of the handler of an endpoint: the checked parts, `undefined` where there is no schema. */
export interface EndpointInput<S extends Operation> {
  readonly params: PartOf<S, 'params'>;
  readonly query: PartOf<S, 'query'>;
  readonly body: PartOf<S, 'body'>;
  readonly req: Request;
  readonly res: Response;
}

const MAX_DETAILS = 50;

/** `records[0].length`, as a JavaScript programmer writes it; `(body)` for the whole. */
const fieldPath = (path: readonly PropertyKey[], part: Part): string => {
  if (path.length === 0) return `(${part})`;
  return path.reduce<string>((text, step) => {
    if (typeof step === 'number') return `${text}[${step}]`;
    // A name without a character would not be seen.
    const name = step === '' ? '""' : String(step);
    return text === '' ? name : `${text}.${name}`;
  }, '');
};

/** A slip of the pen: one letter in three. */
const slipsIn = (name: string): number => Math.floor(name.length / 3);

const unknownField = (name: string, known: readonly string[]): string => {
  const meant = nearest(name, known, slipsIn(name));
  return meant === undefined ? 'unknown field' : `unknown field: did you mean ${meant}?`;
};

/** @param known the fields of the whole, where it has any */
const fieldErrors = (
  issues: readonly z.core.$ZodIssue[],
  part: Part,
  known: readonly string[],
): readonly FieldError[] =>
  issues.flatMap((issue) => {
    if (issue.code === 'unrecognized_keys') {
      // Who sends a thousand names gets no thousand comparisons.
      return issue.keys.slice(0, MAX_DETAILS).map((key) => ({
        field: fieldPath([...issue.path, key], part),
        message: unknownField(key, issue.path.length === 0 ? known : []),
      }));
    }
    return [{ field: fieldPath(issue.path, part), message: messageOf(issue, part) }];
  });

/** Codes of a value as a whole: without one, it is missing, whatever else the schema says of it. */
const OF_THE_VALUE: ReadonlySet<string> = new Set(['invalid_type', 'invalid_value', 'invalid_union']);

/** As those that a query may choose from are written. */
const ONE_WORD = /^[A-Za-z][A-Za-z-]{0,19}$/;

const messageOf = ({ code, input, message }: z.core.$ZodIssue, part: Part): string => {
  if (!OF_THE_VALUE.has(code)) return message;
  if (part === 'query' && Array.isArray(input)) return `expected once, got ${input.length} times`;
  // A word in an address is no secret; a text that no list of words has may be.
  if (part === 'query' && code === 'invalid_value' && typeof input === 'string' && ONE_WORD.test(input)) {
    return `${message}, got ${input}`;
  }
  return input !== undefined || message === 'required' ? message : `required: ${message}`;
};

/** The fields that a schema names. */
const knownIn = (schema: z.ZodType): readonly string[] =>
  schema instanceof z.ZodObject ? Object.keys(schema.shape) : [];

/**
 * The value that `schema` makes of one part of a request.
 * @throws {ApiError} VALIDATION_ERROR naming every field at fault (the first 50), unknown ones included: use `z.strictObject`.
 */
export const check = <T>(schema: z.ZodType<T>, value: unknown, part: Part): T => {
  const result = schema.safeParse(value, { error: words, reportInput: true });
  if (result.success) return result.data;
  throw validation(
    fieldErrors(result.error.issues, part, knownIn(schema)).slice(0, MAX_DETAILS),
    `The ${part === 'params' ? 'path' : part} of the request is not valid`,
  );
};

const hasBody = (req: Request): boolean =>
  req.headers['transfer-encoding'] !== undefined || Number(req.headers['content-length'] ?? 0) > 0;

const bodyOf = (req: Request): unknown => {
  const body: unknown = req.body;
  if (body !== undefined) return body;
  if (!hasBody(req)) throw validation([{ field: '(body)', message: 'expected a JSON object, got nothing' }]);
  const got = req.headers['content-type'] ?? 'none';
  throw new ApiError('UNSUPPORTED_MEDIA_TYPE', `Expected Content-Type application/json, got ${got}`);
};

/** Who sends something believes that it does something. */
const expectNothing = (req: Request): void => {
  if (req.body !== undefined) check(NOTHING, req.body, 'body');
  else if (req.method !== 'GET' && req.method !== 'HEAD' && hasBody(req)) {
    const got = req.headers['content-type'] ?? 'none';
    throw new ApiError('UNSUPPORTED_MEDIA_TYPE', `Expected no body, got one of Content-Type ${got.slice(0, 100)}`);
  }
};

/** The query of probes and of what scrapers and browsers ask for: they may add to it what they like. */
export const ANY_QUERY = z.looseObject({});
/** A query or body that is not asked for: whoever gives a field believes that it does something. */
const NOTHING = z.strictObject({});

/**
 * A handler that first checks the parts of the request that have a schema, with what the document says of it.
 * An error of the handler reaches the error middleware.
 */
export const endpoint = <S extends Operation>(
  operation: S,
  handle: (input: EndpointInput<S>) => unknown,
): Endpoint => ({
  operation,
  handle: async (req, res) => {
    const { params, query = NOTHING, body, upload, form, media } = operation;
    // A file as the body is read by who handles it.
    if ([body, upload, form, media].every((one) => one === undefined)) expectNothing(req);
    const input = {
      params: params && check(params, req.params, 'params'),
      query: check(query, req.query, 'query'),
      body: body && check(body, bodyOf(req), 'body'),
      req,
      res,
    };
    await handle(input as EndpointInput<S>);
  },
});

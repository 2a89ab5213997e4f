import { STATUS_CODES } from 'node:http';

import type { z } from 'zod';

import type { Answer, MediaAnswer, Method, MountedOperation, Operation } from '../http/routes.js';
import type { Role } from '../auth/roles.js';
import { errorBody } from '../http/error-body.js';
import { roleOf } from '../http/routes.js';
import { COMMON_ANSWERS, commonAnswersOf } from './common-answers.js';
import type { CommonAnswer } from './common-answers.js';
import { Examples } from './examples.js';
import { jsonSchemaOf, resolveSchema } from './json-schema.js';
import type { Components, JsonSchema } from './json-schema.js';

export interface ParameterObject {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required: boolean;
  readonly description?: string;
  readonly schema: JsonSchema;
}

interface Medium {
  readonly schema: JsonSchema;
  readonly example?: unknown;
}

type Content = Readonly<Record<string, Medium>>;

export interface ResponseObject {
  readonly description: string;
  readonly content?: Content;
}

export interface OperationObject {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description?: string;
  /** Empty: open to everybody. Absent: as the whole document says. */
  readonly security?: readonly never[];
  /** Least role of who may call it. */
  readonly 'x-role'?: Role;
  readonly parameters?: readonly ParameterObject[];
  readonly requestBody?: { readonly required: true; readonly content: Content };
  readonly responses: Readonly<Record<string, ResponseObject | { readonly $ref: string }>>;
}

/** An OpenAPI 3.1 document, as far as this package makes use of it. */
export interface OpenApiDocument {
  readonly openapi: '3.1.0';
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  readonly servers: readonly { readonly url: string }[];
  readonly security: readonly Readonly<Record<string, readonly []>>[];
  readonly tags: readonly { readonly name: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, OperationObject>>>>;
  readonly components: {
    readonly securitySchemes: Readonly<Record<string, Readonly<Record<string, string>>>>;
    readonly schemas: Readonly<Record<string, JsonSchema>>;
    readonly responses: Readonly<Record<string, ResponseObject>>;
  };
}

const JSON_TYPE = 'application/json';
const FILE_TYPE = 'application/octet-stream';
const FORM_TYPE = 'multipart/form-data';
/** Path in front of the name of a resource. */
const PREFIXES: ReadonlySet<string> = new Set(['api', 'v1', 'config']);

/** `/api/v1/servers/:serverId` as OpenAPI writes it. */
const templateOf = (path: string): string => path.replace(/:(\w+)/g, '{$1}');

const tagOf = (path: string): string => path.split('/').find((step) => step !== '' && !PREFIXES.has(step)) ?? 'root';

/** `GET /api/v1/servers/:serverId/status` → `getApiV1ServersByServerIdStatus`: the path says it, and no two have the same. */
const idOf = (method: string, path: string): string =>
  method +
  path
    .replace(/:(\w)/g, (_, first: string) => `by-${first}`)
    .replace(/(?:^|[^A-Za-z0-9]+)([A-Za-z0-9])/g, (_, first: string) => first.toUpperCase());

const isSchema = (answer: Answer): answer is z.ZodType => typeof answer === 'object' && '_zod' in answer;

class DocumentBuilder {
  readonly components: Components = new Map();
  readonly #examples = new Examples(this.components);
  readonly #used = new Set<CommonAnswer>();
  /** Many operations have the same ones, and to read one takes a millisecond. */
  readonly #read = { input: new Map<z.ZodType, JsonSchema>(), output: new Map<z.ZodType, JsonSchema>() };

  operation({ method, path, aliasOf, operation }: MountedOperation): OperationObject {
    const { summary, description, access, body, upload, form, media } = operation;
    const words = [aliasOf === undefined ? undefined : `Another name of ${templateOf(aliasOf)}.`, description];
    const said = words.filter((text) => text !== undefined).join(' ');
    const parameters = this.#parameters(operation);
    const content: Content = {
      ...(body === undefined ? {} : this.#shown(body, 'input')),
      ...(upload === undefined ? {} : { [FILE_TYPE]: { schema: {} }, [FORM_TYPE]: { schema: this.#form(upload) } }),
      ...(form === undefined ? {} : { [FORM_TYPE]: { schema: this.#form(form) } }),
      ...(media === undefined ? {} : { [media]: { schema: {} } }),
    };
    return {
      operationId: idOf(method, path),
      tags: [tagOf(aliasOf ?? path)],
      summary,
      ...(said === '' ? {} : { description: said }),
      ...(access === 'open' ? { security: [] } : { 'x-role': roleOf(method, operation) }),
      ...(parameters.length === 0 ? {} : { parameters }),
      ...(Object.keys(content).length === 0 ? {} : { requestBody: { required: true, content } }),
      responses: this.#responses(method, operation),
    };
  }

  /** Those that were referred to. */
  get responses(): Readonly<Record<string, ResponseObject>> {
    return Object.fromEntries(
      (Object.keys(COMMON_ANSWERS) as CommonAnswer[])
        .filter((name) => this.#used.has(name))
        .map((name) => {
          const [, description, schema] = COMMON_ANSWERS[name];
          return [name, { description, content: this.#json(schema) }];
        }),
    );
  }

  #schema(schema: z.ZodType, io: 'input' | 'output'): JsonSchema {
    const known = this.#read[io].get(schema);
    if (known !== undefined) return known;
    const made = jsonSchemaOf(schema, io, this.components);
    this.#read[io].set(schema, made);
    return made;
  }

  #json(schema: z.ZodType): Content {
    return { [JSON_TYPE]: { schema: this.#schema(schema, 'output') } };
  }

  /** JSON with an example. */
  #shown(whole: z.ZodType, io: 'input' | 'output'): Content {
    const schema = this.#schema(whole, io);
    const example = this.#examples.of(schema);
    return { [JSON_TYPE]: { schema, ...(example === undefined ? {} : { example }) } };
  }

  /** The named schemas, by name; an example of one is whole. */
  get schemas(): Readonly<Record<string, JsonSchema>> {
    const sorted = [...this.components].sort(([a], [b]) => (a < b ? -1 : 1));
    return Object.fromEntries(
      sorted.map(([name, schema]) => [
        name,
        schema['examples'] === undefined ? schema : { ...schema, examples: [this.#examples.of(schema)] },
      ]),
    );
  }

  #parameters({ params, query, upload, headers = {} }: Operation): readonly ParameterObject[] {
    const ofJson = query === undefined ? [] : this.#fields(query, 'query');
    const names = new Set(ofJson.map(({ name }) => name));
    const ofUpload = upload === undefined ? [] : this.#fields(upload, 'query').filter(({ name }) => !names.has(name));
    return [
      ...(params === undefined ? [] : this.#fields(params, 'path')),
      ...ofJson,
      ...ofUpload.map((one) => ({
        ...one,
        required: false,
        description: `With a body of ${FILE_TYPE}. ${one.description ?? ''}`.trim(),
      })),
      ...Object.entries(headers).map(([name, description]): ParameterObject => ({
        name,
        in: 'header',
        required: false,
        description,
        schema: { type: 'string' },
      })),
    ];
  }

  /** The fields, and the file behind them. */
  #form(upload: z.ZodType): JsonSchema {
    const fields = resolveSchema(this.#schema(upload, 'input'), this.components);
    const file = { type: 'string', format: 'binary', description: 'The last part.' };
    return { ...fields, properties: { ...fields.properties, file }, required: [...(fields.required ?? []), 'file'] };
  }

  #fields(schema: z.ZodType, where: 'path' | 'query'): readonly ParameterObject[] {
    const { properties = {}, required = [] } = resolveSchema(this.#schema(schema, 'input'), this.components);
    return Object.entries(properties).map(([name, { description, ...rest }]) => ({
      name,
      in: where,
      required: where === 'path' || required.includes(name),
      ...(description === undefined ? {} : { description }),
      schema: rest,
    }));
  }

  #responses(method: Method, operation: Operation): OperationObject['responses'] {
    const own = Object.entries(operation.answers).map(
      ([status, answer]) => [status, this.#answer(Number(status), answer)] as const,
    );
    const common = commonAnswersOf(method, operation).map((name) => {
      this.#used.add(name);
      return [String(COMMON_ANSWERS[name][0]), { $ref: `#/components/responses/${name}` }] as const;
    });
    // The operation's own answers take precedence.
    return Object.fromEntries<OperationObject['responses'][string]>([...common, ...own]);
  }

  #answer(status: number, answer: Answer): ResponseObject {
    if (isSchema(answer)) {
      const content = status < 400 ? this.#shown(answer, 'output') : this.#json(answer);
      return { description: STATUS_CODES[status] ?? '', content };
    }
    if (typeof answer !== 'string') {
      if (answer.events === undefined) return mediaOf(answer);
      const schema = this.#schema(answer.events, 'output');
      return { description: answer.description, content: { [answer.contentType]: { schema } } };
    }
    return status < 400 ? { description: answer } : { description: answer, content: this.#json(errorBody) };
  }
}

const mediaOf = ({ contentType, description }: MediaAnswer): ResponseObject => ({
  description,
  content: { [contentType]: { schema: contentType.startsWith('text/') ? { type: 'string' } : {} } },
});

const DESCRIPTION = `HTTP Basic with \`admin.username\` and \`admin.password\` or as a user of \`admin.users\`; or X-API-Key. \`x-role\` is the least role of who may call an operation: viewer, operator, admin. Times are ISO 8601 in UTC. Unknown fields of a request are refused.
An answer has \`X-License-Days-Remaining\` in the last 14 days of a license or an evaluation.
A method that a path does not have is answered 405 with Allow.`;

/** The document of what these routes serve. */
export const openApiDocument = (
  { name, version }: { readonly name: string; readonly version: string },
  mounted: readonly MountedOperation[],
): OpenApiDocument => {
  const builder = new DocumentBuilder();
  const paths: Record<string, Record<string, OperationObject>> = {};
  for (const one of mounted) {
    const path = templateOf(one.path);
    paths[path] = { ...paths[path], [one.method]: builder.operation(one) };
  }
  const tags = [...new Set(mounted.map(({ path, aliasOf }) => tagOf(aliasOf ?? path)))];
  const { responses, schemas } = builder;
  return {
    openapi: '3.1.0',
    info: { title: name, version, description: DESCRIPTION },
    servers: [{ url: '/' }],
    security: [{ basic: [] }, { apiKey: [] }],
    tags: tags.map((tag) => ({ name: tag })),
    paths,
    components: {
      securitySchemes: {
        basic: { type: 'http', scheme: 'basic' },
        apiKey: { type: 'apiKey', in: 'header', name: 'X-API-Key' },
      },
      schemas,
      responses,
    },
  };
};

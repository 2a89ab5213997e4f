import type { Express } from 'express';

import type { OpenApiDocument, OperationObject, ResponseObject } from '../openapi/document.js';
import type { JsonSchema } from '../openapi/json-schema.js';
import { violations } from './json-schema.js';

/** As Express keeps them (`router/lib/layer.js`). */
interface Layer {
  /** Mounted at `/`. */
  readonly slash: boolean;
  readonly name: string;
  readonly handle: { readonly stack?: readonly Layer[] };
  readonly route?: { readonly path: string; readonly methods: Readonly<Record<string, boolean>> };
}

/** Every route that Express has, whoever put it there: `GET /api/v1/servers/{serverId}`. */
export const routesOf = (app: Express): readonly string[] => {
  const walk = (stack: readonly Layer[]): string[] =>
    stack.flatMap(({ route, slash, handle, name }) => {
      if (route !== undefined) {
        const path = route.path.replace(/:(\w+)/g, '{$1}');
        const methods = Object.keys(route.methods).filter((method) => !method.startsWith('_'));
        return methods.map((method) => `${method.toUpperCase()} ${path}`);
      }
      // Express forgets the path of a mount: its routes could not be asked.
      if (!slash) throw new Error(`${name} is mounted below a path: mount it at / and give each route its whole path`);
      return walk(handle.stack ?? []);
    });
  return walk((app.router as unknown as { readonly stack: readonly Layer[] }).stack);
};

/** Every operation of a document, named as `routesOf` names routes. */
export const operationsOf = (document: OpenApiDocument): ReadonlyMap<string, OperationObject> =>
  new Map(
    Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => [`${method.toUpperCase()} ${path}`, operation] as const),
    ),
  );

const responseOf = ({ components }: OpenApiDocument, { responses }: OperationObject, status: number) => {
  const response = responses[String(status)];
  if (response === undefined || !('$ref' in response)) return response satisfies ResponseObject | undefined;
  return components.responses[response.$ref.replace('#/components/responses/', '')];
};

/** A schema with its fields in sight: that of a component where it only names one. */
export const resolveIn = ({ components }: OpenApiDocument, schema: JsonSchema): JsonSchema => {
  const { $ref } = schema;
  return typeof $ref === 'string' ? (components.schemas[$ref.replace('#/components/schemas/', '')] ?? {}) : schema;
};

interface Template {
  readonly expression: RegExp;
  readonly methods: Readonly<Record<string, OperationObject>>;
}

const templates = new WeakMap<OpenApiDocument, readonly Template[]>();

/** The paths of a document; of those that fit, Express takes the one with the fewest parameters: that comes first. */
const templatesOf = (document: OpenApiDocument): readonly Template[] => {
  const known = templates.get(document);
  if (known !== undefined) return known;
  const made = Object.entries(document.paths)
    .sort(([a], [b]) => a.split('{').length - b.split('{').length)
    .map(([path, methods]) => ({
      expression: new RegExp(`^${path.replace(/\{\w+\}/g, '[^/]+')}/?$`),
      methods,
    }));
  templates.set(document, made);
  return made;
};

/** The operation that a request is for. */
export const operationFor = (document: OpenApiDocument, method: string, path: string): OperationObject | undefined =>
  templatesOf(document).find(({ expression }) => expression.test(path))?.methods[method.toLowerCase()];

export interface Exchanged {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly status: number;
  readonly contentType: string | undefined;
  /** Undefined: read as bytes. */
  readonly text: string | undefined;
}

/** A call as supertest reports it. */
interface Answered {
  readonly status: number;
  readonly text?: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly request: unknown;
}

export const exchangedOf = ({ status, text, headers, request }: Answered): Exchanged => {
  const { method, url } = request as { readonly method: string; readonly url: string };
  return { method, path: new URL(url).pathname, status, contentType: headers['content-type'], text };
};

/** Answer where the document has no such path or method: an error, with the body of all of them. */
const refusalViolations = (document: OpenApiDocument, { status, text }: Exchanged): readonly string[] => {
  if (status < 400) return ['an answer of success that is not in the document'];
  const schema = document.components.schemas[status === 402 ? 'LicenseRequired' : 'Error'] ?? {};
  return violations(document, schema, JSON.parse(text ?? ''), { closed: true });
};

/** Where an answer is not as the document says. */
export const answerViolations = (document: OpenApiDocument, exchanged: Exchanged): readonly string[] => {
  const { method, path, status, contentType = '', text } = exchanged;
  // Express answers HEAD as it does GET, without the body.
  const isHead = method === 'HEAD';
  const operation = operationFor(document, isHead ? 'GET' : method, path);
  const said = `${method} ${path} → ${status}`;
  if (operation === undefined) {
    return isHead && status >= 400
      ? []
      : refusalViolations(document, exchanged).map((problem) => `${said}: ${problem}`);
  }
  const response = responseOf(document, operation, status);
  if (response === undefined) return [`${said}: the status is not in the document`];
  const [type = ''] = contentType.split(';');
  if (response.content === undefined) return (text ?? '') === '' ? [] : [`${said}: a body that is not in the document`];
  const content = response.content[type] ?? response.content['*/*'];
  if (content === undefined) return [`${said}: ${type || 'no type'} is not in the document`];
  if (isHead || type !== 'application/json') return [];
  return violations(document, content.schema, JSON.parse(text ?? ''), { closed: true }).map(
    (problem) => `${said}: ${problem}`,
  );
};

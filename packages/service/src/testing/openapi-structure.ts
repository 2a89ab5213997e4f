/** Rules of OpenAPI 3.1 for a document, read from the specification and not from the code that makes it. */

type Json = Readonly<Record<string, unknown>>;

const METHODS = new Set(['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace']);
const TYPES = new Set(['null', 'boolean', 'object', 'array', 'number', 'string', 'integer']);
const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const entries = (value: unknown): readonly (readonly [string, Json])[] =>
  isObject(value) ? Object.entries(value).filter((pair): pair is [string, Json] => isObject(pair[1])) : [];

/** Every object in the document, with the path that leads to it. */
const walk = (value: unknown, path = '#'): readonly (readonly [string, Json])[] => {
  if (Array.isArray(value)) return value.flatMap((one, index) => walk(one, `${path}/${index}`));
  if (!isObject(value)) return [];
  return [[path, value], ...Object.entries(value).flatMap(([key, one]) => walk(one, `${path}/${key}`))];
};

const target = (document: Json, reference: string): unknown =>
  reference
    .slice(2)
    .split('/')
    .reduce<unknown>((at, step) => (isObject(at) ? at[step] : undefined), document);

/** In words, what is wrong with the structure of a document; empty when nothing is. */
export const structureProblems = (document: Json): readonly string[] => {
  const problems: string[] = [];
  const expect = (holds: boolean, problem: string): void => {
    if (!holds) problems.push(problem);
  };
  const { openapi, info, paths, components, tags, security } = document;
  expect(/^3\.1\.\d+$/.test(String(openapi)), 'openapi is not 3.1.x');
  expect(
    isObject(info) && typeof info['title'] === 'string' && typeof info['version'] === 'string',
    'info: title, version',
  );
  const { securitySchemes, schemas, responses } = (components ?? {}) as Json;
  for (const requirement of [security, ...walk(paths).map(([, one]) => one['security'])].flat()) {
    for (const name of Object.keys(requirement ?? {})) {
      expect(isObject(securitySchemes) && name in securitySchemes, `security ${name} has no scheme`);
    }
  }
  for (const [name] of [...entries(schemas), ...entries(responses)]) {
    expect(/^[A-Za-z0-9._-]+$/.test(name), `${name} is no name of a component`);
  }
  for (const [path, one] of walk(document)) {
    const { $ref, type } = one;
    if (typeof $ref === 'string') {
      expect($ref.startsWith('#/') && target(document, $ref) !== undefined, `${path}: ${$ref} leads nowhere`);
    }
    if (/\/schema$|\/schemas\/\w+$|\/properties\/[^/]+$|\/items$|\/anyOf\/\d+$/.test(path) && type !== undefined) {
      expect(
        [type].flat().every((each) => TYPES.has(each as string)),
        `${path}: ${JSON.stringify(type)} is no type`,
      );
    }
  }
  const ids = new Set<unknown>();
  const known = new Set((Array.isArray(tags) ? tags : []).map((tag: unknown) => (tag as Json)['name']));
  for (const [path, methods] of entries(paths)) {
    expect(/^(?:\/(?:[\w.-]+|\{\w+\}))+$/.test(path), `${path} is no path`);
    for (const [method, operation] of entries(methods)) {
      const at = `${method} ${path}`;
      expect(METHODS.has(method), `${at}: no method`);
      expect(typeof operation['operationId'] === 'string' && !ids.has(operation['operationId']), `${at}: operationId`);
      ids.add(operation['operationId']);
      expect(typeof operation['summary'] === 'string' && operation['summary'] !== '', `${at}: no summary`);
      for (const tag of (operation['tags'] ?? []) as unknown[]) expect(known.has(tag), `${at}: tag ${String(tag)}`);
      problems.push(...parameterProblems(at, path, (operation['parameters'] ?? []) as readonly Json[]));
      problems.push(...responseProblems(at, operation['responses']));
      const { requestBody } = operation;
      if (requestBody === undefined) continue;
      expect(method !== 'get' && method !== 'delete', `${at}: a body with ${method}`);
      const content = isObject(requestBody) ? entries(requestBody['content']) : [];
      expect(content.length > 0 && content.every(([, { schema }]) => isObject(schema)), `${at}: body without content`);
    }
  }
  expect(ids.size > 0, 'no operation');
  return problems;
};

const parameterProblems = (at: string, path: string, parameters: readonly Json[]): readonly string[] => {
  const inPath = parameters.filter((one) => one['in'] === 'path').map(({ name }) => name);
  const inTemplate = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
  const keys = parameters.map(({ name, in: where }) => `${String(where)} ${String(name)}`);
  return [
    ...(JSON.stringify(inPath.toSorted()) === JSON.stringify(inTemplate.toSorted()) ? [] : [`${at}: path parameters`]),
    ...(new Set(keys).size === keys.length ? [] : [`${at}: a parameter twice`]),
    ...parameters
      .filter(
        ({ in: where, required, schema }) =>
          !['path', 'query', 'header'].includes(String(where)) ||
          !isObject(schema) ||
          typeof required !== 'boolean' ||
          (where === 'path' && !required),
      )
      .map(({ name }) => `${at}: parameter ${String(name)}`),
  ];
};

const responseProblems = (at: string, responses: unknown): readonly string[] => {
  const all = entries(responses);
  return [
    ...(all.some(([status]) => /^[23]\d\d$/.test(status)) ? [] : [`${at}: no answer of success`]),
    ...all
      .filter(
        ([status, one]) => !/^[1-5]\d\d$/.test(status) || (typeof one['description'] !== 'string' && !('$ref' in one)),
      )
      .map(([status]) => `${at}: answer ${status}`),
  ];
};

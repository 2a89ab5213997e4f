import type { OpenApiDocument, OperationObject, ParameterObject, ResponseObject } from './document.js';
import type { JsonSchema } from './json-schema.js';

const escape = (text: string): string =>
  text.replace(/[&<>"]/g, (one) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[one] ?? one);

/** Text of the document: `code` between back quotes. */
const words = (text = ''): string => escape(text).replace(/`([^`]+)`/g, '<code>$1</code>');

const anchorOf = (reference: string): string => reference.slice(reference.lastIndexOf('/') + 1);

/** A schema in a few words: `string, at most 24`, `array of Partner`, `READ | WRITE`. */
const typeOf = (schema: JsonSchema): string => {
  const { $ref, type, enum: values, const: constant, anyOf, items, format, default: preset } = schema;
  const bounds = (['minimum', 'maximum', 'minLength', 'maxLength', 'minItems'] as const)
    .filter((keyword) => schema[keyword] !== undefined)
    .map((keyword) => `${keyword} ${String(schema[keyword])}`);
  const kind = (): string => {
    if (typeof $ref === 'string') return `<a href="#${anchorOf($ref)}">${anchorOf($ref)}</a>`;
    if (Array.isArray(values)) return values.map((value) => escape(JSON.stringify(value))).join(' | ');
    if (constant !== undefined) return escape(JSON.stringify(constant));
    if (Array.isArray(anyOf)) return (anyOf as JsonSchema[]).map(typeOf).join(' | ');
    if (type === 'array') return `array of ${typeOf((items ?? {}) as JsonSchema)}`;
    return type === undefined ? 'any' : [type].flat().map(String).join(' | ');
  };
  const facts = [
    kind(),
    ...(typeof format === 'string' ? [escape(format)] : []),
    ...bounds,
    ...(preset === undefined ? [] : [`default ${escape(JSON.stringify(preset))}`]),
  ];
  return facts.join(', ');
};

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string => {
  if (rows.length === 0) return '';
  const line = (tag: string, cells: readonly string[]): string =>
    `<tr>${cells.map((cell) => `<${tag}>${cell}</${tag}>`).join('')}</tr>`;
  return `<table>${line('th', head)}${rows.map((row) => line('td', row)).join('')}</table>`;
};

const fieldsOf = ({ properties = {}, required = [] }: JsonSchema): string =>
  table(
    ['Field', 'Value', 'Meaning'],
    Object.entries(properties).map(([name, schema]) => [
      `<code>${escape(name)}</code>${required.includes(name) ? ' <b>required</b>' : ''}`,
      typeOf(schema),
      words(schema.description),
    ]),
  );

const parametersOf = (parameters: readonly ParameterObject[]): string =>
  table(
    ['Parameter', 'In', 'Value', 'Meaning'],
    parameters.map(({ name, in: where, required, schema, description }) => [
      `<code>${escape(name)}</code>${required ? ' <b>required</b>' : ''}`,
      where,
      typeOf(schema),
      words(description),
    ]),
  );

const contentOf = (content: ResponseObject['content'] = {}): string =>
  Object.entries(content)
    .map(([type, { schema }]) => (type === 'application/json' ? typeOf(schema) : `<code>${escape(type)}</code>`))
    .join(' or ');

const operationHtml = (document: OpenApiDocument, path: string, method: string, operation: OperationObject): string => {
  const { operationId, summary, description, parameters = [], requestBody, responses, security } = operation;
  const answers = Object.entries(responses).map(([status, response]) => {
    const found =
      '$ref' in response ? document.components.responses[anchorOf(response.$ref)] : (response satisfies ResponseObject);
    return [`<code>${status}</code>`, words(found?.description), contentOf(found?.content)];
  });
  const bodies = Object.entries(requestBody?.content ?? {}).map(([type, { schema }]) => {
    const named = typeof schema['$ref'] === 'string' ? ` ${typeOf(schema)}` : '';
    return `<p>Body, <code>${escape(type)}</code>${named}</p>${fieldsOf(schema)}`;
  });
  return `<details id="${operationId}"><summary><code><b>${method.toUpperCase()}</b> ${escape(path)}</code> ${words(summary)}</summary>
${description === undefined ? '' : `<p>${words(description)}</p>`}${security === undefined ? '' : '<p>Open without login.</p>'}
${parametersOf(parameters)}${bodies.join('')}${table(['Answer', 'Meaning', 'Body'], answers)}</details>`;
};

const STYLE = `body{font:15px/1.5 system-ui,sans-serif;max-width:75rem;margin:2rem auto;padding:0 1rem}table{border-collapse:collapse;margin:.5rem 0}
td,th{border:1px solid #ccc;padding:.2rem .5rem;text-align:left;vertical-align:top}summary{cursor:pointer}details{margin:.3rem 0}
details[open]{border-left:3px solid #999;padding-left:1rem}code{font-size:.95em}`;

/** The document as a page to read: no script, nothing from elsewhere, so that the strictest policy lets it through. */
export const docsPage = (document: OpenApiDocument): string => {
  const { info, tags, paths, components } = document;
  const sections = tags.map(({ name }) => {
    const operations = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods)
        .filter(([, { tags: own }]) => own.includes(name))
        .map(([method, operation]) => operationHtml(document, path, method, operation)),
    );
    return `<h2>${escape(name)}</h2>\n${operations.join('\n')}`;
  });
  const schemas = Object.entries(components.schemas).map(
    ([name, schema]) => `<h3 id="${name}">${name}</h3>${words(schema.description)}${fieldsOf(schema)}`,
  );
  const title = `${escape(info.title)} ${escape(info.version)}`;
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>${title}</title><style>${STYLE}</style></head><body>
<h1>${title}</h1>
<p>${words(info.description)} For programs: <a href="openapi.json">openapi.json</a> (OpenAPI 3.1).</p>
${sections.join('\n')}
<h2>Objects</h2>
${schemas.join('\n')}
</body></html>
`;
};

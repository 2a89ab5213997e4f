import { resolveSchema } from './json-schema.js';
import type { Components, JsonSchema } from './json-schema.js';

/** Values of formats, where a field has no example of its own. */
const FORMATS: Readonly<Record<string, string>> = {
  'date-time': '2026-11-23T08:30:00.000Z',
  date: '2026-11-23',
  uuid: '6f1f2c1e-5d7a-4c52-9b0e-3f6a2d9c8b71',
};

const isSet = (value: unknown): boolean => value !== undefined;

const firstOf = (list: unknown): unknown => (Array.isArray(list) ? (list as readonly unknown[])[0] : undefined);

const typesOf = ({ type }: JsonSchema): readonly unknown[] => [type].flat();

/** Composes the examples of bodies from those that stand beside the fields (`examples` of a schema, its first one). */
export class Examples {
  readonly #components: Components;

  constructor(components: Components) {
    this.#components = components;
  }

  /** An object has the fields that must be there and those with an example; what the example of the whole says of one counts first. */
  of(schema: JsonSchema): unknown {
    const given = this.#given(schema);
    const resolved = this.#resolved(schema);
    const { properties, required = [] } = resolved;
    if (properties === undefined) return isSet(given) ? given : this.#value(resolved);
    const fields = Object.entries(properties)
      .filter(([name, field]) => required.includes(name) || isSet(this.#given(field)))
      .map(([name, field]) => [name, this.of(field)] as const)
      .filter(([, value]) => isSet(value));
    return { ...Object.fromEntries(fields), ...(given as object | undefined) };
  }

  #resolved(schema: JsonSchema): JsonSchema {
    return resolveSchema(schema, this.#components);
  }

  #given(schema: JsonSchema): unknown {
    const own: unknown = firstOf(schema['examples']);
    return isSet(own) ? own : firstOf(this.#resolved(schema)['examples']);
  }

  #value({ const: only, default: preset, enum: words, anyOf, oneOf, format, minimum, items, ...more }: JsonSchema) {
    const { additionalProperties: values, required = [], ...rest } = more;
    const fixed = [only, preset, firstOf(words)].find(isSet);
    if (isSet(fixed)) return fixed;
    const types = typesOf(rest);
    const members = (anyOf ?? oneOf ?? []) as readonly JsonSchema[];
    if ([types, ...members.map(typesOf)].flat().includes('null')) return null;
    if (members.length > 0) return members.map((member) => this.of(member)).find(isSet);
    switch (types[0]) {
      case 'string':
        return typeof format === 'string' ? (FORMATS[format] ?? 'text') : 'text';
      case 'integer':
      case 'number':
        return typeof minimum === 'number' ? Math.max(minimum, 0) : 0;
      case 'boolean':
        return false;
      case 'array':
        return [this.of((items ?? {}) as JsonSchema)].filter(isSet);
      case 'object':
        return Object.fromEntries(required.map((name) => [name, this.of((values ?? {}) as JsonSchema)]));
      default:
        return undefined;
    }
  }
}

import { z } from 'zod';

/** A JSON Schema (2020-12), which is what OpenAPI 3.1 has in its place. */
export interface JsonSchema {
  readonly [keyword: string]: unknown;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly description?: string;
}

/** Schemas that have a name (`.meta({ id })`), as they are collected on the way. */
export type Components = Map<string, JsonSchema>;

const COMPONENT = '#/components/schemas/';

/** Nothing may be given for such a field: it is one of answers alone. */
const isForbidden = (schema: z.core.$ZodType): boolean => {
  const { def } = schema._zod;
  return (
    def.type === 'undefined' || (def.type === 'optional' && isForbidden((def as z.core.$ZodOptionalDef).innerType))
  );
};

const tidy = (io: 'input' | 'output', schema: z.core.$ZodTypes, json: z.core.JSONSchema.BaseSchema): void => {
  if (schema._zod.def.type === 'object') {
    for (const [field, child] of Object.entries(schema._zod.def.shape)) {
      if (isForbidden(child)) delete json.properties?.[field];
    }
    // Answers may grow: who reads them must not be told that they are complete.
    if (io === 'output' && json.additionalProperties === false) delete json.additionalProperties;
  }
  // It concerns the TypeScript type alone.
  if (schema._zod.def.type === 'readonly') delete json.readOnly;
  // zod drops `examples` of whatever is transformed: one stands beside a field as `example`, in the form of requests and answers.
  if (json['example'] !== undefined) {
    json.examples = [json['example']];
    delete json['example'];
  }
  // The bounds of what JavaScript can count say nothing.
  if (json.minimum === Number.MIN_SAFE_INTEGER) delete json.minimum;
  if (json.maximum === Number.MAX_SAFE_INTEGER) delete json.maximum;
};

/**
 * The JSON schema of what a zod schema takes (`input`: a request, before any transformation) or yields (`output`: an answer). Named schemas
 * go to `components`, once for each name.
 */
export const jsonSchemaOf = (schema: z.ZodType, io: 'input' | 'output', components: Components): JsonSchema => {
  const { $defs, ...json } = z.toJSONSchema(schema, {
    io,
    target: 'draft-2020-12',
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema }) => {
      tidy(io, zodSchema, jsonSchema);
    },
  });
  const moved = (part: unknown): JsonSchema =>
    JSON.parse(JSON.stringify(part).replaceAll('"$ref":"#/$defs/', `"$ref":"${COMPONENT}`)) as JsonSchema;
  for (const [name, definition] of Object.entries($defs ?? {})) {
    const component = moved(definition);
    const known = components.get(name);
    if (known !== undefined && JSON.stringify(known) !== JSON.stringify(component)) {
      throw new Error(`two schemas are named ${name}: give one of them another id`);
    }
    components.set(name, component);
  }
  delete json.$schema;
  return moved(json);
};

/** A schema with its fields in sight: that of a component where it only names one. */
export const resolveSchema = (schema: JsonSchema, components: Components): JsonSchema => {
  const { $ref } = schema;
  if (typeof $ref !== 'string') return schema;
  const found = components.get($ref.slice(COMPONENT.length));
  if (found === undefined) throw new Error(`there is no component ${$ref}`);
  return found;
};

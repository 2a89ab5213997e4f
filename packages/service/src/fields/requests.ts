import { z } from 'zod';

/**
 * All that is said of one field of requests that ask for something, such as a transfer; the field's name is the key of the row in
 * its table. A resource, which is stored and changed, has a `FieldTable` instead.
 */
export interface RequestField<R extends string = string> {
  /** Schema of the value; its output is what the application gets. */
  readonly schema: z.ZodType;
  /** Requests that may have it. */
  readonly in: readonly R[];
  /** Requests that must have it. Default: none. */
  readonly required?: readonly R[];
  /** For the document of the interface. Default: the description of the schema. */
  readonly words?: string;
  /** A value, for the examples of these requests. */
  readonly example?: { readonly in: readonly R[]; readonly value: unknown };
  /** The same for a request that means something else by it. */
  readonly wordsIn?: Partial<Readonly<Record<R, string>>>;
  /** Kept with what the request makes, by its name: see `RequestFields.kept`. Fields without act at once, or have a column. */
  readonly kept?: true;
}

type Rows = Readonly<Record<string, RequestField>>;
type Requests<F extends Rows> = F[keyof F]['in'][number];
type MayHave<F extends Rows, R> = { [K in keyof F]: R extends F[K]['in'][number] ? K : never }[keyof F];
type MustHave<F extends Rows, R> = {
  [K in keyof F]: F[K] extends { readonly required: readonly (infer Q)[] } ? (R extends Q ? K : never) : never;
}[keyof F];
type Value<F extends Rows, K extends keyof F> = z.output<F[K]['schema']>;

/** The fields of a request, for `z.strictObject`. */
export type RequestShape<F extends Rows, R> = {
  [K in MayHave<F, R>]: K extends MustHave<F, R> ? z.ZodType<Value<F, K>> : z.ZodOptional<z.ZodType<Value<F, K>>>;
};

/** The values that are kept of a request. */
export type KeptOf<F extends Rows> = {
  readonly [K in keyof F as F[K] extends { readonly kept: true } ? K : never]?: Value<F, K> | undefined;
};

const isNumber = (schema: z.ZodType): boolean =>
  schema instanceof z.ZodNumber ||
  (schema instanceof z.ZodLiteral && typeof schema.value === 'number') ||
  (schema instanceof z.ZodUnion && schema.options.every((option) => isNumber(option as z.ZodType)));

/** A query has texts alone: numbers and flags are read from them before the field's own rule is applied. */
const readText = (schema: z.ZodType): ((value: unknown) => unknown) | undefined => {
  if (isNumber(schema)) {
    return (value) => (typeof value === 'string' && /^\d{1,10}$/.test(value) ? Number(value) : value);
  }
  if (!(schema instanceof z.ZodBoolean)) return undefined;
  return (value) => (value === 'true' || value === 'false' ? value === 'true' : value);
};

/** The fields of requests that are alike, each declared once: which requests have it, its rule, and its words. */
export class RequestFields<const F extends Rows> {
  readonly #rows: F;

  constructor(rows: F) {
    this.#rows = rows;
  }

  /** The fields of a body of JSON. */
  shape<R extends Requests<F>>(request: R): RequestShape<F, R> {
    return this.#shape(request, (schema) => schema);
  }

  /** The fields of a query, or of a form: every value comes as a text. */
  shapeInTexts<R extends Requests<F>>(request: R): RequestShape<F, R> {
    return this.#shape(request, (given, schema) => {
      const read = readText(schema);
      return read === undefined ? given : z.preprocess(read, given);
    });
  }

  /** The values that are kept of a request, as they were given. */
  kept(given: KeptOf<F>): KeptOf<F> {
    const names = Object.keys(this.#rows).filter((name) => this.#rows[name]?.kept);
    return Object.fromEntries(
      names.map((name) => [name, (given as Readonly<Record<string, unknown>>)[name]]),
    ) as KeptOf<F>;
  }

  #shape<R extends Requests<F>>(
    request: R,
    inForm: (given: z.ZodType, schema: z.ZodType) => z.ZodType,
  ): RequestShape<F, R> {
    const shape = Object.entries(this.#rows as Rows).flatMap(([name, row]) => {
      if (!row.in.includes(request)) return [];
      const { schema, required = [], wordsIn, example } = row;
      const description = wordsIn?.[request] ?? row.words ?? schema.description;
      const given = required.includes(request) ? schema : schema.optional();
      const said = {
        ...(description === undefined ? {} : { description }),
        ...(example?.in.includes(request) ? { example: example.value } : {}),
      };
      return [[name, inForm(Object.keys(said).length === 0 ? given : given.meta(said), schema)]];
    });
    return Object.fromEntries(shape) as RequestShape<F, R>;
  }
}

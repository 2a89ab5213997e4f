import type { z } from 'zod';

/**
 * All that is said of one field of a resource; the field's name in the interface is the key of the row in its table.
 *
 * A row with a `default` has it when a request that creates something does not give the field; a row that says what `unset`
 * means is null then; one that says `otherwise` comes from elsewhere; any other row is required.
 */
export interface FieldRow {
  /** Schema of the value in a request; its output is what is stored. Where the two differ for good, a codec turns one into the other. */
  readonly schema: z.ZodType;
  /** Where it is stored. A row without is computed for each answer (`readOnly`), or is `notBuilt`. */
  readonly column?: string;
  /** Other names of the same field: all are accepted when they agree, and all are answered. */
  readonly aliases?: readonly string[];
  /** Other names under which the same stored value is written in another form: name → schema, usually a codec. */
  readonly forms?: Readonly<Record<string, z.ZodType>>;
  /** For the document of the interface: what the value means, its unit. */
  readonly words?: string;
  /** For the document of the interface: a value as a request gives it, or as an answer shows it. */
  readonly example?: unknown;
  /** The same as an answer shows it, where that differs. */
  readonly exampleShown?: unknown;
  /** It identifies the resource and never changes. With `readOnly`: the database assigns it. */
  readonly key?: true;
  /** Value stored when a new one is created without it. */
  readonly default?: unknown;
  /** Meaning of null, in words: the column may be null, a request may say null, and an answer says it while nothing is set. */
  readonly unset?: string;
  /** Where the value comes from when a request that creates something leaves the field out, in words: a column that is never null. */
  readonly otherwise?: string;
  /** Answered, and never set by a request: POST refuses it, PUT ignores it so that an answer can be put back. */
  readonly readOnly?: true;
  /** Never answered; stored as the caller of `values` makes it (a hash, or sealed). One without a column is for the request alone. */
  readonly secret?: true;
  /** Another field without which this one means nothing: it must be set beside, and clearing it clears this one. */
  readonly needs?: string;
  /** A list of them can be searched by parts of it: a text with a column. */
  readonly searched?: true;
  /** A list of them can be asked for those with one value of it: one of several words, or a flag, with a column. */
  readonly filter?: true;
  /** A field of the specification whose behaviour this version does not have: what is answered, and may be asked for. */
  readonly notBuilt?: unknown;
}

/** A table: name of the field → row, in the order of the document. */
export type FieldRows = Readonly<Record<string, FieldRow>>;

/** Asks that a `default` fits the schema of its row. */
export type WithFittingDefaults<F extends FieldRows> = {
  readonly [K in keyof F]: F[K] extends { readonly default: unknown }
    ? { readonly default: z.output<F[K]['schema']> }
    : unknown;
};

type Nullable<R> = R extends { readonly unset: string } ? null : never;

/** Type of the value in the column. */
type Stored<R extends FieldRow> = z.output<R['schema']> | Nullable<R>;

/** Type of a value as an answer shows it: a codec shows what it is written as. */
type ShownAs<S extends z.ZodType> = S extends z.ZodCodec ? z.input<S> : z.output<S>;

/** The field's own name and its aliases. */
type Names<K, R> = (K & string) | (R extends { readonly aliases: readonly (infer A extends string)[] } ? A : never);
type FormNames<R> = R extends { readonly forms: infer M } ? keyof M & string : never;

type IsWritable<R> = R extends { readonly readOnly: true } ? false : true;
type IsShown<R> = R extends { readonly secret: true } ? false : true;
type IsRequired<R> = R extends
  | { readonly default: unknown }
  | { readonly unset: string }
  | { readonly otherwise: string }
  | { readonly readOnly: true }
  | { readonly notBuilt: unknown }
  // One of its names is required: which one, the type cannot say.
  | { readonly aliases: readonly string[] }
  | { readonly forms: object }
  ? false
  : true;

/** A row of the database, as far as the table knows its columns. */
export type RowOf<F extends FieldRows> = {
  readonly [K in keyof F as F[K] extends { readonly column: infer C extends string } ? C : never]: Stored<F[K]>;
};

/** The columns that requests set. */
export type ValuesOf<F extends FieldRows> = {
  readonly [
    K in keyof F as F[K] extends { readonly column: infer C extends string }
      ? F[K] extends { readonly key: true } | { readonly readOnly: true }
        ? never
        : C
      : never
  ]: Stored<F[K]>;
};

/** Values that a request may give, checked: by every name, each value as it is stored. */
export type GivenOf<F extends FieldRows> = {
  readonly [K in keyof F as IsWritable<F[K]> extends true ? Names<K, F[K]> | FormNames<F[K]> : never]?:
    Stored<F[K]> | undefined;
};

/** Values of a request to create one. */
export type CreateOf<F extends FieldRows> = GivenOf<F> & {
  readonly [K in keyof F as IsRequired<F[K]> extends true ? K : never]: Stored<F[K]>;
};

type FormOf<F extends FieldRows> = {
  [K in keyof F]: F[K] extends { readonly forms: infer M } ? { [N in keyof M]: readonly [N, M[N]] }[keyof M] : never;
}[keyof F];

/** An answer. */
export type ViewOf<F extends FieldRows> = {
  readonly [K in keyof F as IsShown<F[K]> extends true ? Names<K, F[K]> : never]:
    ShownAs<F[K]['schema']> | Nullable<F[K]>;
} & {
  readonly [P in FormOf<F> as P[0] & string]: P[1] extends z.ZodType ? ShownAs<P[1]> : never;
};

/** The fields of an answer that no column holds. */
export type ComputedOf<F extends FieldRows> = {
  readonly [
    K in keyof F as F[K] extends
      { readonly column: string } | { readonly notBuilt: unknown } | { readonly secret: true }
      ? never
      : K
  ]: ShownAs<F[K]['schema']> | Nullable<F[K]>;
};

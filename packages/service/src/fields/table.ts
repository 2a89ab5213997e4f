import { isDeepStrictEqual } from 'node:util';

import { z } from 'zod';

import { notBuiltYet, validation } from '../errors.js';
import type { FieldError } from '../errors.js';
import { disagreements, namesOf } from './names.js';
import type { FieldName } from './names.js';
import type { ComputedOf, CreateOf, FieldRows, GivenOf, RowOf, ValuesOf, ViewOf, WithFittingDefaults } from './row.js';
import { listSchema } from './lists.js';
import type { ListQuery } from './lists.js';
import { answerSchema, createSchema, updateSchema } from './schemas.js';

type Body = Readonly<Record<string, unknown>>;

/** How a secret is protected before it is stored. */
export type KeepSecret = (secret: string, field: string) => string | Promise<string>;

export interface Resource {
  /** Name of the answer in the document of the interface: `VirtualFile`. */
  readonly id: string;
  /** In texts: `virtual file`. */
  readonly noun: string;
  /** Table of the database. */
  readonly table: string;
  /** For the document of the interface: the body of a request that changes one. */
  readonly change?: Readonly<Record<string, unknown>>;
}

/** A resource as its field table declares it: what requests may say, what is stored, what is answered. */
export class FieldTable<const F extends FieldRows> {
  readonly noun: string;
  readonly table: string;
  readonly rows: F;
  /** For statements that name what they read: a newer version may add some while an older one still runs. */
  readonly columns: readonly string[];
  /** The body of a request that creates one. */
  readonly create: z.ZodType<CreateOf<F>>;
  /** The body of a request that changes one. */
  readonly update: z.ZodType<GivenOf<F>>;
  readonly answer: z.ZodObject<{ [K in keyof ViewOf<F>]: z.ZodType<ViewOf<F>[K]> }>;
  /** The query of a list of them. */
  readonly list: z.ZodType<ListQuery>;
  /** The field that identifies it, and its column. */
  readonly key: { readonly field: string; readonly column: string; readonly schema: z.ZodType };
  /** Columns of a new one, as far as its request does not say otherwise. */
  readonly defaults: Partial<ValuesOf<F>>;
  readonly #names: ReadonlyMap<string, FieldName>;

  constructor({ id, noun, table, change }: Resource, rows: F & WithFittingDefaults<F>) {
    this.noun = noun;
    this.table = table;
    this.rows = rows;
    this.columns = Object.values(rows as FieldRows).flatMap(({ column }) => column ?? []);
    this.create = createSchema(rows, id) as typeof this.create;
    this.update = updateSchema(rows, id, change) as typeof this.update;
    this.answer = answerSchema(rows, id) as unknown as typeof this.answer;
    this.list = listSchema(rows);
    this.#names = new Map(namesOf(rows).map((one) => [one.name, one]));
    const entries = Object.entries(rows as FieldRows);
    const [field, row] = entries.find((entry) => entry[1].key) ?? [];
    if (field === undefined || row?.column === undefined) throw new Error(`${id}: no field is the key`);
    this.key = { field, column: row.column, schema: row.schema };
    this.defaults = Object.fromEntries(
      entries.flatMap(([, { column, default: preset, unset, readOnly }]) => {
        if (column === undefined || readOnly) return [];
        if (preset !== undefined) return [[column, preset]];
        return unset === undefined ? [] : [[column, null]];
      }),
    ) as Partial<ValuesOf<F>>;
  }

  /** The identifier of a new one, by whichever name it was given. */
  idOf(given: CreateOf<F>): string {
    const named = [...this.#names.values()].find(({ row, name }) => row.key && (given as Body)[name] !== undefined);
    if (named === undefined) throw new Error(`${this.noun} without ${this.key.field}: the body was not checked`);
    return (given as Body)[named.name] as string;
  }

  /**
   * The values of a request to create one, checked once more as a whole.
   * @throws {ApiError} 422 for what is not built, 400 for a field without the one that it needs
   */
  asked(given: CreateOf<F>): GivenOf<F> {
    this.#refuseNotBuilt(given);
    return this.#completed(given, () => null);
  }

  /**
   * The changes of a request to `row`: without the fields that are as they were, and without those that no request sets. When two
   * names of a field differ, the one that is not as stored counts.
   * @throws {ApiError} 422 for what is not built, 400 for a new identifier, for two names that ask for different changes, or
   *   for a field without the one that it needs
   */
  changes(given: GivenOf<F>, row: RowOf<F>): GivenOf<F> {
    this.#refuseNotBuilt(given);
    const stored = (field: string): unknown => (row as Body)[this.rows[field]?.column ?? ''];
    const faults: FieldError[] = [];
    const changed = Object.entries(given).filter(([name, value]) => {
      const { field, row: one } = this.#nameOf(name);
      if (value === undefined || (one.readOnly && !one.key) || one.notBuilt !== undefined) return false;
      if (!one.secret && isDeepStrictEqual(value, stored(field))) return false;
      if (one.key) faults.push({ field: name, message: this.#fixed(stored(field)) });
      return !one.key;
    });
    faults.push(...disagreements(this.rows, Object.fromEntries(changed)));
    if (faults.length > 0) throw validation(faults);
    return this.#completed(Object.fromEntries(changed), stored);
  }

  /**
   * The columns of what was asked for or changed.
   * @param keep what is stored of a secret
   */
  async values(given: GivenOf<F>, keep: KeepSecret = refuseSecrets): Promise<Partial<ValuesOf<F>>> {
    const values: Record<string, unknown> = {};
    for (const [name, value] of Object.entries(given)) {
      const { field, row } = this.#nameOf(name);
      if (value === undefined || row.column === undefined || row.key) continue;
      values[row.column] = row.secret && typeof value === 'string' ? await keep(value, field) : value;
    }
    return values as Partial<ValuesOf<F>>;
  }

  /** The answer for a row: every field but the secrets, by every name. */
  view(row: RowOf<F>, computed: ComputedOf<F>): ViewOf<F> {
    const shown = [...this.#names.values()].filter((one) => !one.row.secret);
    return Object.fromEntries(
      shown.map(({ name, field, schema, row: { column, notBuilt } }) => {
        if (notBuilt !== undefined) return [name, notBuilt];
        if (column === undefined) return [name, (computed as Body)[field]];
        const value = (row as Body)[column];
        return [name, value !== null && schema instanceof z.ZodCodec ? z.encode(schema, value) : value];
      }),
    ) as ViewOf<F>;
  }

  /**
   * The fields that differ between two rows, for the audit: of a secret only that it is `set`, or `changed`. Columns that the service
   * keeps by itself are left out.
   * @param before undefined: it is made, and the fields that are set differ. @param after undefined: it is deleted
   */
  differences(
    before: RowOf<F> | undefined,
    after: RowOf<F> | undefined,
  ): Readonly<Record<string, { readonly before?: unknown; readonly after?: unknown }>> {
    const entries = Object.entries(this.rows as FieldRows).flatMap(([name, { column, secret, readOnly, key }]) => {
      if (column === undefined || (readOnly && !key)) return [];
      const [was, is] = [before, after].map((row) => (row as Body | undefined)?.[column] ?? null);
      if (isDeepStrictEqual(was, is)) return [];
      const shown = secret
        ? { before: was === null ? null : 'set', after: secretState(was, is) }
        : { before: was, after: is };
      return [
        [
          name,
          {
            ...(before === undefined ? {} : { before: shown.before }),
            ...(after === undefined ? {} : { after: shown.after }),
          },
        ] as const,
      ];
    });
    return Object.fromEntries(entries);
  }

  #nameOf(name: string): FieldName {
    const found = this.#names.get(name);
    if (found === undefined) throw new Error(`${this.noun} has no field ${name}: the body was not checked`);
    return found;
  }

  #fixed(current: unknown): string {
    return `cannot be changed from ${String(current)}: create another ${this.noun}`;
  }

  #refuseNotBuilt(given: object): void {
    const asked = Object.entries(given).filter(([name, value]: [string, unknown]) => {
      const { notBuilt } = this.#nameOf(name).row;
      return notBuilt !== undefined && value !== undefined && value !== null && value !== notBuilt;
    });
    if (asked.length > 0) throw notBuiltYet(...asked.map(([name]) => name));
  }

  /** Nothing is kept of a field whose `needs` is cleared. */
  #completed(given: Body, stored: (field: string) => unknown): GivenOf<F> {
    const completed = { ...given };
    const faults: FieldError[] = [];
    for (const [name, { needs }] of Object.entries(this.rows as FieldRows)) {
      if (needs === undefined) continue;
      const isSet = given[name] !== undefined && given[name] !== null;
      const needed = given[needs] === undefined ? stored(needs) : given[needs];
      if (isSet && needed === null) faults.push({ field: needs, message: `expected beside ${name}` });
      if (given[needs] === null) completed[name] = null;
    }
    if (faults.length > 0) throw validation(faults);
    return completed as GivenOf<F>;
  }
}

const secretState = (was: unknown, is: unknown): string | null => {
  if (is === null) return null;
  return was === null ? 'set' : 'changed';
};

/** So that no secret is stored as it came because nobody said what to do with it. */
const refuseSecrets: KeepSecret = (_secret, field) => {
  throw new Error(`nobody said how ${field} is kept`);
};

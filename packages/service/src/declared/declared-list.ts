/**
 * The lists `partners`, `files` and `servers` of the configuration file (interface specification, point 10): what the file declares.
 * An item has the fields of the request that creates one. It says all of its thing: a field that it leaves out has the value that a
 * new one would have, so that a node that is installed anew and one that has run for years come to the same. Secrets that it leaves out
 * stay as they are.
 */
import { z } from 'zod';

import { ApiError } from '../errors.js';
import type { FieldError } from '../errors.js';
import { namesOf } from '../fields/names.js';
import type { FieldRows } from '../fields/row.js';
import { declaredSchema, secretFileOf } from '../fields/schemas.js';
import { check } from '../http/validate.js';

type Body = Readonly<Record<string, unknown>>;

export type ListName = 'partners' | 'files' | 'servers';

/** The part of a `FieldTable` that this needs. */
export interface DeclaredFields {
  readonly noun: string;
  readonly table: string;
  readonly rows: FieldRows;
  readonly key: { readonly field: string };
  /** @throws {ApiError} */
  asked(given: object): object;
  /** @throws {ApiError} */
  changes(given: object, row: object): object;
}

export interface DeclaredListOptions {
  readonly list: ListName;
  readonly fields: DeclaredFields;
  /** The field that tells one from the other in the file. Default: the key. */
  readonly identity?: string;
  /** Which items of the list are of this kind. Default: all. */
  readonly has?: (item: Body) => boolean;
}

/** A secret of an item: itself, null to remove it, or the path of the file in which it stands. */
export interface DeclaredSecret {
  readonly field: string;
  readonly column: string;
  readonly given: { readonly value: string | null } | { readonly path: string };
}

/** An item that can be applied. */
export interface DeclaredItem {
  /** Where it stands: `partners[3]`. */
  readonly place: string;
  readonly id: string;
  /** The body of a request that says all of it, but for its secrets. */
  readonly body: Body;
  readonly secrets: readonly DeclaredSecret[];
}

export interface ReadList {
  readonly items: readonly DeclaredItem[];
  /** Sentences, each with its place: `partners[3].partnerId: …`; at most `MOST_PROBLEMS`, and one that says how many are left out. */
  readonly problems: readonly string[];
}

const MOST_ITEMS = 100_000;
const MOST_PROBLEMS = 100;
/** Characters of a place: a field that nobody knows may have any name. */
const LONGEST_PLACE = 200;

const isMapping = (value: unknown): value is Body =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const without = (body: Body, isLeft: (name: string) => boolean): Body =>
  Object.fromEntries(Object.entries(body).filter(([name]) => !isLeft(name)));

/** `partners[3].name`; what is wrong with an item as a whole has the item's own place. */
const placeOf = (place: string, field: string): string =>
  (field === '(body)' ? place : `${place}.${field}`).slice(0, LONGEST_PLACE);

const sentences = (place: string, faults: readonly FieldError[]): readonly string[] =>
  faults.map(({ field, message }) => `${placeOf(place, field)}: ${message}`);

/** Says what was refused, with its places. @throws whatever is no `ApiError` */
export const refusalOf = (place: string, error: unknown): readonly string[] => {
  if (!(error instanceof ApiError)) throw error;
  return error.details === undefined ? [`${place}: ${error.message}`] : sentences(place, error.details);
};

/** One kind of thing in one list of the file. */
export class DeclaredList {
  readonly list: ListName;
  readonly fields: DeclaredFields;
  readonly #identity: readonly string[];
  readonly #has: (item: Body) => boolean;
  readonly #schema: z.ZodType<Body>;
  readonly #secrets: readonly { readonly field: string; readonly column: string }[];

  constructor({ list, fields, identity = fields.key.field, has = () => true }: DeclaredListOptions) {
    this.list = list;
    this.fields = fields;
    this.#identity = namesOf(fields.rows)
      .filter(({ field }) => field === identity)
      .map(({ name }) => name);
    this.#has = has;
    this.#schema = declaredSchema(fields.rows);
    this.#secrets = Object.entries(fields.rows).flatMap(([field, { secret, column }]) =>
      secret && column !== undefined ? [{ field, column }] : [],
    );
  }

  /** @param given the whole list, items of other kinds too */
  read(given: readonly unknown[]): ReadList {
    if (given.length > MOST_ITEMS)
      return { items: [], problems: [`${this.list}: expected at most ${MOST_ITEMS} items, got ${given.length}`] };
    const items: DeclaredItem[] = [];
    const problems: string[] = [];
    const seen = new Map<string, string>();
    for (const [index, item] of given.entries()) {
      if (isMapping(item) && !this.#has(item)) continue;
      const place = `${this.list}[${index}]`;
      try {
        const one = this.#item(place, item);
        const before = seen.get(one.id);
        if (before === undefined) {
          seen.set(one.id, place);
          items.push(one);
        } else {
          problems.push(
            `${place}: ${this.fields.noun} ${JSON.stringify(one.id)} is in the list already, as ${before}: leave one of them out`,
          );
        }
      } catch (error) {
        problems.push(...refusalOf(place, error));
      }
    }
    if (problems.length <= MOST_PROBLEMS) return { items, problems };
    const more = `${this.list}: ${problems.length - MOST_PROBLEMS} more problems of this kind`;
    return { items, problems: [...problems.slice(0, MOST_PROBLEMS), more] };
  }

  /** Says what is wrong with a secret that no schema has seen, or that a new one needs; undefined: nothing. */
  faultOf(field: string, value: string | undefined): string | undefined {
    const row = this.fields.rows[field];
    if (row === undefined || (value === undefined && row.unset !== undefined)) return undefined;
    try {
      check(z.strictObject({ [field]: row.schema }), value === undefined ? {} : { [field]: value }, 'body');
      return undefined;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      return error.details?.[0]?.message ?? error.message;
    }
  }

  /** The secrets that one needs to be created, and an item does not have. */
  lacking({ secrets }: DeclaredItem): readonly FieldError[] {
    return this.#secrets.flatMap(({ field }) => {
      const message = secrets.some((one) => one.field === field) ? undefined : this.faultOf(field, undefined);
      return message === undefined ? [] : [{ field, message }];
    });
  }

  /** @throws {ApiError} */
  #item(place: string, item: unknown): DeclaredItem {
    const given = check(this.#schema, item, 'body');
    const secrets = this.#secrets.flatMap(({ field, column }): readonly DeclaredSecret[] => {
      const [value, path] = [given[field], given[secretFileOf(field)]];
      if (path !== undefined) return [{ field, column, given: { path: path as string } }];
      return value === undefined ? [] : [{ field, column, given: { value: value as string | null } }];
    });
    const files = new Set(this.#secrets.map(({ field }) => secretFileOf(field)));
    const asked = without(given, (name) => files.has(name));
    // Refuses fields that are not built, and those that need another one, as a request would be told.
    this.fields.asked(asked);
    const open = without(asked, (name) => this.#secrets.some(({ field }) => field === name));
    const id = this.#identity.map((name) => given[name]).find((value) => value !== undefined);
    return { place, id: id as string, body: this.#whole(open), secrets };
  }

  /** Each field that a request may set, but for secrets: what is left out is as in a new one. */
  #whole(given: Body): Body {
    const said = new Set(
      namesOf(this.fields.rows)
        .filter(({ name }) => given[name] !== undefined)
        .map(({ field }) => field),
    );
    const rest = Object.entries(this.fields.rows).flatMap(([field, row]): readonly (readonly [string, unknown])[] => {
      const { default: preset, unset, readOnly, secret, key, column } = row;
      if (said.has(field) || readOnly || secret || key || column === undefined) return [];
      if (preset !== undefined) return [[field, preset]];
      return unset === undefined ? [] : [[field, null]];
    });
    return { ...given, ...Object.fromEntries(rest) };
  }
}

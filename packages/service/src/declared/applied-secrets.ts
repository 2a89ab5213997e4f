import { createHmac, timingSafeEqual } from 'node:crypto';

import type { Knex } from 'knex';

import type { SecretBox, SecretKey } from '../secrets/secret-box.js';

/** Purpose of the keys of the marks; another text makes every stored mark worthless. */
const PURPOSE = 'pesit-node declared secrets v1';

const TABLE = 'declared_secrets';

/** A secret of an object: its table, its name in the file, the field. */
export interface SecretPlace {
  readonly table: string;
  readonly id: string;
  readonly field: string;
}

interface MarkRow {
  readonly object: string;
  readonly field: string;
  readonly mark: string;
}

/** By object and field. */
export type Marks = ReadonlyMap<string, string>;

const keyOf = (id: string, field: string): string => JSON.stringify([id, field]);

/**
 * Remembers which secrets of the configuration file were applied, so that the next start finds out without a slow hash for each partner
 * which are new in the file: by a mark, an HMAC-SHA256 under a key made of `secrets.key`, bound to its place: `v1.<key id>.<base64url>`.
 * Somebody who can compute marks has `secrets.key`, and stands where the file itself can be read.
 */
export class AppliedSecrets {
  readonly #knex: Knex;
  readonly #keys: readonly [SecretKey, ...SecretKey[]];

  constructor(knex: Knex, secrets: Pick<SecretBox, 'keysFor'>) {
    this.#knex = knex;
    this.#keys = secrets.keysFor(PURPOSE);
  }

  /** The marks of these objects. */
  async of(table: string, ids: readonly string[]): Promise<Marks> {
    const rows = (await this.#knex(TABLE)
      .where('object_table', table)
      .whereIn('object', [...ids])) as MarkRow[];
    return new Map(rows.map(({ object, field, mark }) => [keyOf(object, field), mark]));
  }

  /**
   * Whether `value` is what was applied last.
   * `stale`: it is, and the mark needs an older key; `unknown`: there is no mark, or its key is not there.
   */
  compare(marks: Marks, place: SecretPlace, value: string): 'same' | 'stale' | 'other' | 'unknown' {
    const [, id, digest = ''] = marks.get(keyOf(place.id, place.field))?.split('.') ?? [];
    const index = this.#keys.findIndex((key) => key.id === id);
    const key = this.#keys[index];
    if (key === undefined) return 'unknown';
    const [stored, computed] = [Buffer.from(digest, 'base64url'), digestOf(key, place, value)];
    if (stored.length !== computed.length || !timingSafeEqual(stored, computed)) return 'other';
    return index === 0 ? 'same' : 'stale';
  }

  /** Remembers that `value` was applied. */
  async remember(place: SecretPlace, value: string): Promise<void> {
    const [key] = this.#keys;
    const mark = `v1.${key.id}.${digestOf(key, place, value).toString('base64url')}`;
    await this.#knex(TABLE)
      .insert({ object_table: place.table, object: place.id, field: place.field, mark })
      .onConflict(['object_table', 'object', 'field'])
      .merge();
  }

  /** Forgets the objects of a table that the file no longer names. */
  async keepOnly(table: string, ids: readonly string[]): Promise<void> {
    await this.#knex(TABLE)
      .where('object_table', table)
      .whereRaw('not (object = any(?::text[]))', [[...ids]])
      .delete();
  }
}

const digestOf = ({ bytes }: SecretKey, { table, id, field }: SecretPlace, value: string): Buffer =>
  createHmac('sha256', bytes)
    .update(JSON.stringify([table, id, field, value]))
    .digest();

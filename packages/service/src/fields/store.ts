import type { Knex } from 'knex';

import type { AuditChange } from '../audit/audit.js';
import { listRows } from './lists.js';
import type { Listed, ListQuery } from './lists.js';
import type { FieldRows, RowOf, ValuesOf } from './row.js';
import type { FieldTable } from './table.js';

/**
 * The table of configured things (partners, virtual files, listeners), each with an identifier that does not change.
 * `Row` is what is read: the columns of the field table, and those that the service keeps for itself.
 */
export class FieldStore<F extends FieldRows, Row extends RowOf<F> = RowOf<F>> {
  protected readonly knex: Knex;
  readonly #fields: FieldTable<F>;
  readonly #table: string;
  readonly #key: string;
  readonly #defaults: Partial<ValuesOf<F>>;

  constructor(knex: Knex, fields: FieldTable<F>) {
    const { table, key, defaults } = fields;
    this.knex = knex;
    this.#fields = fields;
    this.#table = table;
    this.#key = key.column;
    this.#defaults = defaults;
  }

  async list(): Promise<readonly Row[]> {
    return (await this.knex(this.#table).orderBy(this.#key)) as readonly Row[];
  }

  /** Those that are asked for, in the order of their identifiers. */
  find(query: ListQuery): Promise<Listed<Row>> {
    return listRows<Row>(this.knex, this.#fields, query);
  }

  async get(id: string): Promise<Row | undefined> {
    return (await this.knex(this.#table).where(this.#key, id).first()) as Row | undefined;
  }

  /** Those of these identifiers that exist. */
  async some(ids: readonly string[]): Promise<readonly Row[]> {
    return (await this.knex(this.#table).whereIn(this.#key, [...ids])) as readonly Row[];
  }

  /** @returns undefined when the identifier is taken. */
  async create(id: string, values: Partial<ValuesOf<F>>, audited?: AuditChange<Row>): Promise<Row | undefined> {
    return this.#within(audited, async (knex) => {
      const rows = (await knex(this.#table)
        .insert({ [this.#key]: id, ...this.#defaults, ...values })
        .onConflict(this.#key)
        .ignore()
        .returning('*')) as readonly Row[];
      if (rows[0] !== undefined) await audited?.(knex, undefined, rows[0]);
      return rows[0];
    });
  }

  /**
   * @param beside columns of no field that change with it: SQL over the row as it was
   * @param audited appends the audit entry in the same transaction; its row is locked meanwhile
   * @returns undefined when there is none.
   */
  async update(
    id: string,
    values: Partial<ValuesOf<F>>,
    beside: Readonly<Record<string, Knex.Raw>> = {},
    audited?: AuditChange<Row>,
  ): Promise<Row | undefined> {
    return this.#within(audited, async (knex) => {
      const before = audited && ((await knex(this.#table).where(this.#key, id).forUpdate().first()) as Row | undefined);
      const rows = (await knex(this.#table)
        .where(this.#key, id)
        .update({ ...values, ...beside, updated_at: this.knex.fn.now() })
        .returning('*')) as readonly Row[];
      if (before !== undefined && rows[0] !== undefined) await audited?.(knex, before, rows[0]);
      return rows[0];
    });
  }

  /**
   * @param check throws when it must not be deleted; its row is locked meanwhile, and nothing is deleted then
   * @returns false when there is none.
   */
  async delete(
    id: string,
    audited?: AuditChange<Row>,
    check?: (knex: Knex, row: Row) => Promise<void>,
  ): Promise<boolean> {
    return this.#within(audited ?? check, async (knex) => {
      const before = check && ((await knex(this.#table).where(this.#key, id).forUpdate().first()) as Row | undefined);
      if (before !== undefined) await check?.(knex, before);
      const rows = (await knex(this.#table).where(this.#key, id).delete().returning('*')) as readonly Row[];
      if (rows[0] !== undefined) await audited?.(knex, rows[0], undefined);
      return rows[0] !== undefined;
    });
  }

  /** With an audit entry or a check in one transaction, without any as a statement of its own. */
  #within<T>(beside: object | undefined, work: (knex: Knex) => Promise<T>): Promise<T> {
    return beside === undefined ? work(this.knex) : this.knex.transaction(work);
  }
}

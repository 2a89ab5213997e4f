import type { Knex } from 'knex';

/** A table of configured things (partners, virtual files, listeners), each with an identifier that does not change. */
export class ConfiguredStore<Row extends object, Values extends object> {
  protected readonly knex: Knex;
  readonly #table: string;
  readonly #key: string;

  constructor(knex: Knex, { table, key }: { readonly table: string; readonly key: string }) {
    this.knex = knex;
    this.#table = table;
    this.#key = key;
  }

  async list(): Promise<readonly Row[]> {
    return (await this.knex(this.#table).orderBy(this.#key)) as readonly Row[];
  }

  async get(id: string): Promise<Row | undefined> {
    return (await this.knex(this.#table).where(this.#key, id).first()) as Row | undefined;
  }

  /** @returns undefined when the identifier is taken. */
  async create(id: string, values: Values): Promise<Row | undefined> {
    const rows = (await this.knex(this.#table)
      .insert({ [this.#key]: id, ...values })
      .onConflict(this.#key)
      .ignore()
      .returning('*')) as readonly Row[];
    return rows[0];
  }

  /** @returns undefined when there is none. */
  async update(id: string, values: Partial<Values>): Promise<Row | undefined> {
    const rows = (await this.knex(this.#table)
      .where(this.#key, id)
      .update({ ...values, updated_at: this.knex.fn.now() })
      .returning('*')) as readonly Row[];
    return rows[0];
  }

  async delete(id: string): Promise<boolean> {
    return (await this.knex(this.#table).where(this.#key, id).delete()) > 0;
  }
}

/** The columns of those fields that a request has, by a table of field → column. */
export const columnsOf = <Body extends object, Values extends object>(
  body: Body,
  columns: Readonly<Partial<Record<keyof Body, keyof Values & string>>>,
): Partial<Values> =>
  Object.fromEntries(
    (Object.entries(columns) as [keyof Body, keyof Values & string][])
      .filter(([field]) => body[field] !== undefined)
      .map(([field, column]) => [column, body[field]]),
  ) as Readonly<Record<string, unknown>> as Partial<Values>;

import type { AuditChange, ChangeAudit } from '../audit/audit.js';
import type { Caller } from '../audit/entry.js';
import { capital, conflict, notFound } from '../errors.js';
import type { EventStream } from '../events/event-stream.js';
import { CONFIGURATION_CHANGED } from '../events/events.js';
import type { CreateOf, FieldRows, GivenOf, RowOf } from './row.js';
import type { FieldStore } from './store.js';
import type { FieldTable, KeepSecret } from './table.js';

export interface FieldServiceOptions<F extends FieldRows, Row extends RowOf<F>> {
  /** Path of the interface, for those who look for one that does not exist. */
  readonly path: string;
  readonly fields: FieldTable<F>;
  readonly store: FieldStore<F, Row>;
  /** The stored form of a secret. */
  readonly keep?: KeepSecret;
  /**
   * Checks what a request must satisfy beside its schema, and what must exist before it is stored.
   * @param change what is asked for a new one, or what changes
   * @throws {ApiError} when it cannot be done
   */
  readonly admit?: (change: GivenOf<F>) => Promise<void>;
  readonly events: EventStream;
  /** Stores each change with its audit entry. */
  readonly audit: ChangeAudit;
}

/** `virtual file` → `virtualFile` in the log. */
const logKey = (noun: string): string => noun.replace(/ (\w)/g, (_, first: string) => first.toUpperCase());

/** Creates and changes things that are configured by an identifier and otherwise do nothing by themselves, whoever asks for it. */
export class FieldService<F extends FieldRows, Row extends RowOf<F>> {
  readonly path: string;
  readonly fields: FieldTable<F>;
  readonly store: FieldStore<F, Row>;
  readonly #options: FieldServiceOptions<F, Row>;

  constructor(options: FieldServiceOptions<F, Row>) {
    this.path = options.path;
    this.fields = options.fields;
    this.store = options.store;
    this.#options = options;
  }

  /** @throws {ApiError} 404 when there is none */
  existing(row: Row | undefined, id: string): Row {
    if (row === undefined) throw notFound(capital(this.fields.noun), id, this.path);
    return row;
  }

  /** @throws {ApiError} 409 when the identifier is taken, and what `asked` and `admit` refuse */
  async create(body: CreateOf<F>, by?: Caller): Promise<Row> {
    const { admit, keep } = this.#options;
    const { fields, store } = this;
    const id = fields.idOf(body);
    const taken = (): Error => conflict(`${capital(fields.noun)} ${JSON.stringify(id)} exists already`);
    // Before anything is made for it, and once more when it is stored.
    if ((await store.get(id)) !== undefined) throw taken();
    const asked = fields.asked(body);
    await admit?.(asked);
    const row = await store.create(id, await fields.values(asked, keep), this.audited(by));
    if (row === undefined) throw taken();
    this.say(id, 'created', by);
    return row;
  }

  /** @returns it as it is then @throws {ApiError} 404 when there is none, and what `changes` and `admit` refuse */
  async change(id: string, body: GivenOf<F>, by?: Caller): Promise<Row> {
    const { admit, keep } = this.#options;
    const { fields, store } = this;
    const before = this.existing(await store.get(id), id);
    const change = fields.changes(body, before);
    if (Object.keys(change).length === 0) return before;
    await admit?.(change);
    const values = await fields.values(change, keep);
    const row = this.existing(await store.update(id, values, undefined, this.audited(by)), id);
    this.say(id, 'changed', by, { fields: Object.keys(change) });
    return row;
  }

  audited(by: Caller | undefined): AuditChange<Row> {
    return this.#options.audit.change(this.fields, by);
  }

  /** Publishes that it is stored. */
  say(id: string, action: 'created' | 'changed' | 'deleted', by: Caller | undefined, more: object = {}): void {
    const what = this.fields.noun;
    const facts = { [logKey(what)]: id, ...more };
    this.#options.events.publish(CONFIGURATION_CHANGED, { what, action, facts, by, recorded: true });
  }
}

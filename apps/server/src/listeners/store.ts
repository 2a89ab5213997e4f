import { conflict, FieldStore, isCheckViolation } from '@pesit-node/service';
import type { AuditChange, AuditWrite } from '@pesit-node/service';
import type { Knex } from 'knex';

import { LISTENER } from './fields.js';
import type { ListenerRow, ListenerValues } from './fields.js';

/** A listener as it is configured, and as it is wanted on every pod. */
export interface StoredListener extends ListenerRow {
  /** See `WantedListener`. */
  readonly generation: number;
  readonly revision: number;
}

export class ListenerStore extends FieldStore<typeof LISTENER.rows, StoredListener> {
  constructor(knex: Knex) {
    super(knex, LISTENER);
  }

  /** @returns undefined when the identifier is taken. */
  add(
    id: string,
    values: Partial<ListenerValues>,
    wanted: boolean,
    audited?: AuditChange<StoredListener>,
  ): Promise<StoredListener | undefined> {
    const columns = { ...values, wanted };
    return this.create(id, columns, audited);
  }

  /** @returns undefined when there is none. @throws {ApiError} 409 when another pod has stored what does not go with it */
  async change(
    id: string,
    values: Partial<ListenerValues>,
    audited?: AuditChange<StoredListener>,
  ): Promise<StoredListener | undefined> {
    try {
      return await this.update(id, values, { revision: this.#next() }, audited);
    } catch (error) {
      if (!isCheckViolation(error)) throw error;
      const text = `Listener ${id} was changed by somebody else at the same time, and cannot be both: look at it, and try again`;
      throw conflict(text, { cause: error });
    }
  }

  /** Says that it is to run, or not to. @returns undefined when there is none. */
  want(id: string, wanted: boolean, audited?: AuditWrite): Promise<StoredListener | undefined> {
    const beside = { wanted: this.knex.raw('?', [wanted]), revision: this.#next() };
    return this.update(id, {}, beside, audited && ((trx) => audited(trx)));
  }

  /** Says that every pod is to restart it. @returns undefined when there is none that is to run. */
  async renew(id: string, audited?: AuditWrite): Promise<StoredListener | undefined> {
    const next = { generation: this.#next(), revision: this.#next(), updated_at: this.knex.fn.now() };
    return this.knex.transaction(async (trx) => {
      const rows = (await trx(LISTENER.table)
        .where({ server_id: id, wanted: true })
        .update(next)
        .returning('*')) as readonly StoredListener[];
      if (rows[0] !== undefined) await audited?.(trx);
      return rows[0];
    });
  }

  #next(): Knex.Raw {
    return this.knex.raw("nextval('listener_changes')");
  }
}

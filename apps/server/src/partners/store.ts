import type { Knex } from 'knex';

import type { AccessType } from './schema.js';

export interface PartnerRow {
  readonly partner_id: string;
  readonly name: string | null;
  readonly description: string | null;
  /** scrypt; never leaves the service. */
  readonly password_hash: string;
  readonly enabled: boolean;
  readonly access_type: AccessType;
  /** Sessions at a time; null = as many as the listener takes. */
  readonly max_connections: number | null;
  readonly last_connection: Date | null;
  readonly transfer_count: number;
}

/** What the administrator sets. */
export type PartnerValues = Omit<PartnerRow, 'partner_id' | 'last_connection' | 'transfer_count'>;

export class PartnerStore {
  readonly #knex: Knex;

  constructor(knex: Knex) {
    this.#knex = knex;
  }

  async list(): Promise<readonly PartnerRow[]> {
    return this.#knex<PartnerRow>('partners').orderBy('partner_id');
  }

  async get(id: string): Promise<PartnerRow | undefined> {
    return this.#knex<PartnerRow>('partners').where('partner_id', id).first();
  }

  /** @returns undefined when the identifier is taken. */
  async create(id: string, values: PartnerValues): Promise<PartnerRow | undefined> {
    const rows = await this.#knex<PartnerRow>('partners')
      .insert({ partner_id: id, ...values })
      .onConflict('partner_id')
      .ignore()
      .returning('*');
    return rows[0];
  }

  async update(id: string, values: Partial<PartnerValues>): Promise<PartnerRow | undefined> {
    const rows = await this.#knex('partners')
      .where('partner_id', id)
      .update({ ...values, updated_at: this.#knex.fn.now() })
      .returning<PartnerRow[]>('*');
    return rows[0];
  }

  async delete(id: string): Promise<boolean> {
    return (await this.#knex('partners').where('partner_id', id).delete()) > 0;
  }

  /** Sessions of these partners were accepted now. */
  async connected(ids: readonly string[]): Promise<void> {
    await this.#knex('partners').whereIn('partner_id', ids).update({ last_connection: this.#knex.fn.now() });
  }
}

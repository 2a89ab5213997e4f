import type { Knex } from 'knex';

import type { TcpipHeader } from './schema.js';

/** A listener as configured; null: the default of the configuration. */
export interface ListenerRow {
  readonly server_id: string;
  readonly port: number;
  readonly auto_start: boolean;
  readonly max_connections: number;
  /** Milliseconds. */
  readonly read_timeout: number;
  readonly receive_directory: string | null;
  readonly send_directory: string | null;
  readonly strict_server_id: boolean;
  readonly tcpip_header: TcpipHeader;
  readonly max_entity_size: number | null;
  /** KB; 0 = no sync points. */
  readonly sync_interval: number | null;
  readonly sync_window: number | null;
  /** Transfers completed on it, ever. */
  readonly total_transfers: number;
}

export type ListenerValues = Omit<ListenerRow, 'server_id' | 'total_transfers'>;

export class ListenerStore {
  readonly #knex: Knex;

  constructor(knex: Knex) {
    this.#knex = knex;
  }

  async list(): Promise<readonly ListenerRow[]> {
    return this.#knex<ListenerRow>('listeners').orderBy('server_id');
  }

  async get(id: string): Promise<ListenerRow | undefined> {
    return this.#knex<ListenerRow>('listeners').where('server_id', id).first();
  }

  /** @returns undefined when the identifier is taken. */
  async create(id: string, values: ListenerValues): Promise<ListenerRow | undefined> {
    const rows = await this.#knex('listeners')
      .insert({ server_id: id, ...values })
      .onConflict('server_id')
      .ignore()
      .returning<ListenerRow[]>('*');
    return rows[0];
  }

  async update(id: string, values: Partial<ListenerValues>): Promise<ListenerRow | undefined> {
    const rows = await this.#knex('listeners')
      .where('server_id', id)
      .update({ ...values, updated_at: this.#knex.fn.now() })
      .returning<ListenerRow[]>('*');
    return rows[0];
  }

  async delete(id: string): Promise<boolean> {
    return (await this.#knex('listeners').where('server_id', id).delete()) > 0;
  }
}

import type { Knex } from 'knex';

import type { FileDirection } from './schema.js';

/** Null: not set by the administrator. */
export interface VirtualFileRow {
  readonly file_id: string;
  readonly name: string | null;
  readonly description: string | null;
  readonly direction: FileDirection;
  readonly enabled: boolean;
  readonly receive_directory: string | null;
  /** May name one file. */
  readonly send_directory: string | null;
  readonly filename_pattern: string | null;
  readonly receive_filename_pattern: string | null;
  readonly overwrite: boolean;
  readonly record_length: number | null;
  readonly record_format: 0 | 128 | null;
  readonly text: boolean;
}

export type VirtualFileValues = Omit<VirtualFileRow, 'file_id'>;

export class VirtualFileStore {
  readonly #knex: Knex;

  constructor(knex: Knex) {
    this.#knex = knex;
  }

  async list(): Promise<readonly VirtualFileRow[]> {
    return this.#knex<VirtualFileRow>('virtual_files').orderBy('file_id');
  }

  async get(id: string): Promise<VirtualFileRow | undefined> {
    return this.#knex<VirtualFileRow>('virtual_files').where('file_id', id).first();
  }

  /** @returns undefined when the identifier is taken. */
  async create(id: string, values: VirtualFileValues): Promise<VirtualFileRow | undefined> {
    const rows = await this.#knex('virtual_files')
      .insert({ file_id: id, ...values })
      .onConflict('file_id')
      .ignore()
      .returning<VirtualFileRow[]>('*');
    return rows[0];
  }

  async update(id: string, values: Partial<VirtualFileValues>): Promise<VirtualFileRow | undefined> {
    const rows = await this.#knex('virtual_files')
      .where('file_id', id)
      .update({ ...values, updated_at: this.#knex.fn.now() })
      .returning<VirtualFileRow[]>('*');
    return rows[0];
  }

  async delete(id: string): Promise<boolean> {
    return (await this.#knex('virtual_files').where('file_id', id).delete()) > 0;
  }
}

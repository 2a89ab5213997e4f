import type { Durability } from '@pesit-node/storage';
import type { Knex } from 'knex';

import { ConfiguredStore } from '../configured-store.js';
import type { AccessType } from '../partners/schema.js';
import type { Compression } from './format.js';
import type { FileDirection } from './schema.js';

/** What a partner may do with a virtual file now; undefined: does not exist. */
export interface FileAccess {
  readonly file: VirtualFileRow | undefined;
  readonly partner:
    | { readonly enabled: boolean; readonly access: AccessType; readonly allowed_files: readonly string[] | null }
    | undefined;
}

/** Null: not set by the administrator. */
export interface VirtualFileRow {
  readonly file_id: string;
  readonly name: string | null;
  readonly description: string | null;
  readonly direction: FileDirection;
  readonly enabled: boolean;
  /** Identifiers and globs; null: nothing is said. */
  readonly allowed_partners: readonly string[] | null;
  readonly receive_directory: string | null;
  /** May name one file. */
  readonly send_directory: string | null;
  readonly filename_pattern: string | null;
  readonly receive_filename_pattern: string | null;
  readonly overwrite: boolean;
  readonly record_length: number | null;
  readonly record_format: 0 | 128 | null;
  readonly text: boolean;
  readonly durability: Durability | null;
  readonly compression: Compression;
  /** Of a text file: its articles are EBCDIC. */
  readonly ebcdic: boolean;
  /** Null: 037. */
  readonly code_page: string | null;
}

export type VirtualFileValues = Omit<VirtualFileRow, 'file_id'>;

export class VirtualFileStore extends ConfiguredStore<VirtualFileRow, VirtualFileValues> {
  constructor(knex: Knex) {
    super(knex, { table: 'virtual_files', key: 'file_id' });
  }

  /** Both in one round trip: it is asked for every file of every session. */
  async access(id: string, partnerId: string): Promise<FileAccess> {
    const { rows } = await this.knex.raw<{
      rows: (VirtualFileRow & {
        partner_enabled: boolean | null;
        partner_access: AccessType;
        allowed_files: readonly string[] | null;
      })[];
    }>(
      `select f.*, p.enabled as partner_enabled, p.access_type as partner_access, p.allowed_files from (values (1)) as one
       left join virtual_files f on f.file_id = ? left join partners p on p.partner_id = ?`,
      [id, partnerId],
    );
    const [row] = rows;
    if (row === undefined) throw new Error('a left join of one row gives one row');
    const { partner_enabled: enabled, partner_access: access, allowed_files, ...file } = row;
    return {
      file: (file.file_id as string | null) === null ? undefined : file,
      partner: enabled === null ? undefined : { enabled, access, allowed_files },
    };
  }
}

import { FieldStore } from '@pesit-node/service';
import type { Knex } from 'knex';

import type { AccessType } from '../partners/fields.js';
import { VIRTUAL_FILE } from './fields.js';
import type { VirtualFileRow } from './fields.js';

/** What a partner may do with a virtual file now; undefined: does not exist. */
export interface FileAccess {
  readonly file: VirtualFileRow | undefined;
  readonly partner:
    | { readonly enabled: boolean; readonly access: AccessType; readonly allowed_files: readonly string[] | null }
    | undefined;
}

export class VirtualFileStore extends FieldStore<typeof VIRTUAL_FILE.rows> {
  constructor(knex: Knex) {
    super(knex, VIRTUAL_FILE);
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

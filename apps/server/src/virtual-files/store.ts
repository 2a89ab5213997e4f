import { FieldStore, hotStatement } from '@pesit-node/service';
import type { Knex } from 'knex';

import type { PartnerRow, PartnerStanding } from '../partners/fields.js';
import { VIRTUAL_FILE } from './fields.js';
import type { VirtualFileRow } from './fields.js';

/** A virtual file and a partner as they are now; undefined: does not exist. */
export interface FileAccess {
  readonly file: VirtualFileRow | undefined;
  readonly partner: PartnerStanding | undefined;
  /** Quota of the partner. */
  readonly quota: Pick<PartnerRow, 'quota_bytes' | 'quota_files'>;
}

type AccessRow = VirtualFileRow &
  Omit<PartnerStanding, 'partner_id' | 'enabled'> &
  FileAccess['quota'] & {
    readonly partner_id: string | null;
    readonly partner_enabled: boolean;
  };

/** Every file asks for it. */
const findAccess = hotStatement<AccessRow>(
  'server_access',
  `
  select ${VIRTUAL_FILE.columns.map((column) => `f.${column}`).join(', ')},
    p.partner_id, p.enabled as partner_enabled, p.credentials, p.access_type, p.allowed_files, p.allowed_listeners,
    p.allowed_addresses, p.max_bytes_per_second, p.tls_required, p.certificate_fingerprint, p.certificate_subject, p.certificate_san, p.quota_bytes, p.quota_files
  from (values (1)) as one left join virtual_files f on f.file_id = :file left join partners p on p.partner_id = :partner`,
);

export class VirtualFileStore extends FieldStore<typeof VIRTUAL_FILE.rows> {
  constructor(knex: Knex) {
    super(knex, VIRTUAL_FILE);
  }

  /** Both in one round trip: it is asked for every file of every session. */
  async access(id: string, partnerId: string): Promise<FileAccess> {
    const [row] = await findAccess(this.knex, { file: id, partner: partnerId });
    if (row === undefined) throw new Error('a left join of one row gives one row');
    const {
      partner_id,
      partner_enabled: enabled,
      credentials,
      access_type,
      allowed_files,
      allowed_listeners,
      allowed_addresses,
      max_bytes_per_second,
      tls_required,
      certificate_fingerprint,
      certificate_subject,
      certificate_san,
      quota_bytes,
      quota_files,
      ...file
    } = row;
    const bound = { tls_required, certificate_fingerprint, certificate_subject, certificate_san };
    const rights = {
      enabled,
      credentials,
      access_type,
      allowed_files,
      allowed_listeners,
      allowed_addresses,
      max_bytes_per_second,
      ...bound,
    };
    return {
      file: (file.file_id as string | null) === null ? undefined : file,
      partner: partner_id === null ? undefined : { partner_id, ...rights },
      quota: { quota_bytes, quota_files },
    };
  }
}

import { Batches, FieldStore, hotStatement, oncePerKey } from '@pesit-node/service';
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
    /** Which of the requests, from 1. */
    readonly n: number;
    readonly partner_id: string | null;
    readonly partner_enabled: boolean;
  };

/** Which virtual file which partner asks for. */
interface AccessRequest {
  readonly file: string;
  readonly partner: string;
}

/** Every file asks for it. The inner `select` hides how many are asked for, as in `server_partner`. */
const findAccess = hotStatement<AccessRow>(
  'server_access',
  `
  select ${VIRTUAL_FILE.columns.map((column) => `f.${column}`).join(', ')}, g.n,
    p.partner_id, p.enabled as partner_enabled, p.credentials, p.access_type, p.allowed_files, p.allowed_listeners,
    p.allowed_addresses, p.max_bytes_per_second, p.tls_required, p.certificate_fingerprint, p.certificate_subject, p.certificate_san, p.quota_bytes, p.quota_files
  from unnest((select :files::text[]), (select :partners::text[])) with ordinality as g (file, partner, n)
    left join virtual_files f on f.file_id = g.file left join partners p on p.partner_id = g.partner`,
);

/** The number of the request, and its answer. */
const accessOf = (row: AccessRow): readonly [n: number, access: FileAccess] => {
  const {
    n,
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
  const access = {
    file: (file.file_id as string | null) === null ? undefined : file,
    partner: partner_id === null ? undefined : { partner_id, ...rights },
    quota: { quota_bytes, quota_files },
  };
  return [n, access];
};

export class VirtualFileStore extends FieldStore<typeof VIRTUAL_FILE.rows> {
  readonly #accesses: Batches<AccessRequest, FileAccess>;

  /** @param underWay transfers of this process. Default: none is known, nobody waits for company. */
  constructor(knex: Knex, underWay?: () => number) {
    super(knex, VIRTUAL_FILE);
    const run = oncePerKey<AccessRequest, FileAccess>(
      ({ file, partner }) => JSON.stringify([file, partner]),
      async (requests) => {
        const files = requests.map(({ file }) => file);
        const partners = requests.map(({ partner }) => partner);
        const found = new Map((await findAccess(knex, { files, partners })).map(accessOf));
        return requests.map((_, index) => {
          const access = found.get(index + 1);
          if (access === undefined) throw new Error('a left join gives a row for each request');
          return access;
        });
      },
    );
    this.#accesses = new Batches({ run, underWay });
  }

  /**
   * Both as they are when this is called, or later, in one round trip: it is asked for every file of every session. Several callers share
   * a statement, and those that ask for the same the answer.
   */
  access(file: string, partner: string): Promise<FileAccess> {
    return this.#accesses.add({ file, partner });
  }
}

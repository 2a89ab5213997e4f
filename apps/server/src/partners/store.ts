import { Batches, FieldStore, hotStatement, oncePerKey } from '@pesit-node/service';
import type { AuditChange, AuditWrite, ValuesOf } from '@pesit-node/service';
import type { Knex } from 'knex';

import { PARTNER } from './fields.js';
import type { PartnerRow, PartnerStanding } from './fields.js';
import type { PartnerSeen } from './seen.js';

/** The columns that hold hashes of passwords. */
export type PasswordColumn = 'password_hash' | 'preconnect_password_hash';

type PartnerValues = Partial<ValuesOf<typeof PARTNER.rows>>;

/**
 * Every session asks for it; the columns beside those of fields are the service's own. The inner `select` hides from the planner how many
 * are asked for: it would plan anew each time, for a plan that seems better for just so many.
 */
const find = hotStatement<PartnerRow>(
  'server_partner',
  `select ${[...PARTNER.columns, 'seen', 'credentials'].join(', ')} from partners
   where partner_id = any ((select :ids::text[])::text[])`,
);

const connected = hotStatement(
  'server_partners_connected',
  `update partners p set last_connection = now(), seen = p.seen || v.seen::jsonb
   from unnest(:ids::text[], :seen::text[]) as v (partner_id, seen) where p.partner_id = v.partner_id`,
);

const TLS_COLUMNS = ['certificate_fingerprint', 'certificate_subject', 'certificate_san'] as const;

/** Whether open sessions have to be looked at when these change. */
const concernsSessions = (values: PartnerValues): boolean =>
  values.enabled === false ||
  values.allowed_listeners !== undefined ||
  Array.isArray(values.allowed_addresses) ||
  values.max_bytes_per_second !== undefined ||
  values.tls_required === true ||
  TLS_COLUMNS.some((column) => Array.isArray(values[column])) ||
  renewal(values) !== undefined;

/**
 * When the values make other credentials of what a partner has: a password that is given, the same one too; a pre-connection
 * that is asked for; an operation that is lost. SQL over the row as it was; undefined: never.
 */
const renewal = (
  values: PartnerValues,
): { readonly when: string; readonly bindings: readonly string[] } | undefined => {
  const { password_hash, preconnect_id, preconnect_password_hash, access_type } = values;
  if (password_hash !== undefined || typeof preconnect_password_hash === 'string')
    return { when: 'true', bindings: [] };
  const cases: readonly (readonly [when: string, value: string])[] = [
    ...(typeof preconnect_id === 'string' ? [['preconnect_id is distinct from ?', preconnect_id] as const] : []),
    ...(access_type === undefined || access_type === 'BOTH' ? [] : [['access_type <> ?', access_type] as const]),
  ];
  if (cases.length === 0) return undefined;
  return { when: cases.map(([when]) => when).join(' or '), bindings: cases.map(([, value]) => value) };
};

export class PartnerStore extends FieldStore<typeof PARTNER.rows, PartnerRow> {
  readonly #changed: () => Promise<void>;
  readonly #found: Batches<string, PartnerRow | undefined>;

  /**
   * @param changed awaited when something changed for which sessions may have to end; never rejects. Default: nothing.
   * @param underWay transfers of this process. Default: none is known, nobody waits for company.
   */
  constructor(knex: Knex, changed: () => Promise<void> = () => Promise.resolve(), underWay?: () => number) {
    super(knex, PARTNER);
    this.#changed = changed;
    const run = oncePerKey<string, PartnerRow | undefined>(
      (id) => id,
      async (ids) => {
        const found = new Map((await find(knex, { ids })).map((row) => [row.partner_id, row]));
        return ids.map((id) => found.get(id));
      },
    );
    this.#found = new Batches({ run, underWay });
  }

  /** As it is when this is called, or later; several callers share a statement, and the row. */
  override get(id: string): Promise<PartnerRow | undefined> {
    return this.#found.add(id);
  }

  /** Stores a change by an administrator. A hash of the same password, made anew, does not go this way: it ends no session. */
  override async update(
    id: string,
    values: PartnerValues,
    _beside: undefined,
    audited?: AuditChange<PartnerRow>,
  ): Promise<PartnerRow | undefined> {
    const row = await super.update(id, values, this.#beside(values), audited);
    if (row !== undefined && concernsSessions(values)) await this.#changed();
    return row;
  }

  override async delete(
    id: string,
    audited?: AuditChange<PartnerRow>,
    check?: (knex: Knex, row: PartnerRow) => Promise<void>,
  ): Promise<boolean> {
    const deleted = await super.delete(id, audited, check);
    if (deleted) await this.#changed();
    return deleted;
  }

  /** Those that come with this identifier of a pre-connection. */
  async withPreconnection(identifier: string): Promise<readonly PartnerRow[]> {
    return this.knex<PartnerRow>('partners').where('preconnect_id', identifier);
  }

  /** How these partners stand now, in one statement; those that no longer exist are left out. */
  async standings(ids: readonly string[]): Promise<readonly PartnerStanding[]> {
    const { rows } = await this.knex.raw<{ rows: PartnerStanding[] }>(
      `select partner_id, credentials, enabled, access_type, allowed_files, allowed_listeners,
         allowed_addresses, max_bytes_per_second, tls_required, certificate_fingerprint, certificate_subject, certificate_san from partners
       where partner_id = any(?::text[])`,
      [[...ids]],
    );
    return rows;
  }

  /** These partners are connected now, and this was seen of them; what was seen before and is not named stays. */
  async connected(seen: ReadonlyMap<string, PartnerSeen>): Promise<void> {
    const values = [...seen.values()].map((value) => JSON.stringify(value));
    await connected(this.knex, { ids: [...seen.keys()], seen: values });
  }

  /**
   * Another password, as the partner has asked: everything that hangs on the old one ends.
   * @returns the partner as it is then; undefined when another password was given meanwhile, which stays
   */
  async changePassword(
    partnerId: string,
    before: string,
    after: string,
    audited: AuditWrite,
  ): Promise<PartnerRow | undefined> {
    const row = await this.knex.transaction(async (trx) => {
      const change = { password_hash: after, credentials: trx.raw('gen_random_uuid()'), updated_at: trx.fn.now() };
      const rows = (await trx('partners')
        .where({ partner_id: partnerId, password_hash: before })
        .update(change)
        .returning('*')) as PartnerRow[];
      if (rows[0] !== undefined) await audited(trx);
      return rows[0];
    });
    if (row !== undefined) await this.#changed();
    return row;
  }

  /**
   * The same password is stored as another hash: nothing of the partner changes.
   * @returns false when another password was given meanwhile, which stays
   */
  async renewHash(partnerId: string, column: PasswordColumn, before: string, after: string): Promise<boolean> {
    const row = { partner_id: partnerId, [column]: before };
    return (
      (await this.knex('partners')
        .where(row)
        .update({ [column]: after })) > 0
    );
  }

  #beside(values: PartnerValues): Readonly<Record<string, Knex.Raw>> {
    const renewed = renewal(values);
    if (renewed === undefined) return {};
    const { when, bindings } = renewed;
    return {
      credentials: this.knex.raw(`case when ${when} then gen_random_uuid() else credentials end`, [...bindings]),
    };
  }
}

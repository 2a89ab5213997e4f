import { FieldStore } from '@pesit-node/service';
import type { Knex } from 'knex';

import { PARTNER } from './fields.js';
import type { PartnerRow } from './fields.js';
import type { PartnerSeen } from './seen.js';

/** The columns that hold hashes of passwords. */
export type PasswordColumn = 'password_hash' | 'preconnect_password_hash';

export class PartnerStore extends FieldStore<typeof PARTNER.rows, PartnerRow> {
  constructor(knex: Knex) {
    super(knex, PARTNER);
  }

  /** Those that come with this identifier of a pre-connection. */
  async withPreconnection(identifier: string): Promise<readonly PartnerRow[]> {
    return this.knex<PartnerRow>('partners').where('preconnect_id', identifier);
  }

  /** These partners are connected now, and this was seen of them; what was seen before and is not named stays. */
  async connected(seen: ReadonlyMap<string, PartnerSeen>): Promise<void> {
    await this.knex.raw(
      `update partners p set last_connection = now(), seen = p.seen || v.seen::jsonb
       from unnest(?::text[], ?::text[]) as v (partner_id, seen) where p.partner_id = v.partner_id`,
      [[...seen.keys()], [...seen.values()].map((value) => JSON.stringify(value))],
    );
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
}

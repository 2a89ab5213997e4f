import type { Knex } from 'knex';

import { ConfiguredStore } from '../configured-store.js';
import type { AccessType } from './schema.js';
import type { PartnerSeen } from './seen.js';

export interface PartnerRow {
  readonly partner_id: string;
  readonly name: string | null;
  readonly description: string | null;
  /** scrypt; never leaves the service. */
  readonly password_hash: string;
  readonly enabled: boolean;
  readonly access_type: AccessType;
  /** Identifiers and globs; null: nothing is said. */
  readonly allowed_files: readonly string[] | null;
  readonly allowed_listeners: readonly string[] | null;
  /** Sessions at a time; null = as many as the listener takes. */
  readonly max_connections: number | null;
  /** Null: no pre-connection is asked of it. */
  readonly preconnect_id: string | null;
  /** scrypt; null: the identifier is enough. */
  readonly preconnect_password_hash: string | null;
  /** Null: it is sent several articles in one DTF, and several FPDUs of data in one entity. */
  readonly multi_article: boolean | null;
  readonly concatenation: boolean | null;
  readonly seen: PartnerSeen;
  /** Its sessions are traced until then; null: they are not. */
  readonly trace_until: Date | null;
  readonly last_connection: Date | null;
  readonly transfer_count: number;
}

/** What the administrator sets. */
export type PartnerValues = Omit<
  PartnerRow,
  'partner_id' | 'seen' | 'trace_until' | 'last_connection' | 'transfer_count'
>;

export class PartnerStore extends ConfiguredStore<PartnerRow, PartnerValues> {
  constructor(knex: Knex) {
    super(knex, { table: 'partners', key: 'partner_id' });
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
}

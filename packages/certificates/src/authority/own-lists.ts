import type { Knex } from 'knex';

import type { OwnLists, RevocationList } from '../trust.js';
import type { IssuedRow } from './store.js';

/** Certificates that CAs of this app have taken back, as their table says it: newer than any CRL, and without an end. */
export const ownLists =
  (knex: Knex): OwnLists =>
  async (cas) => {
    const own = await knex('authorities')
      .whereIn('certificate', [...cas])
      .select<{ readonly id: number; readonly certificate: string }[]>('id', 'certificate');
    const lists = new Map<string, RevocationList>();
    for (const { id, certificate } of own) {
      const rows = await knex('issued_certificates')
        .where({ authority: id })
        .whereNotNull('revoked_at')
        .select<Pick<IssuedRow, 'serial' | 'revoked_at' | 'reason'>[]>('serial', 'revoked_at', 'reason');
      const revoked = new Map(rows.map((row) => [row.serial, row]));
      lists.set(certificate, {
        ...{ thisUpdate: 0, nextUpdate: undefined, number: undefined, isPartial: false },
        find: (serial) => {
          const row = revoked.get(serial.toUpperCase());
          return row && { revoked: { at: row.revoked_at?.getTime(), reason: row.reason ?? 'unspecified' } };
        },
      });
    }
    return lists;
  };

/** Every pod looks anew at the truststores that hold this CA. @param id of it */
export const outdateTruststores = async (knex: Knex, id: number): Promise<void> => {
  const ca = knex('authorities').where({ id }).select('certificate');
  await knex('truststores')
    .whereRaw('position((?) in certificates) > 0', [ca])
    .update({ version: knex.raw("nextval('store_versions')") });
};

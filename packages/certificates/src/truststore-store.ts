import { FieldStore } from '@pesit-node/service';
import type { AuditChange, ValuesOf } from '@pesit-node/service';
import type { Knex } from 'knex';

import { TRUSTSTORE } from './fields.js';
import type { CrlFetch, TruststoreRow } from './fields.js';

type TruststoreValues = Partial<ValuesOf<typeof TRUSTSTORE.rows>>;

/** All but the CRL itself, which may be large. */
const FETCH_COLUMNS = [
  ...['truststore', 'url', 'fetched_at', 'this_update', 'next_update', 'number', 'entries', 'bytes'],
  ...['etag', 'last_modified', 'failures', 'error', 'next_try'],
] as const;

type StoredFetch = CrlFetch & { readonly truststore: string };

/** Truststores in the database, with the CRLs that were fetched for them. */
export class TruststoreStore extends FieldStore<typeof TRUSTSTORE.rows, TruststoreRow> {
  constructor(knex: Knex) {
    super(knex, TRUSTSTORE);
  }

  override async list(): Promise<readonly TruststoreRow[]> {
    const [rows, fetches] = [await super.list(), await this.#fetches({})];
    return rows.map((row) => ({ ...row, fetches: fetches.filter(({ truststore }) => truststore === row.name) }));
  }

  override async get(name: string): Promise<TruststoreRow | undefined> {
    const row = await super.get(name);
    return row && { ...row, fetches: await this.#fetches({ truststore: name }) };
  }

  /** CRLs that were fetched for it, DER. */
  async fetchedCrls(name: string): Promise<readonly Buffer[]> {
    const rows = await this.knex('fetched_crls')
      .where({ truststore: name })
      .whereNotNull('crl')
      .orderBy('url')
      .select<{ readonly crl: Buffer }[]>('crl');
    return rows.map(({ crl }) => crl);
  }

  /** @returns undefined when there is no such truststore */
  async change(
    name: string,
    values: TruststoreValues,
    audited?: AuditChange<TruststoreRow>,
  ): Promise<TruststoreRow | undefined> {
    return this.knex.transaction(async (trx) => {
      const store = new TruststoreStore(trx);
      const before = audited && ((await trx(TRUSTSTORE.table).where({ name }).forUpdate().first()) as TruststoreRow);
      const row = await store.update(name, values, { version: trx.raw("nextval('store_versions')") });
      // A CRL of an address that is no longer named counts no longer.
      const left = trx('fetched_crls').where({ truststore: name });
      if (values.crl_urls !== undefined) await left.whereNotIn('url', values.crl_urls).delete();
      const after = row && (await store.get(name));
      if (before !== undefined && row !== undefined) await audited?.(trx, before, row);
      return after;
    });
  }

  #fetches(where: Partial<Pick<StoredFetch, 'truststore'>>): Promise<readonly StoredFetch[]> {
    return this.knex('fetched_crls')
      .where(where)
      .select<StoredFetch[]>([...FETCH_COLUMNS]);
  }
}

import { FieldStore } from '@pesit-node/service';
import type { ValuesOf } from '@pesit-node/service';
import type { Knex } from 'knex';

import { TRUSTSTORE } from './fields.js';
import type { TruststoreRow } from './fields.js';

type TruststoreValues = Partial<ValuesOf<typeof TRUSTSTORE.rows>>;

/** Truststores in the database. */
export class TruststoreStore extends FieldStore<typeof TRUSTSTORE.rows, TruststoreRow> {
  constructor(knex: Knex) {
    super(knex, TRUSTSTORE);
  }

  /** @returns undefined when there is no such truststore */
  change(name: string, values: TruststoreValues): Promise<TruststoreRow | undefined> {
    return this.update(name, values, { version: this.knex.raw("nextval('store_versions')") });
  }
}

import { FieldStore, SecretError } from '@pesit-node/service';
import type { AuditChange, SecretBox } from '@pesit-node/service';
import type { Knex } from 'knex';

import { KEYSTORE } from './fields.js';
import type { KeystoreRow } from './fields.js';
import type { IdentityMaterial } from './read/identity.js';

/** The contents of a keystore. */
export type StoredIdentity = Pick<IdentityMaterial, 'certificate' | 'privateKey'>;

/** A seal opens for the keystore alone that it was made for. */
const contextOf = (name: string): string => JSON.stringify(['keystore', name, 'private-key']);

/** Keystores in the database; their private keys are sealed on the way in. */
export class KeystoreStore extends FieldStore<typeof KEYSTORE.rows, KeystoreRow> {
  readonly #secrets: SecretBox;

  constructor(knex: Knex, secrets: SecretBox) {
    super(knex, KEYSTORE);
    this.#secrets = secrets;
  }

  /** @returns undefined when the name is taken */
  add(name: string, material: StoredIdentity, audited?: AuditChange<KeystoreRow>): Promise<KeystoreRow | undefined> {
    return this.create(name, this.#columns(name, material), audited);
  }

  /**
   * Puts another identity in its place.
   * @param managed whether the local CA renews it from now on
   * @returns undefined when there is no such keystore
   */
  replace(
    name: string,
    material: StoredIdentity,
    managed = false,
    audited?: AuditChange<KeystoreRow>,
  ): Promise<KeystoreRow | undefined> {
    const beside = {
      version: this.knex.raw("nextval('store_versions')"),
      managed: this.knex.raw(managed ? 'true' : 'false'),
    };
    return this.update(name, this.#columns(name, material), beside, audited);
  }

  /** The private key, PEM. @throws {SecretError} when its key is not in `secrets.key` */
  privateKeyOf({ name, private_key: sealed }: Pick<KeystoreRow, 'name' | 'private_key'>): string {
    return this.#secrets.open(sealed, contextOf(name));
  }

  /** Seals anew what an older key has sealed. May run beside anything else, and again. */
  async sealAnew(): Promise<{ readonly sealed: number; readonly unreadable: readonly string[] }> {
    let sealed = 0;
    const unreadable: string[] = [];
    for (const row of await this.list()) {
      const { name, private_key: before } = row;
      if (!this.#secrets.isStale(before)) continue;
      try {
        const after = this.#secrets.seal(this.privateKeyOf(row), contextOf(name));
        // Who gave another key meanwhile has the last word.
        sealed += await this.knex(KEYSTORE.table).where({ name, private_key: before }).update({ private_key: after });
      } catch (error) {
        if (!(error instanceof SecretError)) throw error;
        unreadable.push(name);
      }
    }
    return { sealed, unreadable };
  }

  #columns(name: string, { certificate, privateKey }: StoredIdentity) {
    return { certificate, private_key: this.#secrets.seal(privateKey, contextOf(name)) };
  }
}

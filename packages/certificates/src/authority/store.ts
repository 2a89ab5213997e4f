import { X509Certificate } from 'node:crypto';

import { SecretError } from '@pesit-node/service';
import type { SecretBox } from '@pesit-node/service';
import type { Knex } from 'knex';

import { importKey } from './keys.js';
import type { KeyType } from './keys.js';
import type { IssueKind, Signer } from './make.js';
import type { Reason } from './reasons.js';

export interface AuthorityRow {
  readonly id: number;
  readonly certificate: string;
  readonly private_key: string;
  readonly permitted_domains: readonly string[];
  readonly crl_url: string | null;
  readonly ocsp_url: string | null;
  readonly crl: Buffer | null;
  readonly crl_number: number;
  readonly crl_next_update: Date | null;
  readonly created_at: Date;
  readonly replaced_at: Date | null;
}

/** The wishes that a certificate was issued for: enough to issue the next one. */
export interface IssueRequest {
  readonly commonName: string;
  readonly sans: readonly string[];
  readonly ttlDays: number;
  readonly kind: IssueKind;
  readonly keyType: KeyType;
}

export interface IssuedRow {
  readonly serial: string;
  readonly authority: number;
  readonly name: string;
  readonly kind: IssueKind;
  readonly certificate: string;
  readonly keystore: string | null;
  readonly request: IssueRequest;
  readonly not_before: Date;
  readonly not_after: Date;
  readonly revoked_at: Date | null;
  readonly reason: Reason | null;
  readonly issued_at: Date;
}

/** A seal opens for the CA alone whose key it is. */
const contextOf = (certificate: string): string =>
  JSON.stringify(['authority', new X509Certificate(certificate).fingerprint256, 'private-key']);

export const sealCaKey = (secrets: SecretBox, certificate: string, privateKey: string): string =>
  secrets.seal(privateKey, contextOf(certificate));

/** @throws {SecretError} */
export const signerOf = async (secrets: SecretBox, row: AuthorityRow): Promise<Signer> => ({
  certificate: row.certificate,
  key: await importKey(secrets.open(row.private_key, contextOf(row.certificate))),
  crlUrl: row.crl_url,
  ocspUrl: row.ocsp_url,
});

/** The CA that issues now. @param lock until the transaction ends, against another CRL or another CA */
export const currentAuthority = async (knex: Knex, lock = false): Promise<AuthorityRow | undefined> => {
  const query = knex('authorities').whereNull('replaced_at');
  return (lock ? query.forUpdate() : query).first<AuthorityRow | undefined>();
};

/** Seals the keys of CAs anew that an older key has sealed. */
export const sealAuthoritiesAnew = async (knex: Knex, secrets: SecretBox) => {
  let sealed = 0;
  const unreadable: string[] = [];
  for (const { id, certificate, private_key: before } of await knex<AuthorityRow>('authorities')) {
    if (!secrets.isStale(before)) continue;
    try {
      const after = sealCaKey(secrets, certificate, secrets.open(before, contextOf(certificate)));
      sealed += await knex('authorities').where({ id }).update({ private_key: after });
    } catch (error) {
      if (!(error instanceof SecretError)) throw error;
      unreadable.push(`CA ${id}`);
    }
  }
  return { sealed, unreadable };
};

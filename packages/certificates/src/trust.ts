import { X509Certificate } from 'node:crypto';

import { readCrl, signersOf } from './read/crl.js';
import type { Crl } from './read/crl.js';
import { revokedOf } from './read/crl-entries.js';
import type { Revoked } from './read/crl-entries.js';

/** A CA's word on the certificates that it has taken back: one CRL, or the table of the local CA. */
export interface RevocationList extends Pick<Crl, 'thisUpdate' | 'nextUpdate' | 'number' | 'isPartial'> {
  /** @returns undefined: it does not name this serial (hex); `revoked` undefined: it says that the certificate was released */
  readonly find: (serial: string) => { readonly revoked: Revoked | undefined } | undefined;
}

/** Those who may vouch for a peer, and what they have taken back. */
export interface Trust {
  /** PEM, one each. */
  readonly certificates: readonly string[];
  readonly cas: readonly X509Certificate[];
  /** By the fingerprint of the CA that says so, the newest first. */
  readonly lists: ReadonlyMap<string, readonly RevocationList[]>;
}

/** Certificates of these CAs (PEM) that this app issued itself and has taken back, by the PEM of the CA. */
export type OwnLists = (cas: readonly string[]) => Promise<ReadonlyMap<string, RevocationList>>;

const newestFirst = (one: RevocationList, other: RevocationList): number => {
  if (one.number !== undefined && other.number !== undefined && one.number !== other.number) {
    return one.number < other.number ? 1 : -1;
  }
  return other.thisUpdate - one.thisUpdate;
};

const listOf = async (crl: Crl): Promise<RevocationList> => {
  const { thisUpdate, nextUpdate, number, isPartial } = crl;
  const index = await crl.entries();
  return {
    ...{ thisUpdate, nextUpdate, number, isPartial },
    find: (serial) => {
      const entry = index.find(serial);
      return entry && { revoked: revokedOf(entry) };
    },
  };
};

/**
 * Reads what a truststore holds. Nothing of it blocks for long, whatever the size of the CRLs: their signatures are checked by threads, and
 * their entries are read in turns.
 * @param certificates PEM, one each
 * @param crls DER; those that none of the CAs signed are left out
 */
export const readTrust = async (
  certificates: readonly string[],
  crls: readonly Buffer[],
  own: OwnLists = () => Promise.resolve(new Map()),
): Promise<Trust> => {
  const cas = certificates.map((pem) => new X509Certificate(pem));
  const lists = new Map<string, RevocationList[]>();
  for (const der of crls) {
    const crl = readCrl(der);
    const signers = await signersOf(crl, cas);
    const list = signers.length === 0 ? undefined : await listOf(crl);
    for (const { fingerprint256 } of signers) {
      if (list !== undefined) lists.set(fingerprint256, [...(lists.get(fingerprint256) ?? []), list].sort(newestFirst));
    }
  }
  for (const [pem, list] of await own(certificates)) {
    const { fingerprint256 } = new X509Certificate(pem);
    // Newer than any CRL that was made of it.
    lists.set(fingerprint256, [list, ...(lists.get(fingerprint256) ?? [])]);
  }
  return { certificates, cas, lists };
};

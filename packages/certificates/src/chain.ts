import type { KeyObject, X509Certificate } from 'node:crypto';

/** A chain in the order in which TLS sends it: leaf first, each behind the one that it has signed (RFC 5246 §7.4.2). */
export interface Chain {
  readonly certificates: readonly [X509Certificate, ...X509Certificate[]];
  /** Certificates that are no part of it. */
  readonly others: readonly X509Certificate[];
}

/** Whether `issuer` has signed `certificate`. */
export const isIssuedBy = (certificate: X509Certificate, issuer: X509Certificate): boolean => {
  try {
    return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
  } catch {
    return false;
  }
};

/** Signed by its own key (RFC 5280 §3.2), whether or not it may sign others (key usage). */
export const isSelfSigned = (certificate: X509Certificate): boolean => {
  try {
    return certificate.subject === certificate.issuer && certificate.verify(certificate.publicKey);
  } catch {
    return false;
  }
};

const fits = (certificate: X509Certificate, key: KeyObject): boolean => {
  try {
    return certificate.checkPrivateKey(key);
  } catch {
    return false;
  }
};

/** The chain of the certificate that `key` belongs to; undefined when it belongs to none. */
export const chainFor = (key: KeyObject, given: readonly X509Certificate[]): Chain | undefined => {
  const leaf = given.find((certificate) => fits(certificate, key));
  if (leaf === undefined) return undefined;
  const left = new Set(given.filter((certificate) => certificate.fingerprint256 !== leaf.fingerprint256));
  const certificates: [X509Certificate, ...X509Certificate[]] = [leaf];
  for (let last = leaf; !isSelfSigned(last);) {
    const below = last;
    const issuer = [...left].find((candidate) => isIssuedBy(below, candidate));
    if (issuer === undefined) break;
    certificates.push(issuer);
    left.delete(issuer);
    last = issuer;
  }
  return { certificates, others: [...left] };
};

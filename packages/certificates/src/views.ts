import { KEYSTORE, TRUSTSTORE } from './fields.js';
import type { KeystoreRow, TruststoreRow } from './fields.js';
import { inspect, nameOf, timeWarnings } from './inspect.js';
import type { StoreKind, StoreUse } from './ports.js';
import { readCrls, staleWarnings } from './read/crl.js';
import { leafWarnings } from './read/trust.js';
import { storedCertificates } from './stored.js';

const usedBy = (uses: readonly StoreUse[], kind: StoreKind, store: string) =>
  uses.filter((use) => use.kind === kind && use.store === store).map(({ what, name }) => ({ what, name }));

export interface Shown {
  readonly uses: readonly StoreUse[];
  /** Sentences on the upload that is answered. */
  readonly said?: readonly string[];
}

export const keystoreView = (row: KeystoreRow, { uses, said = [] }: Shown) => {
  const certificates = storedCertificates(row.certificate);
  const [leaf] = certificates;
  const now = Date.now();
  return KEYSTORE.view(row, {
    certificates: certificates.map(inspect),
    usedBy: usedBy(uses, 'keystore', row.name),
    warnings: [
      ...said,
      ...(leaf?.ca === true
        ? [`${nameOf(leaf)} is a CA certificate: peers expect one that was issued for a server or a client`]
        : []),
      ...certificates.flatMap((certificate) => timeWarnings(certificate, now)),
    ],
  });
};

export const truststoreView = (row: TruststoreRow, { uses, said = [] }: Shown) => {
  const certificates = storedCertificates(row.certificates);
  const now = Date.now();
  const crls = row.crls === null ? [] : readCrls(row.crls);
  return TRUSTSTORE.view(row, {
    usedBy: usedBy(uses, 'truststore', row.name),
    warnings: [
      ...said,
      ...leafWarnings(certificates),
      ...certificates.flatMap((certificate) => timeWarnings(certificate, now)).slice(0, 100),
      ...staleWarnings(crls, now),
    ],
  });
};

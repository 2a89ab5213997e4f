import { KEYSTORE, TRUSTSTORE } from './fields.js';
import type { CrlFetch, KeystoreRow, TruststoreRow } from './fields.js';
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

/** As answers show one URL of a truststore; `kept` undefined: it was not tried yet. */
const fetchView = (url: string, kept: CrlFetch | undefined) => ({
  url,
  fetchedAt: kept?.fetched_at?.toISOString() ?? null,
  thisUpdate: kept?.this_update?.toISOString() ?? null,
  nextUpdate: kept?.next_update?.toISOString() ?? null,
  number: kept?.number ?? null,
  entries: kept?.entries ?? null,
  bytes: kept?.bytes ?? null,
  error: kept?.error ?? null,
  nextFetchAt: kept?.next_try.toISOString() ?? null,
});

/** Sentences on CRLs that could not be fetched, or were not replaced in time. */
const fetchWarnings = (fetches: readonly CrlFetch[], now: number): readonly string[] =>
  fetches.flatMap(({ url, error, next_update: until }) => {
    const isOver = until !== null && until.getTime() <= now;
    return [
      ...(error === null ? [] : [`the CRL of ${url} could not be fetched: ${error}`]),
      ...(isOver ? [`the CRL of ${url} should have been replaced by ${until.toISOString()}`] : []),
    ];
  });

export const truststoreView = (row: TruststoreRow, { uses, said = [] }: Shown) => {
  const certificates = storedCertificates(row.certificates);
  const now = Date.now();
  const crls = row.crls === null ? [] : readCrls(row.crls);
  const kept = row.fetches ?? [];
  return TRUSTSTORE.view(row, {
    crlFetches: row.crl_urls.map((url) =>
      fetchView(
        url,
        kept.find((one) => one.url === url),
      ),
    ),
    usedBy: usedBy(uses, 'truststore', row.name),
    warnings: [
      ...said,
      ...leafWarnings(certificates),
      ...certificates.flatMap((certificate) => timeWarnings(certificate, now)).slice(0, 100),
      ...staleWarnings(crls, now),
      ...fetchWarnings(kept, now),
    ],
  });
};

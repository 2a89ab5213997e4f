/**
 * Who this node is to its peers, and whom it trusts: keystores, truststores, and what is said of them.
 *
 * An upload is read by `read/` within bounds (`BOUNDS`), judged (key, strength, chain, time), and stored as PEM; private keys are sealed.
 * `Certificates` is what handshakes ask: `identity(name)` and `trust(name)` from memory, and `changed` on every pod when a store is
 * another one. `revocationCheck` asks the CRLs of a truststore about a peer. `certificateRoutes` are the endpoints of both apps. Each app has stores of its own, in its own schema
 * (`createStoreTables`): its own `secrets.key` seals their keys, and it alone knows all that uses them.
 *
 * `LocalAuthority` is a small CA (server app): it issues, renews and revokes, and answers OCSP. `@peculiar/x509` makes certificates,
 * requests and CRLs, and `@peculiar/asn1-ocsp` OCSP messages: maintained, typed, for Node 20, over one ASN.1 library and Node's own
 * cryptography. (`pkijs` does the same with a larger surface; `node-forge` brings its own cryptography.)
 *
 * X.509 is read by `node:crypto` (OpenSSL) as far as that goes. `asn1js` reads the DER that it does not show: PKCS#12 and encrypted
 * keys, where iterations must be bounded before anything is derived, and CRLs.
 */
export { LocalAuthority } from './authority/authority.js';
export { ownLists } from './authority/own-lists.js';
export { provisionalIdentity } from './authority/provisional.js';
export { renewManaged } from './authority/renewal.js';
export { createAuthorityTables } from './authority/tables.js';
export { Certificates, StoreMissingError } from './certificates.js';
export type { CertificatesOptions, Identity } from './certificates.js';
export { fetchCrls } from './crls/fetching.js';
export { followExpiry } from './expiry.js';
export { KEYSTORE, storeName, TRUSTSTORE } from './fields.js';
export { fingerprints } from './fingerprint.js';
export { inspect } from './inspect.js';
export type { CertificateView } from './inspect.js';
export { MadeTerms } from './made-terms.js';
export { OcspClient } from './ocsp/client.js';
export type { StoreHints, StoreKind, StoreUse, StoreUses } from './ports.js';
export { lookAtEach, REVOCATION_MODES, revocationCheck, revokedSince } from './revocation.js';
export type { RevocationMode } from './revocation.js';
export { AUTHORITY_SECRETS, KEYSTORE_SECRETS, sealAuthoritiesAnew, sealKeystoresAnew } from './rotation.js';
export { authorityRoutes, publicRoutes } from './routes/authority.js';
export { certificateRoutes } from './routes/routes.js';
export { createExpiryTables, createFetchedCrlTables, createStoreTables } from './tables.js';
export type { Trust } from './trust.js';

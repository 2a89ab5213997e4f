/** Bounds of one upload: a store is read whole, and each handshake sends a chain. */
export const BOUNDS = {
  /** Bytes of a store as PEM, and of an upload. */
  storeBytes: 1_048_576,
  /** Certificates in a store. */
  certificates: 1000,
  /** Certificates of a keystore, the leaf included: TLS peers take no more than some ten. */
  chain: 100,
  /** Bytes of one certificate. */
  certificateBytes: 65_536,
  /** Iterations of one key derivation of a private key or a PKCS#12. */
  iterations: 1_000_000,
  /** All hashes that the key derivations of one upload cost together. */
  hashes: 5_000_000,
  /** CRLs attached to a truststore. */
  crls: 100,
  /** Bytes of the CRLs of an upload, and of one that is fetched: some 400,000 entries. */
  crlBytes: 16_777_216,
  /** Bytes of all CRLs that are fetched for one truststore: they are in the memory of each pod. */
  fetchedBytes: 67_108_864,
  /** URLs that CRLs are fetched from. */
  crlUrls: 20,
  /** Characters of the password of an upload. */
  password: 1024,
} as const;

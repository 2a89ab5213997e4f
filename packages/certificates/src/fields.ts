import { FieldTable, identifier, storedTime, timestamp } from '@pesit-node/service';
import type { CreateOf, GivenOf, RowOf } from '@pesit-node/service';
import { z } from 'zod';

import { BOUNDS } from './bounds.js';
import { inspect } from './inspect.js';
import { PEM_BYTES } from './read/crl.js';
import { storedCertificates } from './stored.js';

/** Name of a keystore or truststore. */
export const storeName = () => identifier(64);

/** In place of a certificate in the examples of the interface. */
export const CERTIFICATE_EXAMPLE = '-----BEGIN CERTIFICATE-----\nMIIB…\n-----END CERTIFICATE-----\n';
const FINGERPRINT_EXAMPLE = Array.from({ length: 32 }, (_, at) => (0xa0 + at).toString(16).toUpperCase()).join(':');
const KEY_EXAMPLE = '-----BEGIN PRIVATE KEY-----\nMIGH…\n-----END PRIVATE KEY-----\n';

const pem = () => z.string().max(BOUNDS.storeBytes);

/** The same as it is answered. */
const SHOWN_EXAMPLE = {
  ...{
    subject: 'CN=Acme Internal CA,O=Acme Bank',
    issuer: 'CN=Acme Internal CA,O=Acme Bank',
    serial: '4A3F09C2D1E5B786',
  },
  ...{
    san: [],
    notBefore: '2026-11-23T08:30:00.000Z',
    notAfter: '2036-11-20T08:30:00.000Z',
    fingerprint: FINGERPRINT_EXAMPLE,
  },
  ...{ keyType: 'EC', keySize: 256, pem: CERTIFICATE_EXAMPLE },
};

export const certificateAnswer = z
  .object({
    subject: z.string().meta({
      description: 'RFC 4514: the most specific name first.',
      example: 'CN=node1.acme.example,O=Acme Bank',
    }),
    issuer: z.string().meta({ example: 'CN=Acme Internal CA,O=Acme Bank' }),
    serial: z.string().meta({ description: 'Hex, upper case, no separators.', example: '4A3F09C2D1E5B786' }),
    san: z.array(z.string()).meta({ description: 'Each with its kind: `DNS:`, `IP:`, `URI:`, `email:` …' }),
    notBefore: timestamp(),
    notAfter: timestamp(),
    fingerprint: z
      .string()
      .meta({ description: 'SHA-256, hex with colons, upper case.', example: FINGERPRINT_EXAMPLE }),
    keyType: z.string().meta({ description: 'RSA, EC, Ed25519 …' }),
    keySize: z.int().meta({ description: 'Bits.' }),
    pem: z.string().meta({ example: CERTIFICATE_EXAMPLE }),
  })
  .meta({ id: 'Certificate' });

const use = z
  .object({
    what: z.string().meta({ description: '`listener`, `remote server`, `configuration` …' }),
    name: z.string(),
  })
  .meta({ id: 'StoreUse' });

const shared = {
  usedBy: { schema: z.array(use), readOnly: true, words: 'What names it: it cannot be deleted meanwhile.' },
  warnings: {
    schema: z.array(z.string()),
    readOnly: true,
    words: 'What is not as it should be, and what was done with an upload.',
  },
  createdAt: { column: 'created_at', schema: storedTime(), readOnly: true },
  updatedAt: { column: 'updated_at', schema: storedTime(), readOnly: true },
} as const;

/** TLS identities: a chain of certificates and its private key. */
export const KEYSTORE = new FieldTable(
  {
    ...{ id: 'Keystore', noun: 'keystore', table: 'keystores' },
    change: { certificate: CERTIFICATE_EXAMPLE, privateKey: KEY_EXAMPLE },
  },
  {
    name: { column: 'name', schema: storeName(), key: true, example: 'node1' },
    certificate: {
      column: 'certificate',
      schema: pem(),
      words: 'The chain in PEM, leaf first.',
      example: CERTIFICATE_EXAMPLE,
      otherwise: 'read from `pkcs12`',
    },
    privateKey: {
      column: 'private_key',
      schema: pem(),
      secret: true,
      words: 'PEM: PKCS#8, RSA or EC.',
      example: KEY_EXAMPLE,
      otherwise: 'read from `pkcs12`',
    },
    pkcs12: {
      schema: z.string().max(2 * BOUNDS.storeBytes),
      secret: true,
      words: 'Another form of `certificate` and `privateKey`: a PKCS#12 in base64.',
      otherwise: '`certificate` and `privateKey` are given',
    },
    password: {
      schema: z.string().max(BOUNDS.password),
      secret: true,
      words: 'Opens `privateKey` or `pkcs12`; it is not kept.',
      otherwise: 'the key is not encrypted, or the password is empty',
    },
    managed: {
      column: 'managed',
      schema: z.boolean(),
      readOnly: true,
      words: 'Whether the local CA issued it, and renews it in time.',
    },
    certificates: { schema: z.array(certificateAnswer), readOnly: true, words: 'The chain, leaf first.' },
    ...shared,
  },
);

export type NewKeystore = CreateOf<typeof KEYSTORE.rows>;
export type KeystoreGiven = GivenOf<typeof KEYSTORE.rows>;
export interface KeystoreRow extends RowOf<typeof KEYSTORE.rows> {
  readonly version: number;
}

/** A bundle in PEM, or as it was answered. */
const bundle = () =>
  z.codec(z.union([pem(), z.array(certificateAnswer).max(BOUNDS.certificates)]), pem(), {
    decode: (given) => (typeof given === 'string' ? given : given.map(({ pem: text }) => text).join('')),
    encode: (text) => storedCertificates(text).map(inspect),
  });

const crlPem = () => z.string().max(PEM_BYTES);

/** An address that CRLs are fetched from. */
const crlUrl = () =>
  z
    .url({ protocol: /^https?$/, error: 'expected a URL with http or https' })
    .max(500)
    .refine((text) => {
      // The check above speaks of texts that are no URL.
      if (!URL.canParse(text)) return true;
      const { username, password } = new URL(text);
      return username === '' && password === '';
    }, 'a user or a password in it is not allowed: it would be shown');

const crlUrls = () =>
  z
    .array(crlUrl())
    .max(BOUNDS.crlUrls)
    .refine((urls) => new Set(urls).size === urls.length, 'a URL stands there more than once');

const fetchAnswer = z
  .object({
    url: z.string(),
    fetchedAt: timestamp()
      .nullable()
      .meta({ description: 'When the CRL that counts was fetched, or found unchanged.' }),
    thisUpdate: timestamp().nullable(),
    nextUpdate: timestamp().nullable(),
    number: z.string().nullable().meta({ description: 'The number of the CRL, decimal.' }),
    entries: z.int().nullable().meta({ description: 'Certificates that it takes back.' }),
    bytes: z.int().nullable(),
    error: z.string().nullable().meta({ description: 'Why the last fetch failed. Null: it did not.' }),
    nextFetchAt: timestamp().nullable().meta({ description: 'Null: at once.' }),
  })
  .meta({ id: 'FetchedCrl' });

/** Those who are trusted to vouch for peers, and the lists of what they have revoked. */
export const TRUSTSTORE = new FieldTable(
  {
    ...{ id: 'Truststore', noun: 'truststore', table: 'truststores' },
    change: { certificates: CERTIFICATE_EXAMPLE },
  },
  {
    name: { column: 'name', schema: storeName(), key: true, example: 'partners' },
    certificates: {
      column: 'certificates',
      schema: bundle(),
      words: 'The CA certificates: given as one text of PEM, answered each of its own; an answer can be put back.',
      example: CERTIFICATE_EXAMPLE,
      exampleShown: [SHOWN_EXAMPLE],
    },
    crls: {
      column: 'crls',
      schema: crlPem(),
      words: 'CRLs of these CAs in PEM, up to 16 MB; long ones are better sent as the file of a form, or fetched.',
      unset: 'none was uploaded',
    },
    crlUrls: {
      column: 'crl_urls',
      schema: crlUrls(),
      default: [],
      words:
        'Where the leader fetches CRLs of these CAs, with http or https; those that were fetched count beside `crls`.',
    },
    crlFetches: { schema: z.array(fetchAnswer), readOnly: true, words: 'How each of `crlUrls` fares, in their order.' },
    ...shared,
  },
);

export type NewTruststore = CreateOf<typeof TRUSTSTORE.rows>;
export type TruststoreGiven = GivenOf<typeof TRUSTSTORE.rows>;
export interface TruststoreRow extends RowOf<typeof TRUSTSTORE.rows> {
  readonly version: number;
  /** URLs that were tried. */
  readonly fetches?: readonly CrlFetch[];
}

/** The state of one URL of a truststore, its CRL aside. */
export interface CrlFetch {
  readonly url: string;
  readonly fetched_at: Date | null;
  readonly this_update: Date | null;
  readonly next_update: Date | null;
  /** Decimal. */
  readonly number: string | null;
  readonly entries: number | null;
  readonly bytes: number | null;
  readonly etag: string | null;
  readonly last_modified: string | null;
  /** In a row. */
  readonly failures: number;
  readonly error: string | null;
  readonly next_try: Date;
}

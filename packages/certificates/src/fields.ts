import { FieldTable, identifier, storedTime, timestamp } from '@pesit-node/service';
import type { CreateOf, GivenOf, RowOf } from '@pesit-node/service';
import { z } from 'zod';

import { BOUNDS } from './bounds.js';
import { inspect } from './inspect.js';
import { storedCertificates } from './stored.js';

/** Name of a keystore or truststore. */
export const storeName = () => identifier(64);

const pem = () => z.string().max(BOUNDS.storeBytes, `expected at most ${BOUNDS.storeBytes} characters`);

export const certificateAnswer = z
  .object({
    subject: z.string().meta({ description: 'RFC 4514: the most specific name first.' }),
    issuer: z.string(),
    serial: z.string().meta({ description: 'Hex, upper case, no separators.' }),
    san: z.array(z.string()).meta({ description: 'Each with its kind: `DNS:`, `IP:`, `URI:`, `email:` …' }),
    notBefore: timestamp(),
    notAfter: timestamp(),
    fingerprint: z.string().meta({ description: 'SHA-256, hex with colons, upper case.' }),
    keyType: z.string().meta({ description: 'RSA, EC, Ed25519 …' }),
    keySize: z.int().meta({ description: 'Bits.' }),
    pem: z.string(),
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
  { id: 'Keystore', noun: 'keystore', table: 'keystores' },
  {
    name: { column: 'name', schema: storeName(), key: true },
    certificate: {
      column: 'certificate',
      schema: pem(),
      words: 'The chain in PEM, leaf first.',
      otherwise: 'read from `pkcs12`',
    },
    privateKey: {
      column: 'private_key',
      schema: pem(),
      secret: true,
      words: 'PEM: PKCS#8, RSA or EC.',
      otherwise: 'read from `pkcs12`',
    },
    pkcs12: {
      schema: z.string().max(2 * BOUNDS.storeBytes, `expected at most ${2 * BOUNDS.storeBytes} characters`),
      secret: true,
      words: 'Another form of `certificate` and `privateKey`: a PKCS#12 in base64.',
      otherwise: '`certificate` and `privateKey` are given',
    },
    password: {
      schema: z.string().max(BOUNDS.password, `expected at most ${BOUNDS.password} characters`),
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

/** Those who are trusted to vouch for peers, and the lists of what they have revoked. */
export const TRUSTSTORE = new FieldTable(
  { id: 'Truststore', noun: 'truststore', table: 'truststores' },
  {
    name: { column: 'name', schema: storeName(), key: true },
    certificates: {
      column: 'certificates',
      schema: bundle(),
      words: 'The CA certificates: given as one text of PEM, answered each of its own; an answer can be put back.',
    },
    crls: { column: 'crls', schema: pem(), words: 'CRLs of these CAs in PEM.', unset: 'none was uploaded' },
    ...shared,
  },
);

export type NewTruststore = CreateOf<typeof TRUSTSTORE.rows>;
export type TruststoreGiven = GivenOf<typeof TRUSTSTORE.rows>;
export interface TruststoreRow extends RowOf<typeof TRUSTSTORE.rows> {
  readonly version: number;
}

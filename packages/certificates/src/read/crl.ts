import type { X509Certificate } from 'node:crypto';

import * as asn1 from 'asn1js';

import { BOUNDS } from '../bounds.js';
import { unfit, unreadable } from '../faults.js';
import { nameOf } from '../inspect.js';
import { extensionsOf, TIMES, timeOf } from './crl-entries.js';
import type { CrlExtension } from './crl-entries.js';
import { derOf, DerError, itemsOf, oidOf, readDer, slicesIn } from './der.js';
import type { DerSlice } from './der.js';
import { readPem } from './pem.js';
import { SerialIndex } from './serial-index.js';
import { SIGNATURES, verifies } from './signatures.js';

/** A certificate revocation list (RFC 5280 §5), as far as it is judged here. */
export interface Crl {
  readonly der: Buffer;
  /** Name of its issuer, DER. */
  readonly issuer: Buffer;
  /** Milliseconds since 1970. */
  readonly thisUpdate: number;
  /** Undefined: it does not say. */
  readonly nextUpdate: number | undefined;
  /** Undefined: it has none. */
  readonly number: bigint | undefined;
  /** It does not tell of every certificate of its issuer: who is not in it may be revoked nevertheless. */
  readonly isPartial: boolean;
  /** Whether this CA signed it. */
  readonly isSignedBy: (ca: X509Certificate) => Promise<boolean>;
  /** Reads its entries. @throws {DerError} */
  readonly entries: () => Promise<SerialIndex>;
}

/** Bytes of CRLs in PEM: base64 and its lines. */
export const PEM_BYTES = Math.ceil(BOUNDS.crlBytes * 1.4);

/** Tags of DER. */
const [INTEGER, BIT_STRING, SEQUENCE, EXTENSIONS] = [0x02, 0x03, 0x30, 0xa0];

const timeIn = (slice: DerSlice | undefined): number | undefined =>
  slice !== undefined && TIMES.includes(slice.tag) ? timeOf(readDer(slice.whole)) : undefined;

const CRL_NUMBER = '2.5.29.20';

const numberOf = (extensions: readonly CrlExtension[]): bigint | undefined => {
  const value = extensions.find(({ oid }) => oid === CRL_NUMBER)?.value;
  const number = value === undefined ? undefined : readDer(value);
  if (!(number instanceof asn1.Integer)) return undefined;
  return BigInt(`0x${Buffer.from(number.valueBlock.valueHexView).toString('hex') || '0'}`);
};

const subjects = new WeakMap<X509Certificate, Buffer>();

/** Name of the subject, DER. */
const subjectOf = (certificate: X509Certificate): Buffer => {
  const known = subjects.get(certificate);
  if (known !== undefined) return known;
  const fields = itemsOf(itemsOf(readDer(certificate.raw))[0]);
  // RFC 5280 §4.1: the version stands first unless it is 1.
  const subject = derOf(fields[fields[0]?.idBlock.tagClass === 3 ? 5 : 4]);
  subjects.set(certificate, subject);
  return subject;
};

/** @throws {DerError} */
const parse = (der: Buffer): Crl => {
  const [whole, ...behind] = slicesIn(der);
  if (whole?.tag !== SEQUENCE || behind.length > 0) throw new DerError('it is no CRL');
  const [tbs, algorithm, signature] = slicesIn(whole.content);
  if (tbs === undefined || algorithm === undefined || signature?.tag !== BIT_STRING) {
    throw new DerError('it is no CRL');
  }
  const fields = slicesIn(tbs.content);
  const [, issuer, thisUpdate, ...rest] = fields[0]?.tag === INTEGER ? fields.slice(1) : fields;
  const from = timeIn(thisUpdate);
  if (issuer === undefined || from === undefined) throw new DerError('it is no CRL');
  const entries = rest.find(({ tag }) => tag === SEQUENCE);
  const more = rest.find(({ tag }) => tag === EXTENSIONS);
  for (const part of [issuer, algorithm, more]) {
    if ((part?.whole.length ?? 0) > BOUNDS.certificateBytes) throw new DerError('its names or extensions are too long');
  }
  const extensions = more === undefined ? [] : extensionsOf(readDer(more.content));
  const oid = oidOf(itemsOf(readDer(algorithm.whole))[0]);
  const hash = SIGNATURES[oid];
  if (hash === undefined) throw new DerError(`its signature algorithm ${oid} is not known here`);
  const name = issuer.whole;
  return {
    der,
    issuer: name,
    thisUpdate: from,
    nextUpdate: timeIn(rest[0]),
    number: numberOf(extensions),
    // RFC 5280 §5.2: a critical extension that is not understood here (delta CRL, distribution point) bounds what it tells.
    isPartial: extensions.some(({ critical }) => critical),
    entries: () => SerialIndex.of(entries?.content ?? Buffer.alloc(0)),
    isSignedBy: async (ca) => {
      try {
        return (
          subjectOf(ca).equals(name) && (await verifies(hash, tbs.whole, ca.publicKey, signature.content.subarray(1)))
        );
      } catch {
        return false;
      }
    },
  };
};

/** Reads the facts of a CRL in DER; its entries are read by `entries`. @throws {UploadError} */
export const readCrl = (der: Buffer): Crl => {
  try {
    return parse(der);
  } catch (error) {
    if (!(error instanceof DerError)) throw error;
    throw unreadable('crls', `expected a CRL (RFC 5280): ${error.message}`, error);
  }
};

/** Whether DER is a CRL, rather than a certificate. */
export const isCrl = (der: Buffer): boolean => {
  try {
    parse(der);
    return true;
  } catch {
    return false;
  }
};

/** The DER of a CRL that was fetched: it is that, or one block of PEM. @throws {UploadError} */
export const derOfCrl = (bytes: Buffer): Buffer => {
  if (bytes.subarray(0, 10).toString('latin1') !== '-----BEGIN') return bytes;
  return readPem(bytes.toString('latin1'), 'crls', 1, PEM_BYTES)[0]?.der ?? Buffer.alloc(0);
};

/** CRLs in PEM. @throws {UploadError} */
export const readCrls = (text: string): readonly Crl[] => {
  const blocks = readPem(text, 'crls', BOUNDS.crls, PEM_BYTES).filter(({ label }) => label === 'X509 CRL');
  if (blocks.length === 0) throw unreadable('crls', 'expected CRLs in PEM (-----BEGIN X509 CRL-----), got none');
  return blocks.map(({ der }) => readCrl(der));
};

/**
 * Checks CRLs against those who should have signed them, then their entries.
 * @throws {UploadError} when a CRL is of none of these CAs, or has bad entries
 */
export const checkCrls = async (crls: readonly Crl[], cas: readonly X509Certificate[]): Promise<void> => {
  for (const [index, crl] of crls.entries()) {
    if ((await signersOf(crl, cas)).length === 0) {
      throw unfit(
        'crls',
        `CRL ${index + 1} is signed by none of the CAs of the truststore (${cas.slice(0, 3).map(nameOf).join(', ')}): add its CA to certificates`,
      );
    }
    try {
      await crl.entries();
    } catch (error) {
      if (!(error instanceof DerError)) throw error;
      throw unreadable('crls', `expected a CRL (RFC 5280): ${error.message}`, error);
    }
  }
};

/** Those of `cas` that signed it. */
export const signersOf = async (
  crl: Pick<Crl, 'isSignedBy'>,
  cas: readonly X509Certificate[],
): Promise<readonly X509Certificate[]> => {
  const signers: X509Certificate[] = [];
  for (const ca of cas) if (await crl.isSignedBy(ca)) signers.push(ca);
  return signers;
};

/** Sentences on CRLs that are too old: with them nobody can tell who was revoked since. */
export const staleWarnings = (crls: readonly Pick<Crl, 'nextUpdate'>[], now: number): readonly string[] =>
  crls
    .filter(({ nextUpdate }) => nextUpdate !== undefined && nextUpdate <= now)
    .map(
      ({ nextUpdate }) =>
        `a CRL should have been replaced by ${new Date(nextUpdate ?? 0).toISOString()}: give a newer one`,
    );

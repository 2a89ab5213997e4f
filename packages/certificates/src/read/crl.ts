import { verify } from 'node:crypto';
import type { X509Certificate } from 'node:crypto';

import * as asn1 from 'asn1js';

import { BOUNDS } from '../bounds.js';
import { unfit, unreadable } from '../faults.js';
import { nameOf } from '../inspect.js';
import { entriesOf, extensionsOf, TIMES, timeOf } from './crl-entries.js';
import type { CrlExtension } from './crl-entries.js';
import { derOf, DerError, itemsOf, oidOf, readDer, slicesIn } from './der.js';
import type { DerSlice } from './der.js';
import { readPem, writePem } from './pem.js';

/** A certificate revocation list (RFC 5280 §5), as far as it is judged here. */
export interface Crl {
  readonly pem: string;
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
  /** See `entriesOf`. */
  readonly revoked: ReadonlyMap<string, DerSlice>;
  /** Whether this CA signed it. */
  readonly isSignedBy: (ca: X509Certificate) => boolean;
}

/** Hash of the signature algorithms that CAs use; null: the algorithm has one of its own. */
const SIGNATURES: Readonly<Record<string, string | null>> = {
  '1.2.840.113549.1.1.11': 'sha256',
  '1.2.840.113549.1.1.12': 'sha384',
  '1.2.840.113549.1.1.13': 'sha512',
  '1.2.840.10045.4.3.2': 'sha256',
  '1.2.840.10045.4.3.3': 'sha384',
  '1.2.840.10045.4.3.4': 'sha512',
  '1.3.101.112': null,
  '1.3.101.113': null,
};

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

/** Name of the subject, DER. */
export const subjectOf = ({ raw }: X509Certificate): Buffer => {
  const fields = itemsOf(itemsOf(readDer(raw))[0]);
  // RFC 5280 §4.1: the version stands first unless it is 1.
  return derOf(fields[fields[0]?.idBlock.tagClass === 3 ? 5 : 4]);
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
  const extensions = more === undefined ? [] : extensionsOf(readDer(more.content));
  const oid = oidOf(itemsOf(readDer(algorithm.whole))[0]);
  const hash = SIGNATURES[oid];
  if (hash === undefined) throw new DerError(`its signature algorithm ${oid} is not known here`);
  const name = issuer.whole;
  return {
    pem: writePem('X509 CRL', der),
    issuer: name,
    thisUpdate: from,
    nextUpdate: timeIn(rest[0]),
    number: numberOf(extensions),
    // RFC 5280 §5.2: a critical extension that is not understood here (delta CRL, distribution point) bounds what it tells.
    isPartial: extensions.some(({ critical }) => critical),
    revoked: entriesOf(entries?.content ?? Buffer.alloc(0)),
    isSignedBy: (ca) => {
      try {
        return subjectOf(ca).equals(name) && verify(hash, tbs.whole, ca.publicKey, signature.content.subarray(1));
      } catch {
        return false;
      }
    },
  };
};

/** A CRL that was fetched, DER or PEM. @throws {UploadError} */
export const readCrl = (bytes: Buffer): Crl => {
  const isPem = bytes.subarray(0, 10).toString('latin1') === '-----BEGIN';
  const der = isPem ? readPem(bytes.toString('latin1'), 'crls', 1)[0]?.der : bytes;
  try {
    return parse(der ?? Buffer.alloc(0));
  } catch (error) {
    if (!(error instanceof DerError)) throw error;
    throw unreadable('crls', `expected a CRL (RFC 5280): ${error.message}`, error);
  }
};

/** A CRL as it is stored, whatever its size: it was checked when it came. @throws {DerError} */
export const storedCrl = (pem: string): Crl => parse(Buffer.from(pem.replace(/-----[^-]+-----/g, ''), 'base64'));

/** CRLs in PEM. @throws {UploadError} */
export const readCrls = (text: string): readonly Crl[] => {
  const blocks = readPem(text, 'crls', BOUNDS.crls).filter(({ label }) => label === 'X509 CRL');
  if (blocks.length === 0) throw unreadable('crls', 'expected CRLs in PEM (-----BEGIN X509 CRL-----), got none');
  return blocks.map(({ der }) => readCrl(der));
};

/** @throws {UploadError} when a CRL is of none of these CAs */
export const requireIssuers = (crls: readonly Crl[], cas: readonly X509Certificate[]): void => {
  crls.forEach((crl, index) => {
    if (cas.some((ca) => crl.isSignedBy(ca))) return;
    throw unfit(
      'crls',
      `CRL ${index + 1} is signed by none of the CAs of the truststore (${cas.slice(0, 3).map(nameOf).join(', ')}): add its CA to certificates`,
    );
  });
};

/** Sentences on CRLs that are too old: with them nobody can tell who was revoked since. */
export const staleWarnings = (crls: readonly Crl[], now: number): readonly string[] =>
  crls
    .filter(({ nextUpdate }) => nextUpdate !== undefined && nextUpdate <= now)
    .map(
      ({ nextUpdate }) =>
        `a CRL should have been replaced by ${new Date(nextUpdate ?? 0).toISOString()}: give a newer one`,
    );

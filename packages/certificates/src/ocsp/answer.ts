import { X509Certificate } from 'node:crypto';

import {
  BasicOCSPResponse,
  id_pkix_ocsp_basic,
  id_pkix_ocsp_nonce,
  OCSPResponse,
  OCSPResponseStatus,
} from '@peculiar/asn1-ocsp';
import type { SingleResponse } from '@peculiar/asn1-ocsp';
import { AsnConvert } from '@peculiar/asn1-schema';
import type { OctetString } from '@peculiar/asn1-schema';
import { CRLReasons } from '@peculiar/asn1-x509';

import { serialIn } from '../authority/ocsp.js';
import type { OcspIssuer } from '../authority/ocsp.js';
import { REASON_NAMES } from '../authority/reasons.js';
import type { Reason } from '../authority/reasons.js';
import { isIssuedBy } from '../chain.js';
import { endOf, startOf } from '../inspect.js';
import type { Revoked } from '../read/crl-entries.js';
import { oidOf, itemsOf, readDer, slicesIn } from '../read/der.js';
import { SIGNATURES, verifies } from '../read/signatures.js';

/** The word of a responder on one certificate. */
export type OcspVerdict =
  | { readonly is: 'good' | 'revoked'; readonly entry: Revoked | undefined; readonly until: number }
  | { readonly is: 'unknown'; readonly why: string };

/** A question, and of whom it is asked. */
export interface OcspQuestion {
  readonly issuer: OcspIssuer;
  readonly issuerCertificate: X509Certificate;
  /** Upper-case hex. */
  readonly serial: string;
  readonly nonce: Buffer;
}

/** Clocks differ by so much. */
const CLOCK_MS = 300_000;
/** An answer that does not say for how long it counts is believed so long (RFC 6960 §4.2.2.1). */
const UNLIMITED_MS = 3_600_000;
/** RFC 6960 §4.2.2.2: who signs for a CA has this usage from that CA itself. */
const OCSP_SIGNING = '1.3.6.1.5.5.7.3.9';

const unknown = (why: string): OcspVerdict => ({ is: 'unknown', why });

const bytesOf = (value: OctetString | ArrayBuffer): Buffer =>
  Buffer.from(value instanceof ArrayBuffer ? value : value.buffer);

/** The CA itself, and those in the answer that it lets sign for it. */
const signersFor = (basic: BasicOCSPResponse, issuer: X509Certificate, now: number): readonly X509Certificate[] => {
  const given = (basic.certs ?? [])
    .slice(0, 5)
    .map((one) => new X509Certificate(Buffer.from(AsnConvert.serialize(one))));
  const maySign = (one: X509Certificate): boolean =>
    (one.keyUsage as string[] | undefined)?.includes(OCSP_SIGNING) === true &&
    isIssuedBy(one, issuer) &&
    startOf(one) <= now &&
    endOf(one) > now;
  return [issuer, ...given.filter(maySign)];
};

const isSigned = async (der: Buffer, signers: readonly X509Certificate[]): Promise<boolean> => {
  const [whole] = slicesIn(der);
  const [data, algorithm, signature] = slicesIn(whole?.content ?? Buffer.alloc(0));
  if (data === undefined || algorithm === undefined || signature === undefined) return false;
  const hash = SIGNATURES[oidOf(itemsOf(readDer(algorithm.whole))[0])];
  if (hash === undefined) return false;
  for (const { publicKey } of signers) {
    if (await verifies(hash, data.whole, publicKey, signature.content.subarray(1)).catch(() => false)) return true;
  }
  return false;
};

const reasonOf = (code: CRLReasons | undefined): Reason => {
  const name = code === undefined ? undefined : CRLReasons[code];
  return REASON_NAMES.find((one) => one === name) ?? 'unspecified';
};

const verdictOf = ({ certStatus, thisUpdate, nextUpdate }: SingleResponse, now: number): OcspVerdict => {
  const [from, to] = [thisUpdate.getTime(), nextUpdate?.getTime()];
  if (from > now + CLOCK_MS) return unknown(`its answer begins at ${thisUpdate.toISOString()}: look at the clocks`);
  const until = to ?? from + UNLIMITED_MS;
  if (until <= now - CLOCK_MS) return unknown(`its answer has run out at ${new Date(until).toISOString()}`);
  const { revoked, good } = certStatus;
  if (revoked !== undefined) {
    const entry = { at: revoked.revocationTime.getTime(), reason: reasonOf(revoked.revocationReason?.reason) };
    return { is: 'revoked', entry, until };
  }
  return good === undefined ? unknown('it does not know the certificate') : { is: 'good', entry: undefined, until };
};

/**
 * Reads the answer of a responder, and believes it when the CA signed it, or one that the CA lets sign (RFC 6960 §3.2).
 * @throws errors of ASN.1 where it is no answer
 */
export const readOcspAnswer = async (bytes: Buffer, asked: OcspQuestion, now: number): Promise<OcspVerdict> => {
  const { responseStatus, responseBytes } = AsnConvert.parse(bytes, OCSPResponse);
  if (responseStatus !== OCSPResponseStatus.successful || responseBytes?.responseType !== id_pkix_ocsp_basic) {
    return unknown(`it answers ${OCSPResponseStatus[responseStatus]}`);
  }
  const der = bytesOf(responseBytes.response);
  const basic = AsnConvert.parse(der, BasicOCSPResponse);
  const { responses, responseExtensions } = basic.tbsResponseData;
  if (!(await isSigned(der, signersFor(basic, asked.issuerCertificate, now)))) {
    return unknown('its answer is signed neither by the CA nor by one that the CA lets sign');
  }
  const nonce = responseExtensions?.find(({ extnID }) => extnID === id_pkix_ocsp_nonce);
  // Many responders keep ready answers, and send none.
  if (nonce !== undefined && !bytesOf(nonce.extnValue).subarray(-asked.nonce.length).equals(asked.nonce)) {
    return unknown('its answer is one to another question');
  }
  const own = responses.find(({ certID }) => asked.issuer.isNamedBy(certID) && serialIn(certID) === asked.serial);
  return own === undefined ? unknown('its answer does not name the certificate') : verdictOf(own, now);
};

import { createHash, sign, X509Certificate } from 'node:crypto';

import {
  BasicOCSPResponse,
  CertID,
  CertStatus,
  id_pkix_ocsp_basic,
  id_pkix_ocsp_nonce,
  KeyHash,
  OCSPRequest,
  OCSPResponse,
  OCSPResponseStatus,
  ResponderID,
  ResponseBytes,
  ResponseData,
  RevokedInfo,
  SingleResponse,
} from '@peculiar/asn1-ocsp';
import { AsnConvert, OctetString } from '@peculiar/asn1-schema';
import { AlgorithmIdentifier, Certificate, CRLReason, CRLReasons, Extension } from '@peculiar/asn1-x509';

import type { IssuedRow } from './store.js';
import type { Signer } from './make.js';

/** Bytes of a request, and certificates that it may ask about. */
export const MAX_REQUEST = 8192;
const MAX_CERTIFICATES = 20;
/** RFC 9654 §2.1. */
const MAX_NONCE = 128;
/** How long an answer may be kept. */
const VALID_MS = 3_600_000;

const SHA1 = '1.3.14.3.2.26';

/** RFC 6960 §4.3 asks for SHA-1: it names the CA, and protects nothing. */
const HASHES: Readonly<Record<string, string>> = {
  [SHA1]: 'sha1',
  '2.16.840.1.101.3.4.2.1': 'sha256',
  '2.16.840.1.101.3.4.2.2': 'sha384',
  '2.16.840.1.101.3.4.2.3': 'sha512',
};

const SIGNATURES = { ec: '1.2.840.10045.4.3.2', rsa: '1.2.840.113549.1.1.11' } as const;

const failure = (responseStatus: OCSPResponseStatus): Buffer =>
  Buffer.from(AsnConvert.serialize(new OCSPResponse({ responseStatus })));

export const MALFORMED = failure(OCSPResponseStatus.malformedRequest);
export const TRY_LATER = failure(OCSPResponseStatus.tryLater);
/** RFC 6960 §2.3: it is not for this responder to say. */
export const UNAUTHORIZED = failure(OCSPResponseStatus.unauthorized);

/** @returns undefined when it is no request that is answered here. */
export const readOcspRequest = (bytes: Buffer): OCSPRequest | undefined => {
  if (bytes.length === 0 || bytes.length > MAX_REQUEST) return undefined;
  try {
    const request = AsnConvert.parse(bytes, OCSPRequest);
    const { length } = request.tbsRequest.requestList;
    return length > 0 && length <= MAX_CERTIFICATES ? request : undefined;
  } catch {
    return undefined;
  }
};

const bytesOf = (value: OctetString | ArrayBuffer): Buffer =>
  Buffer.from(value instanceof ArrayBuffer ? value : value.buffer);

/** The CA as a request names it: hashes of its name and of its key (RFC 6960 §4.1.1). */
export class OcspIssuer {
  readonly #certificate: Certificate;

  constructor(pem: string) {
    this.#certificate = AsnConvert.parse(new X509Certificate(pem).raw, Certificate);
  }

  get asn1(): Certificate {
    return this.#certificate;
  }

  /** SHA-1 of the key, as `ResponderID` wants it (RFC 6960 §4.2.1). */
  get keyHash(): Buffer {
    return createHash('sha1').update(this.#key).digest();
  }

  isNamedBy({ hashAlgorithm, issuerNameHash, issuerKeyHash }: CertID): boolean {
    const hash = HASHES[hashAlgorithm.algorithm];
    if (hash === undefined) return false;
    const digest = (bytes: Buffer): Buffer => createHash(hash).update(bytes).digest();
    const name = Buffer.from(AsnConvert.serialize(this.#certificate.tbsCertificate.subject));
    return digest(name).equals(bytesOf(issuerNameHash)) && digest(this.#key).equals(bytesOf(issuerKeyHash));
  }

  /** The name of a certificate of this CA in a request (RFC 6960 §4.1.1). @param serial hex */
  idOf(serial: string): CertID {
    const digest = (bytes: Buffer): OctetString => new OctetString(createHash('sha1').update(bytes).digest());
    const hex = serial.length % 2 === 0 ? serial : `0${serial}`;
    // The first bit of a DER number is its sign.
    const number = Buffer.from(/^[89a-f]/i.test(hex) ? `00${hex}` : hex, 'hex');
    return new CertID({
      hashAlgorithm: new AlgorithmIdentifier({ algorithm: SHA1, parameters: null }),
      issuerNameHash: digest(Buffer.from(AsnConvert.serialize(this.#certificate.tbsCertificate.subject))),
      issuerKeyHash: digest(this.#key),
      serialNumber: new Uint8Array(number).buffer,
    });
  }

  get #key(): Buffer {
    return Buffer.from(this.#certificate.tbsCertificate.subjectPublicKeyInfo.subjectPublicKey);
  }
}

/** As the interface shows serials: hex of the number, without the zero byte of its sign. */
export const serialIn = ({ serialNumber }: CertID): string => {
  const hex = Buffer.from(serialNumber)
    .toString('hex')
    .toUpperCase()
    .replace(/^(?:00)+(?=.)/, '');
  return hex;
};

/** Without fractions of a second, which some peers do not read (RFC 5280 §4.1.2.5.2). */
const wholeSeconds = (time: number): Date => new Date(Math.floor(time / 1000) * 1000);

const statusOf = (row: Pick<IssuedRow, 'revoked_at' | 'reason'> | undefined): CertStatus => {
  if (row === undefined) return new CertStatus({ unknown: null });
  if (row.revoked_at === null) return new CertStatus({ good: null });
  const reason = row.reason ?? 'unspecified';
  return new CertStatus({
    revoked: new RevokedInfo({
      revocationTime: wholeSeconds(row.revoked_at.getTime()),
      ...(reason === 'unspecified' ? {} : { revocationReason: new CRLReason(CRLReasons[reason]) }),
    }),
  });
};

/** The answer, signed by the CA itself. @param found what is known of a certificate; undefined: nothing */
export const answerOcsp = (
  request: OCSPRequest,
  signer: Signer,
  issuer: OcspIssuer,
  found: (id: CertID) => Pick<IssuedRow, 'revoked_at' | 'reason'> | undefined,
  now: number,
): Buffer => {
  const nonce = request.tbsRequest.requestExtensions?.find(({ extnID }) => extnID === id_pkix_ocsp_nonce);
  const echoed = nonce !== undefined && nonce.extnValue.byteLength <= MAX_NONCE + 4 ? [nonce] : [];
  const data = new ResponseData({
    responderID: new ResponderID({ byKey: new KeyHash(new Uint8Array(issuer.keyHash).buffer) }),
    producedAt: wholeSeconds(now),
    responses: request.tbsRequest.requestList.map(
      ({ reqCert }) =>
        new SingleResponse({
          ...{ certID: reqCert, certStatus: statusOf(found(reqCert)) },
          ...{ thisUpdate: wholeSeconds(now), nextUpdate: wholeSeconds(now + VALID_MS) },
        }),
    ),
    ...(echoed.length === 0 ? {} : { responseExtensions: echoed.map((one) => new Extension(one)) }),
  });
  const { key } = signer.key;
  const signed = Buffer.from(AsnConvert.serialize(data));
  const algorithm = key.asymmetricKeyType === 'rsa' ? SIGNATURES.rsa : SIGNATURES.ec;
  const basic = new BasicOCSPResponse({
    tbsResponseData: data,
    signatureAlgorithm: new AlgorithmIdentifier({
      algorithm,
      ...(algorithm === SIGNATURES.rsa ? { parameters: null } : {}),
    }),
    signature: new Uint8Array(sign('sha256', signed, key)).buffer,
    certs: [issuer.asn1],
  });
  const responseBytes = new ResponseBytes({
    responseType: id_pkix_ocsp_basic,
    response: new OctetString(AsnConvert.serialize(basic)),
  });
  const answer = new OCSPResponse({ responseStatus: OCSPResponseStatus.successful, responseBytes });
  return Buffer.from(AsnConvert.serialize(answer));
};

import { randomBytes } from 'node:crypto';
import type { X509Certificate } from 'node:crypto';

import { id_pkix_ocsp_nonce, OCSPRequest, Request, TBSRequest } from '@peculiar/asn1-ocsp';
import { AsnConvert, OctetString } from '@peculiar/asn1-schema';
import { Extension } from '@peculiar/asn1-x509';

import { OcspIssuer } from '../authority/ocsp.js';
import { fetchBounded, FetchError } from '../crls/fetch.js';
import { nameOf } from '../inspect.js';
import { writePem } from '../read/pem.js';
import { readOcspAnswer } from './answer.js';
import type { OcspVerdict } from './answer.js';

export interface OcspClientOptions {
  /** Milliseconds for a whole answer. Default 3000: a partner waits meanwhile. */
  readonly timeoutMs?: number;
  /** Milliseconds since 1970. Default `Date.now`. */
  readonly now?: () => number;
}

const TIMEOUT_MS = 3000;
const MAX_BYTES = 65_536;
/** Answers that are kept; the oldest gives way. */
const MAX_KEPT = 10_000;
/** No answer is believed longer, whatever it says. */
const KEPT_MS = 3_600_000;
/** A responder that failed is not asked again by each handshake. */
const FAILED_MS = 30_000;
/** Questions that wait for their answers; what comes beyond is told that nobody can say. */
const MAX_WAITING = 100;
/** RFC 9654 §2.1. */
const NONCE_BYTES = 32;

interface Kept {
  readonly verdict: Promise<OcspVerdict>;
  until: number;
}

/** The responder that a certificate names (RFC 5280 §4.2.2.1), http or https. */
export const responderOf = ({ infoAccess }: X509Certificate): string | undefined =>
  /^OCSP - URI:(https?:\/\/[\x21-\x7e]+)$/m.exec(infoAccess ?? '')?.[1];

/** Asks responders about certificates of peers (RFC 6960): each once as long as its answer counts, and never for long. */
export class OcspClient {
  readonly #timeoutMs: number;
  readonly #now: () => number;
  /** The one asked last at the end. */
  readonly #kept = new Map<string, Kept>();
  #waiting = 0;

  constructor({ timeoutMs = TIMEOUT_MS, now = Date.now }: OcspClientOptions = {}) {
    this.#timeoutMs = timeoutMs;
    this.#now = now;
  }

  /**
   * @param issuer of the certificate, whose chain is good: nobody else has a say in where this node asks
   * @returns undefined when the certificate names no responder. Never rejects
   */
  ask(certificate: X509Certificate, issuer: X509Certificate): Promise<OcspVerdict> | undefined {
    const url = responderOf(certificate);
    if (url === undefined) return undefined;
    const key = `${issuer.fingerprint256} ${certificate.serialNumber} ${url}`;
    const kept = this.#kept.get(key);
    if (kept !== undefined && kept.until > this.#now()) return kept.verdict;
    if (this.#waiting >= MAX_WAITING) {
      return Promise.resolve({ is: 'unknown', why: `${MAX_WAITING} questions wait for responders already` });
    }
    const entry: Kept = { verdict: this.#answer(url, certificate, issuer), until: this.#now() + FAILED_MS };
    this.#kept.delete(key);
    this.#kept.set(key, entry);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > MAX_KEPT && oldest !== undefined) this.#kept.delete(oldest);
    void entry.verdict.then((verdict) => {
      const until = verdict.is === 'unknown' ? FAILED_MS : Math.min(verdict.until - this.#now(), KEPT_MS);
      entry.until = this.#now() + until;
    });
    return entry.verdict;
  }

  async #answer(url: string, certificate: X509Certificate, issuerCertificate: X509Certificate): Promise<OcspVerdict> {
    this.#waiting++;
    try {
      const issuer = new OcspIssuer(writePem('CERTIFICATE', issuerCertificate.raw));
      const serial = certificate.serialNumber.toUpperCase();
      const nonce = randomBytes(NONCE_BYTES);
      const { body } = await fetchBounded(url, {
        ...{ method: 'POST', body: questionOf(issuer, serial, nonce), timeoutMs: this.#timeoutMs, maxBytes: MAX_BYTES },
        headers: { 'Content-Type': 'application/ocsp-request', Accept: 'application/ocsp-response' },
      });
      const verdict = await readOcspAnswer(body, { issuer, issuerCertificate, serial, nonce }, this.#now());
      return verdict.is === 'unknown' ? { ...verdict, why: inWords(url, verdict.why) } : verdict;
    } catch (error) {
      const why = error instanceof FetchError ? error.message : 'what came is no answer of OCSP';
      return { is: 'unknown', why: inWords(url, `${why} (CA ${nameOf(issuerCertificate)})`) };
    } finally {
      this.#waiting--;
    }
  }
}

const inWords = (url: string, why: string): string => `the OCSP responder ${url} cannot say it: ${why}`;

const questionOf = (issuer: OcspIssuer, serial: string, nonce: Buffer): Buffer => {
  const value = AsnConvert.serialize(new OctetString(nonce));
  const request = new OCSPRequest({
    tbsRequest: new TBSRequest({
      requestList: [new Request({ reqCert: issuer.idOf(serial) })],
      requestExtensions: [new Extension({ extnID: id_pkix_ocsp_nonce, extnValue: new OctetString(value) })],
    }),
  });
  return Buffer.from(AsnConvert.serialize(request));
};

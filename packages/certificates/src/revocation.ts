import { X509Certificate } from 'node:crypto';

import { isIssuedBy, isSelfSigned } from './chain.js';
import { issuerName, nameOf } from './inspect.js';
import type { Revoked } from './read/crl-entries.js';
import type { OcspClient } from './ocsp/client.js';
import type { RevocationList, Trust } from './trust.js';

/** Revocation of peers: `soft` lets those in of whom nobody can say whether they were revoked, `hard` does not. */
export const REVOCATION_MODES = ['off', 'soft', 'hard'] as const;
export type RevocationMode = (typeof REVOCATION_MODES)[number];

/** The reason why a peer is refused. */
export interface RevocationRefusal {
  readonly code: 'TLS_CERTIFICATE_REVOKED' | 'TLS_REVOCATION_UNKNOWN';
  /** A sentence without its end. */
  readonly text: string;
}

export interface RevocationOptions {
  readonly mode: RevocationMode;
  /** Undefined: the public CAs, of which no CRL is here. */
  readonly trust: Trust | undefined;
  /** Name of the truststore. */
  readonly store: string;
  /** Asked where no CRL tells, and the certificate names a responder. Default: nobody is asked. */
  readonly ocsp?: Pick<OcspClient, 'ask'> | undefined;
  /** Told of a peer that `soft` lets in although nobody can say whether it was revoked. A sentence without its end. */
  readonly notice: (text: string) => void;
  /** Milliseconds since 1970. Default `Date.now`. */
  readonly now?: () => number;
}

/** A chain is no longer than that in a handshake. */
const MAX_CHAIN = 10;

/** CAs between peers and those of the truststore that are kept in mind; the oldest gives way. */
const MAX_BETWEEN = 1000;

const iso = (time: number): string => new Date(time).toISOString();

const shown = (certificate: X509Certificate, isPeer: boolean): string => {
  const what = isPeer ? 'the certificate of the partner' : 'a CA certificate above that of the partner';
  return `${what} (${nameOf(certificate)}, serial ${certificate.serialNumber})`;
};

const revokedText = (what: string, ca: X509Certificate, { at, reason }: Revoked, isPeer: boolean): string => {
  const by = `${what} was revoked by its CA ${nameOf(ca)}, ${reason}${at === undefined ? '' : `, since ${iso(at)}`}`;
  if (reason === 'certificateHold') return `${by}: the CA has to release it`;
  return `${by}: the partner needs a new one${isPeer ? '' : ', from another CA'}`;
};

type Verdict =
  | { readonly is: 'good' }
  | { readonly is: 'revoked'; readonly entry: Revoked }
  | { readonly is: 'unknown'; readonly why: string };

/** Asks the lists of one CA about a serial. */
const verdictOf = (
  lists: readonly RevocationList[],
  serial: string,
  ca: X509Certificate,
  store: string,
  now: number,
): Verdict => {
  const from = `the truststore ${JSON.stringify(store)}`;
  const asks = `put its newest one into crls of ${from}`;
  const unknown = (why: string): Verdict => ({ is: 'unknown', why });
  const begun = lists.filter(({ thisUpdate }) => thisUpdate <= now);
  const full = begun.find(({ isPartial }) => !isPartial);
  // Partial lists since the last whole one add to it.
  const asked = begun.filter((list) => list === full || (list.isPartial && list.thisUpdate >= (full?.thisUpdate ?? 0)));
  const said = asked.map(({ find }) => find(serial)).find((found) => found !== undefined)?.revoked;
  // Also in a list that should have been replaced: who was revoked stays so.
  if (said !== undefined) return { is: 'revoked', entry: said };
  if (full !== undefined) {
    if (full.nextUpdate === undefined || full.nextUpdate > now) return { is: 'good' };
    return unknown(`the CRL of ${nameOf(ca)} should have been replaced by ${iso(full.nextUpdate)}: ${asks}`);
  }
  if (begun.length > 0) {
    return unknown(
      `${from} has only CRLs of ${nameOf(ca)} that tell of a part of its certificates: ${asks}, a whole one`,
    );
  }
  const [early] = lists;
  if (early !== undefined) {
    return unknown(`the CRL of ${nameOf(ca)} begins at ${iso(early.thisUpdate)}: look at the clocks, or ${asks}`);
  }
  return unknown(`${from} has no CRL of ${nameOf(ca)}: ${asks}`);
};

/**
 * The check of a peer whose chain is good, by the CRLs of a truststore, and by OCSP: its certificate and those above it but the root, nearest first.
 * @returns undefined for `off`; a check that answers undefined where the peer may come in
 */
export const revocationCheck = ({ mode, trust, store, notice, ocsp, now = Date.now }: RevocationOptions) => {
  if (mode === 'off') return undefined;
  const { cas, lists } = trust ?? { cas: [], lists: new Map<string, readonly RevocationList[]>() };

  /** By fingerprint, of the chains that were shown: a session that is resumed at a server shows its own certificate alone. */
  const between = new Map<string, X509Certificate>();
  const remember = (ca: X509Certificate): void => {
    between.delete(ca.fingerprint256);
    between.set(ca.fingerprint256, ca);
    const [oldest] = between.keys();
    if (between.size > MAX_BETWEEN && oldest !== undefined) between.delete(oldest);
  };

  const verdictFor = (certificate: X509Certificate, issuer: X509Certificate | undefined): Verdict => {
    if (trust === undefined) {
      return {
        is: 'unknown',
        why: 'no truststore is named, and of the public CAs there are no CRLs: set truststoreName',
      };
    }
    if (issuer === undefined || !cas.some(({ fingerprint256 }) => fingerprint256 === issuer.fingerprint256)) {
      const name = issuer === undefined ? issuerName(certificate) : nameOf(issuer);
      const why = `the truststore ${JSON.stringify(store)} has no CRL of ${name}: put its certificate into certificates, and its CRL into crls`;
      return { is: 'unknown', why };
    }
    const of = lists.get(issuer.fingerprint256) ?? [];
    return verdictOf(of, certificate.serialNumber, issuer, store, now());
  };

  /** Asks the responder of a certificate of which no CRL tells. */
  const asking = async (
    certificate: X509Certificate,
    issuer: X509Certificate | undefined,
    verdict: Verdict,
  ): Promise<Verdict> => {
    if (verdict.is !== 'unknown' || issuer === undefined) return verdict;
    const said = await ocsp?.ask(certificate, issuer);
    if (said === undefined) return verdict;
    if (said.is === 'unknown') return { is: 'unknown', why: `${verdict.why}; ${said.why}` };
    return said.entry === undefined ? { is: 'good' } : { is: 'revoked', entry: said.entry };
  };

  /** @param chain of the peer, itself first; the rest as far as it is known */
  return async (chain: readonly X509Certificate[]): Promise<RevocationRefusal | undefined> => {
    const unknown: string[] = [];
    for (const ca of chain.slice(1, MAX_CHAIN)) remember(ca);
    let certificate = chain[0];
    for (let depth = 0; certificate !== undefined && depth < MAX_CHAIN && !isSelfSigned(certificate); depth++) {
      const below = certificate;
      const issuer: X509Certificate | undefined = [...cas, ...between.values()].find((one) => isIssuedBy(below, one));
      const verdict = await asking(below, issuer, verdictFor(below, issuer));
      const what = shown(below, depth === 0);
      if (verdict.is === 'revoked') {
        const text = revokedText(what, issuer ?? below, verdict.entry, depth === 0);
        return { code: 'TLS_CERTIFICATE_REVOKED', text };
      }
      if (verdict.is === 'unknown') unknown.push(`nobody can say whether ${what} was revoked: ${verdict.why}`);
      certificate = issuer;
    }
    const [first] = unknown;
    if (first === undefined) return undefined;
    if (mode === 'hard') return { code: 'TLS_REVOCATION_UNKNOWN', text: first };
    for (const text of unknown) notice(text);
    return undefined;
  };
};

/**
 * Whether the certificate of a session that is open has been revoked since its handshake, in words; undefined: it was not, or nobody can say.
 * @param raw DER
 */
export const revokedSince = async (raw: Buffer, trust: Trust, store: string): Promise<string | undefined> => {
  const check = revocationCheck({ mode: 'soft', trust, store, notice: () => undefined });
  const refusal = await check?.([new X509Certificate(raw)]);
  return refusal?.code === 'TLS_CERTIFICATE_REVOKED' ? refusal.text : undefined;
};

/**
 * Looks at sessions that are open, a turn of the event loop each: a look costs a signature, and files that cross shall not wait for thousands.
 * One that fails keeps no other from it.
 * @throws the first error, when all were looked at
 */
export const lookAtEach = async <T>(sessions: Iterable<T>, look: (session: T) => Promise<void>): Promise<void> => {
  const errors: unknown[] = [];
  for (const session of [...sessions]) {
    await look(session).catch((error: unknown) => errors.push(error));
    await new Promise(setImmediate);
  }
  if (errors.length > 0) throw errors[0] as Error;
};

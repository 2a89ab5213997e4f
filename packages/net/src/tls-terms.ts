/** The terms that a side brings to a handshake, checked and made ready once: making it costs milliseconds, a handshake only uses it. */
import { createPrivateKey, constants, randomBytes, X509Certificate } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { createSecureContext, getCiphers } from 'node:tls';
import type { SecureContext, SecureContextOptions } from 'node:tls';
import type { PeerCertificate } from './transport.js';

/** Certificate and key of this side. */
export interface TlsIdentity {
  /** PEM, the own certificate first, then the certificates between it and the CA. */
  readonly certificateChain: string;
  /** PEM, or a key that never becomes text here. */
  readonly privateKey: string | KeyObject;
}

/** CAs, and single certificates, that stand behind a peer. PEM. */
export interface TlsTrust {
  readonly certificates: readonly string[];
}

export type TlsVersion = 'TLSv1.2' | 'TLSv1.3';

/** Certificates of a peer: its own first, then those above it as far as they are known. */
export type PeerChain = readonly X509Certificate[];

/**
 * Asked about a peer whose chain is good, before its connection arrives. Resolves: undefined lets it in; otherwise why not.
 * For a session that is resumed at a server only its own certificate is known.
 */
export type RevocationCheck = (chain: PeerChain) => Promise<Revocation | undefined>;

export interface Revocation {
  readonly code: 'TLS_CERTIFICATE_REVOKED' | 'TLS_REVOCATION_UNKNOWN';
  /** A sentence without its end. */
  readonly text: string;
}

export interface TlsProtocolOptions {
  /** Default: TLS 1.2 and 1.3. */
  readonly versions?: readonly TlsVersion[];
  /**
   * IANA names, or those of OpenSSL, best first; a version none of whose suites is listed is not spoken. Default: those with
   * forward secrecy and authenticated encryption.
   */
  readonly cipherSuites?: readonly string[];
  /** Sessions that can be resumed: at a server 0 turns resumption off, a client keeps as many. Default 1000. */
  readonly sessionCacheSize?: number;
  /** Seconds for which a session can be resumed. Default 86,400. */
  readonly sessionTimeout?: number;
  readonly revocation?: RevocationCheck | undefined;
}

/**
 * The keys that seal sessions into tickets, 48 bytes each: a name, which every ticket shows (RFC 5077 §4), then what it is sealed with. The
 * first one seals. A session of another one can be resumed, and stays with its key: it ends with it, however often it is resumed.
 * Asked for each handshake; the same key is the same object.
 */
export type TicketKeys = () => readonly [Buffer, ...Buffer[]];

/** `NONE` asks for no certificate; `WANT` takes a peer without one, but not with a bad one; `NEED` takes none without. */
export type ClientAuth = 'NONE' | 'WANT' | 'NEED';

export interface TlsServerMaterial extends TlsProtocolOptions {
  readonly identity: TlsIdentity;
  /** Needed unless `clientAuth` is `NONE`. */
  readonly trust?: TlsTrust | undefined;
  readonly clientAuth: ClientAuth;
  /** Default: one that these terms have alone. */
  readonly ticketKeys?: TicketKeys | undefined;
}

export interface TlsClientMaterial extends TlsProtocolOptions {
  /** Presented when the server asks for a certificate. */
  readonly identity?: TlsIdentity | undefined;
  /** Default: the public CAs that Node knows. */
  readonly trust?: TlsTrust | undefined;
  /** Name that the certificate must have. Default: the host that is called. */
  readonly serverName?: string | undefined;
  /** SHA-256, upper-case hex with colons: one of them is the certificate, and neither chain nor name count. */
  readonly fingerprints?: readonly string[] | undefined;
}

/** Certificate, key or settings that TLS cannot use; the message says why and never shows them. */
export class TlsMaterialError extends Error {
  override readonly name = 'TlsMaterialError';
}

const DEFAULT_SUITES = [
  ...['TLS_AES_256_GCM_SHA384', 'TLS_CHACHA20_POLY1305_SHA256', 'TLS_AES_128_GCM_SHA256'],
  ...['ECDHE-ECDSA-AES256-GCM-SHA384', 'ECDHE-RSA-AES256-GCM-SHA384'],
  ...['ECDHE-ECDSA-CHACHA20-POLY1305', 'ECDHE-RSA-CHACHA20-POLY1305'],
  ...['ECDHE-ECDSA-AES128-GCM-SHA256', 'ECDHE-RSA-AES128-GCM-SHA256'],
];
const VERSIONS: readonly TlsVersion[] = ['TLSv1.2', 'TLSv1.3'];

/** OpenSSL's name of a suite of TLS 1.2 from the IANA's: `TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256`. */
const opensslName = (name: string): string => {
  const [, exchange = '', cipher = ''] = /^TLS_(.+)_WITH_(.+)$/.exec(name) ?? [];
  if (cipher === '') return name;
  const suite = cipher
    .replace(/^(AES|CAMELLIA)_(\d+)_/, '$1$2_')
    .replace('_CBC_SHA', '_SHA')
    .replace(/(CHACHA20_POLY1305)_SHA256$/, '$1')
    .replace(/_CCM_SHA256$/, '_CCM');
  return [...(exchange === 'RSA' ? [] : [exchange]), suite].join('_').replaceAll('_', '-');
};

/** @throws TlsMaterialError naming a suite that OpenSSL does not have */
export const suitesOf = (names: readonly string[]): readonly string[] => {
  const known = new Set(getCiphers().map((name) => name.toUpperCase()));
  return names.map((given) => {
    const name = opensslName(given.trim().toUpperCase());
    if (!known.has(name)) {
      throw new TlsMaterialError(`the cipher suite ${given} is not known: correct ssl.cipher-suites`);
    }
    return name;
  });
};

const contextOptions = (
  { versions = VERSIONS, cipherSuites = DEFAULT_SUITES, sessionTimeout = 86_400, ...rest }: TlsProtocolOptions,
  identity: TlsIdentity | undefined,
  trust: TlsTrust | undefined,
  ticketKey: Buffer | undefined,
): SecureContextOptions => {
  const suites = suitesOf(cipherSuites);
  const spoken = versions.filter((version) => suites.some((suite) => versionOf(suite) === version));
  if (spoken.length === 0) {
    throw new TlsMaterialError(
      `ssl.cipher-suites has no suite of ${versions.join(' or ')}: add one, or change ssl.protocol`,
    );
  }
  return {
    ...(identity === undefined ? {} : { cert: identity.certificateChain, key: pemOf(identity.privateKey) }),
    // Each certificate of the truststore is believed for itself: one between a root and a peer too, and that of a peer.
    ...(trust === undefined ? {} : { ca: [...trust.certificates], allowPartialTrustChain: true }),
    minVersion: spoken.includes('TLSv1.2') ? 'TLSv1.2' : 'TLSv1.3',
    maxVersion: spoken.includes('TLSv1.3') ? 'TLSv1.3' : 'TLSv1.2',
    ciphers: suites.join(':'),
    honorCipherOrder: true,
    // The key of a ticket says which terms may resume its session, not this.
    sessionIdContext: 'pesit',
    ...(ticketKey === undefined ? {} : { ticketKeys: ticketKey }),
    sessionTimeout: Math.max(1, sessionTimeout),
    secureOptions:
      constants.SSL_OP_NO_RENEGOTIATION |
      constants.SSL_OP_CIPHER_SERVER_PREFERENCE |
      (rest.sessionCacheSize === 0 ? constants.SSL_OP_NO_TICKET : 0),
  };
};

/** Suites of TLS 1.3 keep their IANA name. */
const versionOf = (suite: string): TlsVersion => (suite.startsWith('TLS_') ? 'TLSv1.3' : 'TLSv1.2');

const pemOf = (key: string | KeyObject): string =>
  typeof key === 'string' ? key : key.export({ type: 'pkcs8', format: 'pem' }).toString();

const contextOf = (
  protocol: TlsProtocolOptions,
  identity: TlsIdentity | undefined,
  trust: TlsTrust | undefined,
  ticketKey?: Buffer,
): SecureContext => {
  if (identity !== undefined) checkIdentity(identity);
  if (trust?.certificates.length === 0) throw new TlsMaterialError('the truststore is empty: put a CA into it');
  try {
    return createSecureContext(contextOptions(protocol, identity, trust, ticketKey));
  } catch (error) {
    if (error instanceof TlsMaterialError) throw error;
    const { message, code = message } = error as Error & { readonly code?: string };
    throw new TlsMaterialError(`OpenSSL cannot use the certificates, the key or the settings of TLS (${code})`);
  }
};

const checkIdentity = ({ certificateChain, privateKey }: TlsIdentity): void => {
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(certificateChain);
  } catch {
    throw new TlsMaterialError('the certificate cannot be read: it must be PEM, the own one first');
  }
  let key: KeyObject;
  try {
    key = typeof privateKey === 'string' ? createPrivateKey(privateKey) : privateKey;
  } catch {
    throw new TlsMaterialError('the private key cannot be read: it must be PEM without password');
  }
  if (!certificate.checkPrivateKey(key)) {
    throw new TlsMaterialError('the private key does not belong to the certificate');
  }
};

/** Bytes of a ticket key, and of the name at its beginning. */
const TICKET_KEY_BYTES = 48;
const TICKET_NAME_BYTES = 16;

/** The terms that a server brings to its handshakes. Sessions of other terms cannot be resumed with these, unless they are given the same ticket keys. */
export class TlsServerTerms {
  readonly clientAuth: ClientAuth;
  readonly revocation: RevocationCheck | undefined;
  readonly #ticketKeys: TicketKeys;
  readonly #make: (ticketKey: Buffer) => SecureContext;
  readonly #contexts = new WeakMap<Buffer, SecureContext>();

  /** @throws TlsMaterialError */
  constructor(material: TlsServerMaterial) {
    const { identity, trust, clientAuth } = material;
    if (clientAuth !== 'NONE' && trust === undefined) {
      throw new TlsMaterialError(`sslClientAuth is ${clientAuth}, and no truststore says which certificates are good`);
    }
    const own = randomBytes(TICKET_KEY_BYTES);
    this.#ticketKeys = material.ticketKeys ?? (() => [own]);
    this.#make = (ticketKey) => contextOf(material, identity, trust, ticketKey);
    this.clientAuth = clientAuth;
    this.revocation = material.revocation;
    this.contextFor();
  }

  /** @param hello what the partner said first, whole; default: it shows no ticket */
  contextFor(hello?: Buffer): SecureContext {
    const [sealing, ...others] = this.#ticketKeys();
    const shown = others.find((key) => hello?.includes(key.subarray(0, TICKET_NAME_BYTES)));
    const key = shown ?? sealing;
    const context = this.#contexts.get(key) ?? this.#make(key);
    this.#contexts.set(key, context);
    return context;
  }
}

/** A session that can be resumed, and who the server was: resumed, it does not show its certificate again. */
export interface TlsSession {
  readonly ticket: Buffer;
  readonly chain: PeerChain;
}

/** The terms that a client brings to its handshakes, and the sessions that it may resume. */
export class TlsClientTerms {
  readonly context: SecureContext;
  readonly serverName: string | undefined;
  readonly fingerprints: readonly string[] | undefined;
  readonly revocation: RevocationCheck | undefined;
  readonly #most: number;
  /** By server, the one used last at the end. */
  readonly #sessions = new Map<string, TlsSession>();

  /** @throws TlsMaterialError */
  constructor(material: TlsClientMaterial) {
    const { identity, trust, fingerprints, sessionCacheSize = 1000 } = material;
    this.context = contextOf(material, identity, trust);
    this.serverName = material.serverName;
    this.fingerprints = fingerprints?.length === 0 ? undefined : fingerprints;
    this.revocation = material.revocation;
    this.#most = sessionCacheSize;
  }

  /** Whether `certificate` is one of those that are pinned. */
  pins({ fingerprint }: PeerCertificate): boolean {
    return this.fingerprints?.includes(fingerprint) === true;
  }

  session(server: string): TlsSession | undefined {
    return this.#sessions.get(server);
  }

  remember(server: string, session: TlsSession): void {
    this.#sessions.delete(server);
    if (this.#most === 0) return;
    this.#sessions.set(server, session);
    const [oldest] = this.#sessions.keys();
    if (this.#sessions.size > this.#most && oldest !== undefined) this.#sessions.delete(oldest);
  }

  forget(server: string): void {
    this.#sessions.delete(server);
  }
}

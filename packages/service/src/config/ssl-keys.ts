import { flag, integer, list, oneOf, text } from './kinds.js';
import { key } from './row.js';

const NEXT = 'Counts from the next handshake on.';

/** TLS of listeners and of connections to remote servers (design, Configuration). */
export const SSL_KEYS = {
  'ssl.protocol': key('both', {
    type: oneOf(['TLS', 'TLSv1.2', 'TLSv1.3']),
    default: 'TLS',
    reload: true,
    description: `Versions of TLS that are spoken: \`TLS\` = 1.2 and 1.3, the others one alone. ${NEXT}`,
  }),
  'ssl.cipher-suites': key('both', {
    type: list(),
    default: [],
    reload: true,
    description: `Cipher suites, best first, by their IANA or OpenSSL names; a version none of whose suites is listed is not spoken. Empty = those with forward secrecy and authenticated encryption. ${NEXT}`,
  }),
  'ssl.session-cache-size': key('both', {
    type: integer(0, 1_000_000),
    default: 1000,
    reload: true,
    description: `Sessions of remote servers that are kept to be resumed; 0 = none, and listeners let none be resumed. ${NEXT}`,
  }),
  'ssl.session-timeout': key('both', {
    type: integer(1, 604_800),
    default: 86_400,
    unit: 'seconds',
    reload: true,
    description: `How long a session can be resumed at most, however often it is. ${NEXT}`,
  }),
  'ssl.keystore-name': key('both', {
    type: text('the name of a keystore, or nothing'),
    default: '',
    reload: true,
    description: 'Keystore of listeners and remote servers that name none (`keystoreName`). Empty = none.',
  }),
  'ssl.truststore-name': key('both', {
    type: text('the name of a truststore, or nothing'),
    default: '',
    reload: true,
    description: 'Truststore of listeners and remote servers that name none (`truststoreName`). Empty = none.',
  }),
  'ssl.ocsp': key('both', {
    type: flag(),
    default: false,
    reload: true,
    description: `With \`revocation\` \`soft\` or \`hard\`: of a peer of which no CRL tells, the OCSP responder is asked that its certificate names (http or https, at most 3 seconds). ${NEXT}`,
  }),
  'ssl.crl-refresh': key('both', {
    type: integer(1, 10_080),
    default: 60,
    unit: 'minutes',
    reload: true,
    description:
      'After so long the leader asks the `crlUrls` of truststores again; earlier when half of the time is over until a CRL has to be replaced, or after a failure.',
  }),
} as const;

/** The part of the configuration that says how TLS is spoken. */
export interface TlsProtocolConfig {
  readonly 'ssl.protocol': 'TLS' | 'TLSv1.2' | 'TLSv1.3';
  readonly 'ssl.cipher-suites': readonly string[];
  readonly 'ssl.session-cache-size': number;
  readonly 'ssl.session-timeout': number;
}

/** The same as TLS is told: versions, suites unless the default counts, sessions, seconds. */
export const tlsProtocolOf = (config: TlsProtocolConfig) => {
  const { 'ssl.protocol': protocol, 'ssl.cipher-suites': cipherSuites } = config;
  return {
    versions: protocol === 'TLS' ? (['TLSv1.2', 'TLSv1.3'] as const) : ([protocol] as const),
    ...(cipherSuites.length === 0 ? {} : { cipherSuites }),
    sessionCacheSize: config['ssl.session-cache-size'],
    sessionTimeout: config['ssl.session-timeout'],
  };
};

const NO_GZIP =
  'PeSIT knows no GZIP, only the strings of its annex A (PI 21): set compression of the virtual file, of the remote server or of the request instead';
const OWN_BUFFERS =
  'the node sizes its buffers itself, by the negotiated entity size: set transfer.max-entity-size, or maxEntitySize of the listener, of the remote server or of the request';
const NO_TLS = 'TLS is not built yet in this version';

/**
 * Keys of the interface that can mean nothing true here, and why: whoever sets one is told, instead of believing that it works.
 */
export const REFUSED_KEYS: Readonly<Partial<Record<string, string>>> = {
  'transfer.compression.enabled': NO_GZIP,
  'transfer.compression.algorithm': NO_GZIP,
  'transfer.compression.level': NO_GZIP,
  'transfer.chunk-size': OWN_BUFFERS,
  'transfer.read-buffer-size': OWN_BUFFERS,
  'transfer.write-buffer-size': OWN_BUFFERS,
  'transfer.socket-buffer-size': OWN_BUFFERS,
  'transfer.write-timeout':
    'a partner that takes nothing is waited for as long as one that sends nothing: set transfer.read-timeout, or readTimeout of the listener',
  'ssl.protocol': NO_TLS,
  'ssl.cipher-suites': NO_TLS,
  'ssl.session-cache-size': NO_TLS,
  'ssl.session-timeout': NO_TLS,
  'ssl.keystore-name': NO_TLS,
  'ssl.truststore-name': NO_TLS,
};

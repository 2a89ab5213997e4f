import { flag, integer, text } from './kinds.js';
import { key } from './row.js';

/** HTTPS of the REST interface: rows of `CONFIG_KEYS`. Protocol and cipher suites are those of `SSL_KEYS`. */
export const SERVER_SSL_KEYS = {
  'server.ssl.enabled': key('both', {
    type: flag(),
    default: false,
    description:
      'Whether `server.port` speaks HTTPS, with the versions of `ssl.protocol` and the suites of `ssl.cipher-suites`. It needs `server.ssl.keystore-name`, or `server.ssl.certificate-file` and `server.ssl.key-file`.',
  }),
  'server.ssl.keystore-name': key('both', {
    type: text('the name of a keystore, or nothing'),
    default: '',
    reload: true,
    description:
      'Keystore with the certificate of the REST interface. A changed one counts from the next handshake on. Until there is one, and until the database is open, callers see a certificate that the service makes for itself at each start.',
  }),
  'server.ssl.certificate-file': key('both', {
    type: text('a file'),
    default: '',
    reload: true,
    description:
      'PEM file with the certificate of the REST interface and those between it and its CA, in place of a keystore. A changed file counts from the next handshake on.',
  }),
  'server.ssl.key-file': key('both', {
    type: text('a file'),
    default: '',
    reload: true,
    description: 'PEM file with the private key of `server.ssl.certificate-file`, without a password.',
  }),
  'server.ssl.http-port': key('both', {
    type: integer(0, 65_535),
    default: 0,
    description:
      'TCP port on which the REST interface speaks plain HTTP beside HTTPS, for probes or a proxy on the same machine; 0 = none. Counts with `server.ssl.enabled` alone.',
  }),
} as const;

/** Looks for keys that contradict each other. @param values of all keys @returns a sentence each */
export const serverSslProblems = (values: ReadonlyMap<string, unknown>): readonly string[] => {
  const [keystore, certificate, privateKey] = [
    values.get('server.ssl.keystore-name') !== '',
    values.get('server.ssl.certificate-file') !== '',
    values.get('server.ssl.key-file') !== '',
  ];
  if (values.get('server.ssl.enabled') !== true) return [];
  const problems: string[] = [];
  if (keystore && (certificate || privateKey)) {
    problems.push(
      'server.ssl.keystore-name: expected nothing beside server.ssl.certificate-file and server.ssl.key-file: leave one of the two ways out',
    );
  } else if (certificate !== privateKey) {
    const [given, lacks] = certificate ? ['certificate-file', 'key-file'] : ['key-file', 'certificate-file'];
    problems.push(`server.ssl.${lacks}: expected a file beside server.ssl.${given}, got nothing`);
  } else if (!keystore && !certificate) {
    problems.push(
      'server.ssl.enabled: expected server.ssl.keystore-name, or server.ssl.certificate-file and server.ssl.key-file, to say with which certificate',
    );
  }
  const [port, plain] = [values.get('server.port'), values.get('server.ssl.http-port')];
  if (plain !== 0 && plain === port) {
    problems.push(`server.ssl.http-port: expected another port than server.port, got ${String(plain)}`);
  }
  return problems;
};

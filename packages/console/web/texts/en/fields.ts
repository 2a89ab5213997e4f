/** Every field of the forms in English. `parts/field-words.ts` asks for words of every field that the interface has. */

/** Of one field. */
export interface FieldWords {
  readonly label: string;
  readonly help?: string;
  /** What an empty control means. */
  readonly empty?: string;
  /** Which texts are right, where a pattern says it. */
  readonly form?: string;
}

const GLOBS = 'One a line; * stands for any characters.';
const PASSWORD = '1 to 8 characters: letters, digits and signs of ASCII.';

const shared = {
  description: { label: 'Notes' },
  enabled: { label: 'Enabled' },
  maxBytesPerSecond: { label: 'Bytes a second', help: 'Of all its files together, on each pod.', empty: 'no limit' },
  multiArticle: { label: 'Several articles in one DTF', empty: 'yes' },
  concatenation: { label: 'Several FPDUs in one entity', empty: 'yes' },
  certificateFingerprint: { label: 'Fingerprints of the certificate', help: 'SHA-256, one a line.', empty: 'any' },
  preconnectId: { label: 'Identifier of the pre-connection', empty: 'no pre-connection', form: PASSWORD },
  preconnectPassword: { label: 'Password of the pre-connection', form: PASSWORD },
  truststoreName: { label: 'Truststore', empty: 'as configured' },
  maxEntitySize: { label: 'Largest entity (PI 25)', help: 'Bytes.', empty: 'as configured' },
  syncInterval: { label: 'Interval of points (PI 7)', help: 'KB; 0: no points.', empty: 'as configured' },
  syncWindow: { label: 'Window of points (PI 7)', help: '0: points are not acknowledged.', empty: 'as configured' },
  tcpipHeader: {
    label: 'Framing on TCP',
    help: 'Two bytes of length before each entity, or none.',
    empty: 'as configured',
  },
  codePage: { label: 'EBCDIC code page', empty: '037' },
  compression: { label: 'Compression (PI 21)', empty: 'none' },
} as const;

export const fields = {
  partner: {
    partnerId: { label: 'Identifier (PI 3)', help: 'The name that the partner gives when it connects.' },
    name: { label: 'Name' },
    description: shared.description,
    password: { label: 'Password (PI 5)', help: PASSWORD, form: PASSWORD },
    mayChangePassword: { label: 'May change its password' },
    enabled: { ...shared.enabled, help: 'No: it cannot connect (3-304).' },
    allowedOperations: { label: 'The partner may' },
    allowedFiles: { label: 'Virtual files that it may use', help: GLOBS, empty: 'as access.default says' },
    allowedListeners: { label: 'Listeners on which it is known', help: GLOBS, empty: 'as access.default says' },
    allowedAddresses: {
      label: 'Addresses from which it may connect',
      help: 'Addresses and CIDR ranges, one a line.',
      empty: 'every address',
    },
    maxConnections: { label: 'Sessions at a time', empty: 'as configured' },
    maxBytesPerSecond: shared.maxBytesPerSecond,
    quotaBytes: {
      label: 'Quota in bytes',
      help: 'Of its files that lie here and were not fetched.',
      empty: 'no quota',
    },
    quotaFiles: { label: 'Quota in files', empty: 'no quota' },
    preconnectId: shared.preconnectId,
    preconnectPassword: shared.preconnectPassword,
    tlsRequired: { label: 'Only with TLS' },
    certificateFingerprint: shared.certificateFingerprint,
    certificateSubject: { label: 'Subjects of the certificate', help: 'RFC 4514, one a line.', empty: 'any' },
    certificateSan: {
      label: 'Alternative names of the certificate',
      help: 'DNS:, IP:, URI: or email: before the name; one a line.',
      empty: 'any',
    },
    multiArticle: shared.multiArticle,
    concatenation: shared.concatenation,
  },
  file: {
    fileId: { label: 'Identifier (PI 12)', help: 'The name of the file that a partner asks for.' },
    name: { label: 'Name' },
    description: shared.description,
    direction: { label: 'Direction' },
    enabled: shared.enabled,
    allowedPartners: { label: 'Partners that may use it', help: GLOBS, empty: 'as access.default says' },
    receiveDirectory: { label: 'Directory of what is received', empty: 'from-partners' },
    sendDirectory: { label: 'Directory, or file, that is sent', empty: 'to-partners' },
    filenamePattern: { label: 'Names that are sent', help: 'For example *.csv', empty: 'every name' },
    receiveFilenamePattern: {
      label: 'Name of what is received',
      help: 'With ${partner}, ${virtualFile}, ${date}, ${time}, ${timestamp}, ${transferId}.',
      empty: '${partner}_${virtualFile}_${timestamp}_${transferId}',
    },
    overwrite: { label: 'Replaces a file of the same name' },
    maxFileSize: { label: 'Largest file', help: 'Bytes.', empty: 'no limit' },
    recordLength: { label: 'Longest record (PI 32)', help: 'Bytes.', empty: 'no limit; 4096 is sent' },
    recordFormat: { label: 'Record format (PI 31)', empty: 'as the partner says' },
    text: { label: 'Text file', help: 'Each line is a record.' },
    durability: { label: 'When data is on the disk', empty: 'as configured' },
    ebcdic: { label: 'EBCDIC on the wire (PI 16)', empty: 'no' },
    codePage: shared.codePage,
    compression: shared.compression,
  },
  listener: {
    serverId: { label: 'Identifier (PI 4)', help: 'The name that partners call.' },
    port: { label: 'Port', help: 'Of plain TCP. Empty: TLS alone.', empty: 'TLS alone' },
    tlsPort: { label: 'TLS port', empty: '5001' },
    sslEnabled: { label: 'Takes TLS' },
    sslClientAuth: { label: 'Certificates of partners', empty: 'as configured' },
    keystoreName: { label: 'Keystore', help: 'Certificate and key of the listener.', empty: 'as configured' },
    truststoreName: { ...shared.truststoreName, help: 'Checks the certificates of partners.' },
    proxyProtocol: { label: 'PROXY header of a balancer' },
    trustedProxies: { label: 'Balancers that are believed', help: 'Addresses and CIDR ranges, one a line.' },
    revocation: { label: 'Revoked certificates of partners' },
    autoStart: { label: 'Starts by itself' },
    maxConnections: { label: 'Sessions at a time', help: 'Of all pods together.' },
    maxBytesPerSecond: shared.maxBytesPerSecond,
    readTimeout: { label: 'Patience with a silent partner', help: 'Milliseconds.' },
    receiveDirectory: { label: 'Directory of what is received', empty: 'from-partners' },
    sendDirectory: { label: 'Directory of what is sent', empty: 'to-partners' },
    strictServerId: { label: 'Refuses another identifier (PI 4)' },
    tcpipHeader: shared.tcpipHeader,
    maxEntitySize: shared.maxEntitySize,
    syncInterval: shared.syncInterval,
    syncWindow: shared.syncWindow,
  },
  remoteServer: {
    name: { label: 'Name', help: 'How requests and lists name it.' },
    host: { label: 'Host', help: 'A host name, or an address of IPv4 or IPv6.' },
    port: { label: 'Port' },
    tlsPort: { label: 'TLS port', help: 'Called in place of the port while TLS is on.', empty: '5001' },
    tlsEnabled: { label: 'With TLS' },
    keystoreName: {
      label: 'Keystore',
      help: 'Our certificate, where the server asks for one.',
      empty: 'as configured',
    },
    truststoreName: {
      ...shared.truststoreName,
      help: 'Checks the certificate of the server.',
      empty: 'as configured, else the public CAs',
    },
    revocation: { label: 'Revoked certificate of the server' },
    tlsServerName: { label: 'Name in its certificate', empty: 'the host' },
    certificateFingerprint: { ...shared.certificateFingerprint, empty: 'chain and name are checked' },
    serverId: { label: 'Its identifier (PI 4)', help: 'As the server calls itself.' },
    clientId: { label: 'Our identifier (PI 3)', help: 'As the server knows us.' },
    password: { label: 'Password (PI 5)', empty: 'none is sent', form: PASSWORD },
    enabled: shared.enabled,
    description: shared.description,
    maxConnections: { label: 'Sessions at a time', empty: 'as configured' },
    maxBytesPerSecond: shared.maxBytesPerSecond,
    tcpipHeader: shared.tcpipHeader,
    maxEntitySize: shared.maxEntitySize,
    syncInterval: shared.syncInterval,
    syncWindow: shared.syncWindow,
    compression: shared.compression,
    crc: { label: 'CRC (PI 1)', empty: 'no' },
    resync: { label: 'Resynchronisation (PI 23)', empty: 'no' },
    ebcdic: { label: 'EBCDIC on the wire (PI 16)', empty: 'no' },
    codePage: shared.codePage,
    selectByName: { label: 'Fetches a file by its name', help: 'Only from a node of this product.', empty: 'no' },
    multiArticle: shared.multiArticle,
    concatenation: shared.concatenation,
    preconnectId: shared.preconnectId,
    preconnectPassword: shared.preconnectPassword,
    recordLength: { label: 'Longest record (PI 32)', help: 'Bytes.', empty: '4096' },
    recordFormat: { label: 'Record format (PI 31)', empty: 'by the kind of the file' },
    text: { label: 'Text files', empty: 'no' },
  },
} as const satisfies Readonly<Record<string, Readonly<Record<string, FieldWords>>>>;

/** The same fields with any words. */
export type AllFieldWords = {
  readonly [R in keyof typeof fields]: { readonly [F in keyof (typeof fields)[R]]: FieldWords };
};

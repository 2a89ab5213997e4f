/** How the fields of each form stand: what nearly everybody sets first, the rest in groups that are folded. */
import type { Layout } from './form.tsx';

export const PARTNER: Layout<'partner'> = {
  first: ['partnerId', 'name', 'password', 'allowedOperations', 'enabled', 'allowedFiles'],
  groups: [
    ['access', ['allowedListeners', 'allowedAddresses', 'mayChangePassword', 'preconnectId', 'preconnectPassword']],
    ['limits', ['maxConnections', 'maxBytesPerSecond', 'quotaBytes', 'quotaFiles']],
    ['tls', ['tlsRequired', 'certificateFingerprint', 'certificateSubject', 'certificateSan']],
    ['protocol', ['multiArticle', 'concatenation']],
  ],
};

export const FILE: Layout<'file'> = {
  first: ['fileId', 'name', 'direction', 'enabled', 'allowedPartners'],
  groups: [
    [
      'places',
      ['receiveDirectory', 'receiveFilenamePattern', 'overwrite', 'sendDirectory', 'filenamePattern', 'durability'],
    ],
    ['records', ['recordFormat', 'recordLength', 'text', 'ebcdic', 'codePage', 'compression']],
    ['limits', ['maxFileSize']],
  ],
};

export const LISTENER: Layout<'listener'> = {
  first: ['serverId', 'port', 'sslEnabled', 'tlsPort', 'autoStart'],
  groups: [
    ['tls', ['keystoreName', 'truststoreName', 'sslClientAuth', 'revocation']],
    ['limits', ['maxConnections', 'maxBytesPerSecond', 'readTimeout']],
    ['places', ['receiveDirectory', 'sendDirectory']],
    ['protocol', ['strictServerId', 'tcpipHeader', 'maxEntitySize', 'syncInterval', 'syncWindow']],
    ['balancer', ['proxyProtocol', 'trustedProxies']],
  ],
};

export const REMOTE_SERVER: Layout<'remoteServer'> = {
  first: ['name', 'host', 'port', 'serverId', 'clientId', 'password', 'tlsEnabled', 'enabled'],
  groups: [
    ['tls', ['tlsPort', 'truststoreName', 'keystoreName', 'tlsServerName', 'revocation', 'certificateFingerprint']],
    ['limits', ['maxConnections', 'maxBytesPerSecond']],
    ['records', ['text', 'recordFormat', 'recordLength', 'ebcdic', 'codePage', 'selectByName']],
    [
      'protocol',
      [
        ...(['tcpipHeader', 'maxEntitySize', 'syncInterval', 'syncWindow', 'compression', 'crc', 'resync'] as const),
        ...(['multiArticle', 'concatenation', 'preconnectId', 'preconnectPassword'] as const),
      ],
    ],
  ],
};

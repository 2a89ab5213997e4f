/**
 * The rows of the interface specification, in our words, and where each is found in the product.
 *
 * A row: its name, the variants that have it (A, B or AB), where it is (`operation`, `field` of a body, `answer`, `query`, `key` of
 * the configuration, `metric`, `proven` by a named test, or `absent`), and what differs and why, if anything does.
 */

import { absent, answer, field, fields, key, metric, operation, proven, query } from './interface-kinds.mjs';

const LISTENERS = 'POST /api/v1/servers';
const PARTNERS = 'POST /api/v1/config/partners';
const FILES = 'POST /api/v1/config/files';
const SEND = 'POST /api/v1/transfers/send';
const CERTIFICATES = '/api/v1/certificates';
const NOT_BUILT = 'not built yet';

export const INTERFACE = {
  Listener: [
    ...fields((name) => field('server', LISTENERS, name), 'AB', [
      ...['serverId', 'port', 'tlsPort', 'autoStart', 'maxConnections', 'readTimeout'],
    ]),
    ...fields((name) => field('server', LISTENERS, name), 'B', ['receiveDirectory', 'sendDirectory', 'sslEnabled']),
    [
      'sslClientAuth',
      'B',
      field('server', LISTENERS, 'sslClientAuth'),
      '`WANT` asks for a certificate and takes partners without; true and false are `NEED` and `NONE`',
    ],
    [
      'tcpipHeader',
      'B',
      field('server', LISTENERS, 'tcpipHeader'),
      '`auto` recognises it; `true` and `false` are `length-prefixed` and `raw`',
    ],
    [
      'keystore and truststore by name',
      'AB',
      field('server', LISTENERS, 'keystoreName'),
      '`keystoreName`, `truststoreName`; default: `ssl.keystore-name`, `ssl.truststore-name`',
    ],
    [
      'status',
      'AB',
      answer('server', 'GET /api/v1/servers/{serverId}/status', 'status'),
      'also STOPPED, STARTING, STOPPING, FAILED with `statusReason`',
    ],
    [
      'activeConnections',
      'AB',
      answer('server', 'GET /api/v1/servers/{serverId}/status', 'activeConnections'),
      'of all pods together',
    ],
    ['totalTransfers', 'AB', answer('server', 'GET /api/v1/servers/{serverId}/status', 'totalTransfers')],
    ['uptime', 'AB', answer('server', 'GET /api/v1/servers/{serverId}/status', 'uptime'), 'seconds'],
    ['GET /api/v1/servers', 'AB', operation('server', 'GET /api/v1/servers')],
    ['POST /api/v1/servers', 'AB', operation('server', LISTENERS), '201 with Location; an id that exists is 409'],
    [
      'POST …/{serverId}/start',
      'AB',
      operation('server', 'POST /api/v1/servers/{serverId}/start'),
      'a port that cannot be bound is FAILED and 409',
    ],
    ['POST …/{serverId}/stop', 'AB', operation('server', 'POST /api/v1/servers/{serverId}/stop')],
    ['GET …/{serverId}/status', 'AB', operation('server', 'GET /api/v1/servers/{serverId}/status')],
    ['the same without v1', 'A', operation('server', 'POST /api/servers/{serverId}/start')],
  ],
  Partner: [
    ['partnerId', 'A', field('server', PARTNERS, 'partnerId'), 'both names are taken and answered'],
    ['id', 'B', field('server', PARTNERS, 'id'), 'another name of `partnerId`'],
    ...fields((name) => field('server', PARTNERS, name), 'AB', ['name', 'description', 'enabled']),
    ['password', 'AB', field('server', PARTNERS, 'password'), 'kept as a scrypt hash'],
    [
      'allowedOperations',
      'A',
      field('server', PARTNERS, 'allowedOperations'),
      'the same as `accessType`; WRITE: the partner sends to us',
    ],
    ['accessType', 'B', field('server', PARTNERS, 'accessType'), 'READ, WRITE, BOTH'],
    ...fields((name) => field('server', PARTNERS, name), 'AB', ['preconnectId', 'preconnectPassword']),
    ...fields((name) => answer('server', 'GET /api/v1/config/partners', name), 'AB', [
      'lastConnection',
      'transferCount',
    ]),
    ['GET, POST /api/v1/config/partners', 'AB', operation('server', PARTNERS)],
    [
      'GET, PUT, DELETE …/{id}',
      'AB',
      operation('server', 'PUT /api/v1/config/partners/{partnerId}'),
      'PUT changes what it names; null unsets',
    ],
    ['remote-partners', 'B', absent, `${NOT_BUILT}; what a partner may do is in its own fields`],
  ],
  'Virtual file': [
    ['fileId', 'A', field('server', FILES, 'fileId'), 'both names are taken and answered'],
    ['id', 'B', field('server', FILES, 'id'), 'another name of `fileId`'],
    ['sendFile', 'A', field('server', FILES, 'sendFile'), 'another name of `sendDirectory`, and may name one file'],
    ...fields((name) => field('server', FILES, name), 'AB', [
      ...[
        'name',
        'sendDirectory',
        'receiveDirectory',
        'filenamePattern',
        'overwrite',
        'recordLength',
        'text',
        'ebcdic',
      ],
    ]),
    [
      'receiveFilenamePattern',
      'AB',
      field('server', FILES, 'receiveFilenamePattern'),
      'a placeholder that is unknown is a 400',
    ],
    ['direction', 'AB', field('server', FILES, 'direction'), 'as this node sees it: RECEIVE, a partner may write it'],
    ['enabled', 'B', field('server', FILES, 'enabled')],
    ['recordFormat', 'AB', field('server', FILES, 'recordFormat'), '0 fixed, 128 variable (PI 31)'],
    ['maxRetries', 'B', field('server', FILES, 'maxRetries'), 'taken and ignored: there are no connectors yet'],
    [
      'placeholders of the pattern',
      'AB',
      proven('all of them', 'packages/storage/test/name-pattern.test.ts', 'the path that a pattern gives'),
    ],
    ['GET, POST /api/v1/config/files', 'AB', operation('server', FILES)],
    ['GET, PUT, DELETE …/{id}', 'AB', operation('server', 'DELETE /api/v1/config/files/{fileId}')],
    [
      'GET …/{id}/available?partnerId=',
      'B',
      operation('server', 'GET /api/v1/config/files/{fileId}/available'),
      'what one SELECT after the other would get, with the reason where one would be refused',
    ],
    [
      'POST /api/v1/clusters/{clusterId}/virtual-files',
      'A',
      operation('server', 'POST /api/v1/clusters/{clusterId}/virtual-files'),
      'of `cluster.name` alone',
    ],
  ],
  'Remote server': [
    ...fields((name) => field('client', LISTENERS, name), 'AB', [
      ...['name', 'host', 'port', 'tlsPort', 'serverId', 'clientId', 'password', 'tlsEnabled'],
    ]),
    ...fields((name) => field('client', LISTENERS, name), 'B', ['enabled', 'description']),
    ['id', 'AB', answer('client', 'GET /api/v1/servers', 'id')],
    [
      'status',
      'AB',
      answer('client', 'GET /api/v1/servers', 'status'),
      'also UNKNOWN, UNREACHABLE, REFUSED, by the last contact',
    ],
    ['GET, POST /api/v1/servers', 'AB', operation('client', LISTENERS)],
    ['PUT, DELETE …/{id}', 'AB', operation('client', 'PUT /api/v1/servers/{id}')],
    [
      'POST …/{id}/test',
      'AB',
      operation('client', 'POST /api/v1/servers/{id}/test'),
      'a real session; a failure is 200 with `success: false`',
    ],
    ...fields((name) => answer('client', 'POST /api/v1/servers/{id}/test', name), 'AB', [
      ...['success', 'latency', 'serverVersion', 'message'],
    ]),
  ],
  'Outbound transfer': [
    ...fields((name) => answer('client', 'GET /api/v1/transfers/{id}', name), 'AB', [
      ...['id', 'status', 'direction', 'filename', 'serverName', 'size', 'startTime', 'endTime'],
    ]),
    ['duration', 'AB', answer('client', 'GET /api/v1/transfers/{id}', 'duration'), 'milliseconds'],
    [
      'stored path of a received file',
      'AB',
      answer('client', 'GET /api/v1/transfers/{id}', 'localPath'),
      '`localPath`: the specification does not show its name',
    ],
    ['transferId', 'AB', answer('client', SEND, 'transferId'), 'the same as `id`'],
    ...fields(
      (name) => field('client', SEND, name),
      'A',
      [...['serverId', 'remoteFilename', 'partnerId', 'virtualFile', 'fileContent']],
      'send: ',
    ),
    ['send: server', 'B', field('client', SEND, 'server')],
    ['send: filename', 'B', field('client', SEND, 'filename'), 'inside the send tree alone'],
    ['send: syncPointsEnabled', 'B', field('client', SEND, 'syncPointsEnabled')],
    ['POST /api/v1/transfers/send', 'AB', operation('client', SEND), '202; `?wait=` holds the answer until the end'],
    ['POST /api/v1/transfers/receive', 'AB', operation('client', 'POST /api/v1/transfers/receive'), '202'],
    [
      'POST /api/v1/transfers/message',
      'AB',
      operation('client', 'POST /api/v1/transfers/message'),
      'field `message`; 202',
    ],
    ['GET /api/v1/transfers/{id}', 'AB', operation('client', 'GET /api/v1/transfers/{id}')],
    ['GET /api/v1/transfers/history', 'AB', operation('client', 'GET /api/v1/transfers/history')],
    ...fields(
      (name) => query('client', 'GET /api/v1/transfers/history', name),
      'AB',
      [...['page', 'size', 'sort', 'status', 'direction', 'serverId', 'from', 'to']],
      '?',
    ),
    ['GET /api/v1/transfers', 'B', operation('client', 'GET /api/v1/transfers')],
    [
      'POST …/{id}/replay',
      'AB',
      operation('client', 'POST /api/v1/transfers/{id}/replay'),
      'a new transfer from the same request',
    ],
    [
      'POST …/{id}/retry',
      'AB',
      operation('client', 'POST /api/v1/transfers/{id}/retry'),
      'the same transfer, from its last point',
    ],
    ['POST …/{id}/cancel', 'AB', operation('client', 'POST /api/v1/transfers/{id}/cancel')],
    ['GET /api/v1/transfers/stats', 'AB', operation('client', 'GET /api/v1/transfers/stats')],
    [
      'states',
      'AB',
      proven(
        'PENDING, IN_PROGRESS, COMPLETED, FAILED, CANCELLED',
        'apps/client/test/transfers.test.ts',
        'allows no status change that the design does not know',
      ),
      'the database refuses any other move',
    ],
  ],
  'Inbound transfer': [
    ...fields((name) => answer('server', 'GET /api/v1/transfers/{id}', name), 'AB', [
      ...['id', 'partnerId', 'direction', 'filename', 'virtualFileId', 'size', 'status', 'startTime', 'endTime'],
    ]),
    ['GET /api/v1/transfers', 'AB', operation('server', 'GET /api/v1/transfers')],
    ...fields(
      (name) => query('server', 'GET /api/v1/transfers', name),
      'AB',
      [...['page', 'size', 'partnerId', 'direction', 'status', 'from', 'to']],
      '?',
    ),
    ...fields(
      (name) => answer('server', 'GET /api/v1/transfers', name),
      'AB',
      [...['content', 'totalElements', 'totalPages', 'number', 'size']],
      'page: ',
    ),
    ['GET /api/v1/transfers/active', 'B', operation('server', 'GET /api/v1/transfers/active')],
    ['GET /api/v1/transfers/stats', 'B', operation('server', 'GET /api/v1/transfers/stats')],
    [
      'GET /api/v1/transfers/{id}/content',
      'B',
      operation('server', 'GET /api/v1/transfers/{id}/content'),
      'only with `transfer.content-download`, for admins; 410 when the file is another one now',
    ],
  ],
  'License and cluster': [
    ['GET /api/v1/license', 'A', operation('server', 'GET /api/v1/license'), 'on both apps'],
    ...fields((name) => answer('client', 'GET /api/v1/license', name), 'A', [
      ...['valid', 'evaluation', 'blocked', 'type', 'customer', 'expirationDate', 'daysUntilExpiration', 'maxClusters'],
      ...['maxPodsPerCluster', 'evaluationStartDate', 'evaluationExpirationDate', 'evaluationDaysRemaining'],
    ]),
    ['POST /api/v1/license', 'A', field('server', 'POST /api/v1/license', 'license')],
    [
      'POST /api/v1/license/extend-evaluation',
      'A',
      field('server', 'POST /api/v1/license/extend-evaluation', 'days'),
      'a build may cap the sum',
    ],
    [
      '402 LICENSE_REQUIRED',
      'A',
      proven('as specified', 'packages/license/test/gate.test.ts', 'blocked: 402 as specified'),
    ],
    ...fields(key, 'A', ['license.file', 'license.content', 'license.evaluation-days']),
    [
      'limits by type of license',
      'A',
      proven('as specified', 'packages/license/test/limits.test.ts', 'as many pods work as the license allows'),
    ],
    ['GET /api/v1/cluster/status', 'A', operation('server', 'GET /api/v1/cluster/status')],
    ['GET /api/cluster/status', 'A', operation('client', 'GET /api/cluster/status')],
    ...fields((name) => answer('server', 'GET /api/v1/cluster/status', name), 'A', [
      ...['clusterName', 'isLeader', 'nodeName', 'members', 'memberCount'],
    ]),
    ['GET /api/v1/cluster', 'B', operation('server', 'GET /api/v1/cluster'), 'the pods of both apps'],
    ['GET /api/v1/cluster/transfers', 'B', operation('server', 'GET /api/v1/cluster/transfers')],
    ...fields(key, 'A', ['cluster.enabled', 'cluster.name', 'pod.name', 'pod.namespace']),
  ],
  Certificates: [
    ['POST …/ca', 'B', operation('server', `POST ${CERTIFICATES}/ca`)],
    ...fields((name) => field('server', `POST ${CERTIFICATES}/ca`, name), 'B', [
      'commonName',
      'organization',
      'validityDays',
    ]),
    ['POST …/issue', 'B', operation('server', `POST ${CERTIFICATES}/issue`)],
    ...fields(
      (name) => field('server', `POST ${CERTIFICATES}/issue`, name),
      'B',
      [...['name', 'commonName', 'sans', 'ttlDays', 'kind']],
      'issue: ',
    ),
    ['POST …/keystores/{name}/rotate', 'B', operation('server', `POST ${CERTIFICATES}/keystores/{name}/rotate`)],
    ['POST …/revoked', 'B', field('server', `POST ${CERTIFICATES}/revoked`, 'serial')],
    [
      'GET …/crl',
      'B',
      operation('server', `GET ${CERTIFICATES}/crl`),
      'DER, or PEM with `?format=pem`; `/crl` without a login',
    ],
    ['GET, POST …/keystores', 'B', operation('client', `POST ${CERTIFICATES}/keystores`), 'on both apps'],
    ['GET, POST …/truststores', 'B', operation('client', `POST ${CERTIFICATES}/truststores`), 'on both apps'],
    [
      'subject, issuer, SAN, validity, fingerprint',
      'B',
      proven(
        'in every store',
        'packages/certificates/test/stores.test.ts',
        'a keystore is created, shown, changed and deleted',
      ),
    ],
    ['…/vault', 'B', absent, NOT_BUILT],
    ['POST /ocsp', 'B', operation('server', 'POST /ocsp')],
    ['GET /ocsp/{b64}', 'B', operation('server', 'GET /ocsp/{b64}')],
    ['PESIT_CERT_ROTATION_DAYS', 'B', key('pesit.cert-rotation-days')],
  ],
  'Health, metrics, audit': [
    ...fields((path) => operation('server', `GET ${path}`), 'AB', [
      ...['/actuator/health', '/actuator/health/liveness', '/actuator/health/readiness'],
    ]),
    ['/actuator/info', 'A', operation('client', 'GET /actuator/info'), 'with a login, but for `metrics.public`'],
    ['/metrics', 'B', operation('client', 'GET /metrics'), 'with a login, but for `metrics.public`'],
    ['/actuator/<metrics_export>', 'A', operation('client', 'GET /actuator/prometheus')],
    ...fields(metric, 'B', [
      ...['service_build_info', 'service_transfers_total', 'service_bytes_transferred_total', 'service_listeners'],
      ...['service_listeners_up', 'service_partners', 'service_virtual_files'],
    ]),
    ['active connections', 'A', metric('pesit_sessions_open')],
    ['total errors', 'A', metric('pesit_transfer_errors_total')],
    ['GET /api/v1/audit', 'B', operation('server', 'GET /api/v1/audit'), 'each app has a log of its own'],
    ['PESIT_AUDIT_MAX_ENTRIES', 'B', key('audit.max-entries'), 'also `AUDIT_MAX_ENTRIES`'],
  ],
  Access: [
    ['HTTP Basic', 'A', key('admin.password'), 'more users in `admin.users`, with roles'],
    ['X-API-Key', 'B', key('admin.api-key'), 'beside Basic; without it the interface is not open'],
    [
      'errors of the client',
      'AB',
      proven('`errorCode`', 'apps/client/test/failures.test.ts', 'nobody listens: CONNECTION_FAILED'),
    ],
    [
      'open without a login',
      'B',
      proven('health, /ocsp, /crl', 'apps/server/test/openapi.test.ts', 'an operator runs listeners'),
    ],
    [
      'the transfer API on its own port',
      'B',
      absent,
      'a port without a login is no choice for a bank; the client app has a port of its own',
    ],
    ['/client/api/v1', 'B', absent, 'two services, each with its own address'],
  ],
  Configuration: [
    [
      'PESIT_CONFIG',
      'B',
      proven('as specified', 'packages/service/test/config/config.test.ts', 'later wins: YAML, environment, flags'),
    ],
    ...['partners', 'files'].map((name) => [
      name,
      'B',
      proven(
        'as specified',
        'apps/server/test/declared.test.ts',
        'partners, files, servers: a node is ready when it has what they declare, and a file crosses',
      ),
    ]),
    [
      'servers',
      'B',
      proven(
        'as specified: listeners for the server app, and remote servers (`host`, `name`, `clientId`) for the client app',
        'apps/client/test/declared.test.ts',
        'servers of PESIT_CONFIG: those with a host are there, and a file goes to one; listeners are for the other app',
      ),
    ],
    [
      'SIGHUP',
      'B',
      proven(
        'reads configuration, license and stores again; applies the lists of the file',
        'packages/service/test/config/live.test.ts',
        'what may change does',
      ),
    ],
    [
      '--api-port',
      'B',
      key('api-port'),
      'without effect, and said so at start: each app has one REST interface, at `server.port`',
    ],
    [
      '--transfer-port',
      'B',
      key('transfer-port'),
      'without effect, and said so at start: the client app is the transfer surface, at its own `server.port`',
    ],
    ['web port', 'A', key('server.port')],
    ['datasource', 'A', key('database.url'), 'with `database.username`, `database.password`'],
    ...fields((name) => key(`transfer.${name}`), 'A', [
      ...['max-entity-size', 'chunk-size', 'sync-points-enabled', 'sync-point-interval', 'read-buffer-size'],
      ...['write-buffer-size', 'socket-buffer-size', 'executor.core-pool-size', 'executor.max-pool-size'],
      ...['executor.queue-capacity', 'connection-timeout', 'read-timeout', 'write-timeout', 'compression.enabled'],
      ...['compression.algorithm', 'compression.level', 'connection.pool.max-connections-per-host'],
      'connection.pool.idle-timeout',
    ]),
    ...fields((name) => key(`ssl.${name}`), 'A', [
      ...['protocol', 'cipher-suites', 'session-cache-size', 'session-timeout', 'keystore-name', 'truststore-name'],
    ]),
    ['data directories', 'A', key('data.directory'), '`send`, `received` and `temp` below it'],
    [
      'send, receive',
      'B',
      proven('`pesit send`, `pesit receive`', 'packages/cli/test/direct.test.ts', 'brings the file with its name'),
    ],
    ['serve', 'B', absent, '`npm start`; each service is its own program'],
  ],
  'Not built yet': [
    ['GET /api/v1/backup, POST …/restore, backup export and import', 'B', absent, NOT_BUILT],
    ['/api/v1/config/connectors', 'B', absent, NOT_BUILT],
    ['/api/v1/schedules', 'B', absent, NOT_BUILT],
    ['web console', 'B', absent, NOT_BUILT],
  ],
  PeSIT: [
    [
      'entity size: the smaller of both',
      'AB',
      proven(
        'as specified',
        'packages/protocol/test/negotiation.test.ts',
        'a server that answers more than was proposed',
      ),
    ],
    [
      'record formats BV, BF, TV, TF',
      'AB',
      proven('as specified', 'apps/server/test/record-formats.test.ts', 'text in EBCDIC %s: variable and fixed'),
    ],
    [
      'an unfilled record of a fixed file is refused',
      'AB',
      proven('as specified', 'apps/server/test/record-formats.test.ts', 'an unfilled record: refused at SELECT'),
    ],
    [
      'refused restart: the file goes whole',
      'AB',
      proven('as specified', 'apps/client/test/restart.test.ts', 'a point that was never placed: the whole file'),
    ],
    ['TLS and mutual TLS', 'AB', proven('as specified', 'apps/server/test/tls.test.ts', 'takes TLS beside TCP')],
    ['maximum FPDU 65,535 bytes', 'AB', key('transfer.max-entity-size')],
  ],
};

import { REVOCATION_MODES, storeName } from '@pesit-node/certificates';
import { FieldTable, timestamp } from '@pesit-node/service';
import type { GivenOf, RowOf, ValuesOf } from '@pesit-node/service';
import { LEAST_RATE } from '@pesit-node/net';
import type { ClientAuth, ProxyProtocol } from '@pesit-node/net';
import { z } from 'zod';

import { network, path, serverId } from '../schemas.js';

export const LISTENER_STATUSES = ['STOPPED', 'STARTING', 'RUNNING', 'STOPPING', 'FAILED'] as const;
export type ListenerStatus = (typeof LISTENER_STATUSES)[number];

const TCPIP_HEADERS = ['auto', 'length-prefixed', 'raw'] as const;
type TcpipHeader = (typeof TCPIP_HEADERS)[number];

/** `true` and `false` are the specification's names of the last two. */
const tcpipHeader = () =>
  z
    .union(
      [z.enum(TCPIP_HEADERS), z.boolean().transform((prefixed): TcpipHeader => (prefixed ? 'length-prefixed' : 'raw'))],
      `expected ${TCPIP_HEADERS.join(', ')}, true or false`,
    )
    .pipe(z.enum(TCPIP_HEADERS));

const port = () => z.int().min(1).max(65_535);

/** TLS port of a listener that does not name one. */
const DEFAULT_TLS_PORT = 5001;

const CLIENT_AUTHS = ['NONE', 'WANT', 'NEED'] as const;

/** `true` and `false` are the specification's names of two of them. */
const sslClientAuth = () =>
  z
    .union(
      [
        z.enum(CLIENT_AUTHS),
        z.enum(['true', 'false']).transform((value): ClientAuth => (value === 'true' ? 'NEED' : 'NONE')),
        z.boolean().transform((needed): ClientAuth => (needed ? 'NEED' : 'NONE')),
      ],
      `expected ${CLIENT_AUTHS.join(', ')}, true or false`,
    )
    .pipe(z.enum(CLIENT_AUTHS));

const PROXY_PROTOCOLS = ['off', 'optional', 'required'] as const satisfies readonly ProxyProtocol[];

/** A listener on one pod. */
const listenerOnPod = z
  .object({
    name: z.string(),
    status: z.enum(LISTENER_STATUSES),
    statusReason: z.string().nullable(),
    nextAttemptAt: timestamp().nullable(),
    activeConnections: z.int(),
    refusedConnections: z.int(),
    since: timestamp().nullable().meta({ description: 'Since when it has its port there; null: it has none.' }),
  })
  .meta({
    id: 'ListenerOnPod',
    description: 'A listener on one pod; figures of other pods are up to 5 seconds old.',
  });

/** Logical PeSIT servers as configured, and what they do at the moment. */
export const LISTENER = new FieldTable(
  {
    ...{ id: 'Listener', noun: 'listener', table: 'listeners' },
    change: { maxConnections: 50, readTimeout: 120_000 },
  },
  {
    serverId: {
      column: 'server_id',
      schema: serverId(),
      key: true,
      searched: true,
      words: 'PI 4.',
      example: 'NODE1',
    },
    status: { schema: z.enum(LISTENER_STATUSES), readOnly: true, example: 'RUNNING' },
    statusReason: {
      schema: z.string(),
      readOnly: true,
      words: 'With several pods: on how many it is so, and what the others say.',
      unset: 'nothing is wrong',
    },
    wanted: {
      column: 'wanted',
      schema: z.boolean(),
      filter: true,
      readOnly: true,
      example: true,
      words: 'Whether it is to run: what start and stop said last, for every pod and also after a restart.',
    },
    nextAttemptAt: {
      schema: timestamp(),
      readOnly: true,
      words: 'When a FAILED listener is tried again, on the pod where that is first.',
      unset: 'it need not be',
    },
    port: {
      column: 'port',
      schema: port().nullable(),
      default: 6502,
      example: 6502,
      words: 'Of plain TCP. Where it is null the listener takes TLS alone (`sslEnabled`).',
    },
    tlsPort: {
      column: 'tls_port',
      schema: port(),
      words: 'Of TLS, while `sslEnabled`.',
      unset: '5001',
    },
    sslEnabled: {
      column: 'ssl_enabled',
      schema: z.boolean(),
      default: false,
      words: 'Takes TLS on `tlsPort`, beside `port`.',
    },
    sslClientAuth: {
      column: 'ssl_client_auth',
      schema: sslClientAuth(),
      default: 'NONE',
      words:
        'Certificates of partners: NONE (or false) asks for none; WANT takes a partner without one, but never with a bad one; NEED (or true) takes none without.',
    },
    keystoreName: {
      column: 'keystore_name',
      schema: storeName(),
      words: 'Keystore with certificate and key of the listener. A changed one counts from the next handshake on.',
      unset: '`ssl.keystore-name`',
    },
    truststoreName: {
      column: 'truststore_name',
      schema: storeName(),
      words: 'Truststore against which certificates of partners are checked.',
      unset: '`ssl.truststore-name`',
    },
    proxyProtocol: {
      column: 'proxy_protocol',
      schema: z.enum(PROXY_PROTOCOLS),
      default: 'off',
      words:
        'Whether balancers in front say by a PROXY header (version 1 or 2) from where a partner comes: off takes no header; optional takes it from `trustedProxies`, and connections without one; required takes none without, and none from elsewhere. On both ports, for new connections.',
    },
    trustedProxies: {
      column: 'trusted_proxies',
      schema: z.array(network()).max(100),
      default: [],
      words:
        'Balancers whose PROXY header is believed: addresses and CIDR ranges. Not empty unless `proxyProtocol` is off.',
    },
    revocation: {
      column: 'revocation',
      schema: z.enum(REVOCATION_MODES),
      default: 'off',
      words:
        'Whether certificates of partners were revoked, by the CRLs of the truststore: off does not ask; soft refuses those that were; hard those too of which no valid CRL tells.',
    },
    autoStart: { column: 'auto_start', schema: z.boolean(), default: true, words: 'Started when it is created.' },
    maxConnections: {
      column: 'max_connections',
      schema: z.int().min(1).max(10_000),
      default: 100,
      words: 'Sessions at a time, of all pods together.',
    },
    maxBytesPerSecond: {
      column: 'max_bytes_per_second',
      schema: z.int().min(LEAST_RATE).max(1_000_000_000_000),
      words:
        'Bytes a second of all files on it together, sent and received, on each pod: they share it evenly. Counts from the next file on.',
      unset: 'no limit',
    },
    readTimeout: {
      column: 'read_timeout',
      schema: z.int().min(1000, 'expected 1000 or more (milliseconds)').max(86_400_000),
      default: 60_000,
      words: 'Milliseconds.',
    },
    receiveDirectory: { column: 'receive_directory', schema: path(), unset: '`from-partners` in `data.directory`' },
    sendDirectory: { column: 'send_directory', schema: path(), unset: '`to-partners` in `data.directory`' },
    strictServerId: {
      column: 'strict_server_id',
      schema: z.boolean(),
      default: false,
      words: 'Partners that call another server identifier (PI 4) are refused.',
    },
    tcpipHeader: { column: 'tcpip_header', schema: tcpipHeader(), default: 'auto' },
    maxEntitySize: {
      column: 'max_entity_size',
      schema: z.int().min(256).max(65_535),
      words: 'PI 25.',
      unset: '`transfer.max-entity-size`',
    },
    syncInterval: {
      column: 'sync_interval',
      schema: z.int().min(0).max(65_535),
      words: 'KB; 0 = no sync points.',
      unset: '`transfer.sync-point-interval`',
    },
    syncWindow: {
      column: 'sync_window',
      schema: z.int().min(0).max(255),
      words: '0 = sync points are not acknowledged.',
      unset: '`transfer.sync-window`',
    },
    activeConnections: { schema: z.int(), readOnly: true, words: 'Sessions, of all pods together.', example: 3 },
    refusedConnections: {
      schema: z.int(),
      readOnly: true,
      words: 'Turned away by the pods that live, each since its start.',
    },
    totalTransfers: {
      column: 'total_transfers',
      schema: z.int(),
      readOnly: true,
      words: 'Completed on it, ever.',
      example: 1284,
    },
    uptime: { schema: z.int(), readOnly: true, words: 'Seconds; of the pod that has run it longest.', example: 86_400 },
    pods: {
      schema: z.array(listenerOnPod),
      readOnly: true,
      words: 'What each pod that lives says of it, oldest first.',
    },
  },
);

export type ListenerRow = RowOf<typeof LISTENER.rows>;
export type ListenerValues = ValuesOf<typeof LISTENER.rows>;
export type ListenerChange = GivenOf<typeof LISTENER.rows>;

type Doors = Pick<ListenerRow, 'port'> & Partial<Pick<ListenerRow, 'ssl_enabled' | 'tls_port'>>;

/** The port on which a listener takes TLS; null: it does not. */
export const tlsPortOf = ({ ssl_enabled: isOn = false, tls_port: port = null }: Doors): number | null =>
  isOn ? (port ?? DEFAULT_TLS_PORT) : null;

/** The ports of a listener, for a sentence. */
export const portsOf = (row: Doors): string => {
  const tls = tlsPortOf(row);
  const plain = row.port === null ? [] : [`port ${row.port}`];
  return [...plain, ...(tls === null ? [] : [`port ${tls} (TLS)`])].join(' and ');
};

/** Whether two listeners, or two states of one, take the same ports. */
export const sameDoors = (one: Doors, other: Doors): boolean =>
  one.port === other.port && tlsPortOf(one) === tlsPortOf(other);

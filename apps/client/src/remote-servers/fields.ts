import { isIP } from 'node:net';

import { fingerprints, REVOCATION_MODES, storeName } from '@pesit-node/certificates';
import { LEAST_RATE } from '@pesit-node/net';
import { DEFAULT_CODE_PAGE } from '@pesit-node/protocol';
import { FieldTable, identifier, plainText, storedTime } from '@pesit-node/service';
import type { CreateOf, GivenOf, RowOf, ValuesOf, ViewOf } from '@pesit-node/service';
import { negotiated } from '@pesit-node/transfers';
import { z } from 'zod';

import { transferSettings } from '../transfers/settings.js';
import type { ServerSeen } from './seen.js';

/** Names are compared exactly: a blank at either end would make two that look the same. */
const name = () =>
  plainText(100)
    .min(1)
    .refine((value) => value.trim() === value, 'a blank at either end is not allowed');

const LABEL = '[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?';
const HOST_NAME = new RegExp(`^(?=.{1,253}$)${LABEL}(?:\\.${LABEL})*$`);

const host = () =>
  z.string().refine((value) => isIP(value) !== 0 || HOST_NAME.test(value), 'expected a host name or an address');

const port = () => z.int().min(1).max(65_535);

/** PI 5 carries 8 characters, and blanks at its end are not significant (pesit-e.md §2). */
const password = () =>
  z
    .string()
    .regex(
      /^[\x21-\x7e](?:[\x20-\x7e]{0,6}[\x21-\x7e])?$/,
      'expected 1 to 8 printable ASCII characters, no blank at either end',
    );

/** Eight characters of EBCDIC, blank padded (pesit-e.md §1). */
const preconnection = () =>
  z.string().regex(/^[A-Za-z0-9$#@_.-]{1,8}$/, 'expected 1 to 8 letters, digits, or $ # @ _ . -');

const dialect = () => z.enum(['length-prefixed', 'raw']);

/** `true` and `false` are the specification's names of the two. */
const tcpipHeader = () =>
  z
    .union(
      [dialect(), z.boolean().transform((prefixed) => (prefixed ? ('length-prefixed' as const) : ('raw' as const)))],
      'expected length-prefixed, raw, true or false',
    )
    .pipe(dialect());

const lastSeen = z
  .object({
    version: z.int().meta({ description: 'PI 6 as it came: Axway products set bits beside the version.' }),
    maxEntitySize: z.int().nullable().meta({ description: 'PI 25 as it answered to the last file.' }),
    freeMessage: z.string().nullable().meta({ description: 'PI 99 of its last ACONNECT.' }),
    singleArticle: z.enum(['plain', 'prefixed']).nullable().meta({ description: 'How it writes ID.SRC = 1.' }),
    product: z.string().nullable().meta({ description: 'Product that is known for these habits.' }),
  })
  .meta({ id: 'ServerSeen' });

const circuit = z
  .object({
    state: z.enum(['CLOSED', 'OPEN', 'HALF_OPEN']).meta({ description: 'HALF_OPEN: it is time for a try.' }),
    failures: z.int().meta({ description: 'Contacts that failed since the last good one.' }),
    since: z.string().nullable().meta({ format: 'date-time' }),
    nextTry: z.string().nullable().meta({ format: 'date-time' }),
    reason: z.string().nullable().meta({ description: 'Why the last contact failed.' }),
  })
  .meta({ id: 'Circuit' });

const CONTACT_STATUSES = ['UNKNOWN', 'CONNECTED', 'UNREACHABLE', 'REFUSED'] as const;
export type ContactStatus = (typeof CONTACT_STATUSES)[number];

/** PeSIT servers that this node connects to. A setting that is null follows the configuration when the server is used. */
export const REMOTE_SERVER = new FieldTable(
  {
    ...{ id: 'RemoteServer', noun: 'remote server', table: 'remote_servers' },
    change: { description: 'Statements, every night', maxConnections: 5 },
  },
  {
    id: { column: 'id', schema: z.int(), key: true, readOnly: true, example: 1 },
    name: { column: 'name', schema: name(), searched: true, example: 'bank' },
    host: {
      column: 'host',
      schema: host(),
      searched: true,
      words: 'A host name, or an address of IPv4 or IPv6.',
      example: 'pesit.bank.example',
    },
    port: { column: 'port', schema: port(), default: 6502, example: 6502 },
    tlsPort: { column: 'tls_port', schema: port(), words: 'Called while `tlsEnabled`.', unset: '5001' },
    tlsEnabled: { column: 'tls_enabled', schema: z.boolean(), default: false, words: 'Sessions with it use TLS.' },
    keystoreName: {
      column: 'keystore_name',
      schema: storeName(),
      words: 'Keystore whose certificate is presented when the server asks for one.',
      unset: '`ssl.keystore-name`',
    },
    truststoreName: {
      column: 'truststore_name',
      schema: storeName(),
      words: 'Truststore against which the certificate of the server is checked.',
      unset: '`ssl.truststore-name`, and without that the public CAs',
    },
    revocation: {
      column: 'revocation',
      schema: z.enum(REVOCATION_MODES),
      default: 'off',
      words:
        'Whether the certificate of the server was revoked, by the CRLs of the truststore: off does not ask; soft refuses those that were; hard those too of which no valid CRL tells.',
    },
    tlsServerName: {
      column: 'tls_server_name',
      schema: host(),
      words: 'Name that the certificate of the server must have.',
      unset: '`host`',
    },
    certificateFingerprint: {
      column: 'certificate_fingerprint',
      schema: fingerprints(),
      words:
        'SHA-256 fingerprints, one of which the certificate of the server must have; several for a change-over. A pin takes the place of chain and name.',
      unset: 'chain and name are checked',
    },
    serverId: { column: 'server_id', schema: identifier(24), searched: true, words: 'PI 4.', example: 'BANK' },
    clientId: { column: 'client_id', schema: identifier(24), searched: true, words: 'PI 3.', example: 'NODE1' },
    password: {
      column: 'password',
      schema: password(),
      secret: true,
      words: 'PI 5.',
      unset: 'none is sent',
      example: 'pe5it-01',
    },
    enabled: { column: 'enabled', schema: z.boolean(), filter: true, default: true },
    description: { column: 'description', schema: plainText(500), searched: true, unset: 'none' },
    maxConnections: {
      column: 'max_connections',
      schema: z.int().min(1).max(1000),
      words: 'Sessions at a time, of all pods together, idle ones included.',
      unset: '`transfer.connection.pool.max-connections-per-host`',
    },
    maxBytesPerSecond: {
      column: 'max_bytes_per_second',
      schema: z.int().min(LEAST_RATE).max(1_000_000_000_000),
      words:
        'Bytes a second of all files with it together, sent and received, on each pod: they share it evenly. Counts from the next file on.',
      unset: 'no limit',
    },
    tcpipHeader: { column: 'dialect', schema: tcpipHeader(), default: 'length-prefixed' },
    maxEntitySize: {
      column: 'max_entity_size',
      schema: transferSettings.maxEntitySize,
      words: 'PI 25.',
      unset: '`transfer.max-entity-size`',
    },
    syncInterval: {
      column: 'sync_interval',
      schema: transferSettings.syncInterval,
      unset: '`transfer.sync-point-interval`',
    },
    syncWindow: { column: 'sync_window', schema: transferSettings.syncWindow, unset: '`transfer.sync-window`' },
    compression: { column: 'compression', schema: transferSettings.compression, unset: 'none' },
    crc: { column: 'crc', schema: transferSettings.crc, unset: 'false' },
    resync: { column: 'resync', schema: transferSettings.resync, unset: 'false' },
    ebcdic: { column: 'ebcdic', schema: transferSettings.ebcdic, unset: 'false' },
    codePage: { column: 'code_page', schema: transferSettings.codePage, unset: DEFAULT_CODE_PAGE },
    selectByName: { column: 'select_by_name', schema: transferSettings.selectByName, unset: 'false' },
    multiArticle: {
      column: 'multi_article',
      schema: z.boolean(),
      words: 'Several short articles in one DTF.',
      unset: 'true',
    },
    concatenation: {
      column: 'concatenation',
      schema: z.boolean(),
      words: 'Several FPDUs of data in one entity.',
      unset: 'true',
    },
    preconnectId: { column: 'preconnect_id', schema: preconnection(), unset: 'no pre-connection' },
    preconnectPassword: {
      column: 'preconnect_password',
      schema: password(),
      secret: true,
      needs: 'preconnectId',
      unset: 'none is sent',
    },
    recordLength: {
      column: 'record_length',
      schema: transferSettings.recordLength,
      unset: '4096',
    },
    recordFormat: {
      column: 'record_format',
      schema: transferSettings.recordFormat,
      unset: 'a text file has variable records (TV), a binary one none (BU)',
    },
    text: { column: 'text', schema: transferSettings.text, unset: 'false' },
    status: {
      column: 'status',
      schema: z.enum(CONTACT_STATUSES),
      filter: true,
      readOnly: true,
      example: 'CONNECTED',
      words: 'Outcome of the last contact.',
    },
    statusReason: { column: 'status_reason', schema: z.string(), readOnly: true, unset: 'nothing is wrong' },
    lastContact: { column: 'last_contact', schema: storedTime(), readOnly: true, unset: 'none yet' },
    negotiated: {
      column: 'negotiated',
      schema: negotiated,
      readOnly: true,
      words: 'Terms of the last session.',
      unset: 'none yet',
    },
    lastSeen: {
      schema: lastSeen,
      readOnly: true,
      words: 'Properties of the partner that the last sessions have shown.',
      unset: 'none yet',
    },
    circuit: {
      schema: circuit,
      readOnly: true,
      words: 'The circuit breaker: while it is not CLOSED the transfers wait, and one at a time tries the server.',
      unset: 'never',
    },
    traceUntil: {
      column: 'trace_until',
      schema: storedTime(),
      readOnly: true,
      words: 'Sessions with it are traced until then.',
      unset: 'they are not',
    },
  },
);

type Rows = typeof REMOTE_SERVER.rows;

/** Passwords are sealed; null in a setting means the default of the configuration. */
export interface RemoteServerRow extends RowOf<Rows> {
  readonly seen: ServerSeen;
  readonly single_article: 'plain' | 'prefixed' | null;
  /** See `0028-circuits.ts`. */
  readonly circuit_failures: number;
  readonly circuit_reason: string | null;
  readonly circuit_opened_time: Date | null;
  readonly circuit_until: Date | null;
}
export type RemoteServerValues = ValuesOf<Rows>;
export type RemoteServerView = ViewOf<Rows>;
export type CreateRemoteServer = CreateOf<Rows>;
export type RemoteServerChange = GivenOf<Rows>;

import { dataLimits, pacedSyncPoints } from '@pesit-node/net';
import type { RequesterOptions, TransportSecurity } from '@pesit-node/net';
import type { SyncPointOptions } from '@pesit-node/protocol';
import { NO_SYNC, PesitError } from '@pesit-node/protocol';
import { SecretError } from '@pesit-node/service';
import type { SecretBox } from '@pesit-node/service';

import type { RemoteTls } from '../certificates/remote-tls.js';
import { openFor } from '../remote-servers/secrets.js';
import type { SealedColumn } from '../remote-servers/secrets.js';
import type { TransferSettings } from '../transfers/fields.js';
import type { Job } from '../transfers/row.js';
import type { ExchangeSettings } from '../exchange/settings.js';

/** With whom to open a session, and on what terms. */
export interface SessionTarget {
  readonly serverId: number;
  readonly serverName: string;
  /** Host and port. */
  readonly address: string;
  /** Sessions that this process may have with the server, idle ones included. */
  readonly maxSessions: number;
  /** `maxConnections`: sessions that all pods together may have; undefined: they are not counted. */
  readonly limit: number | undefined;
  /** Milliseconds. */
  readonly connectTimeout: number;
  /** Sessions of the same key do for each other. Holds the sealed password, never the password. */
  readonly key: string;
  /** PI 7 and PI 23 that it asks for. */
  readonly asked: SyncPointOptions & { readonly resynchronisation: boolean };
  readonly options: () => RequesterOptions;
  /** Whether the certificate of the server was revoked since the handshake of a session. @throws errors of the database */
  readonly isRevoked: (security: TransportSecurity | undefined) => Promise<boolean>;
  /** Until when its sessions are traced; null: they are not. */
  readonly traceUntil: Date | null;
}

type Server = Job['server'];
type Terms = Pick<TransferSettings, 'syncPointsEnabled' | 'syncInterval' | 'syncWindow' | 'crc' | 'resync'>;

/** PI 22: both, so that one session serves either direction. */
const ACCESS_BOTH = 2;

/** PI 7 to propose: the request's, else the server's, else the configuration's. */
const syncPoints = (server: Server, terms: Terms, settings: ExchangeSettings): SyncPointOptions => {
  const enabled = terms.syncPointsEnabled ?? settings.syncPointsEnabled;
  const intervalKb = terms.syncInterval ?? server.sync_interval ?? settings.syncInterval;
  if (!enabled || intervalKb === 0) return NO_SYNC;
  const asked = { intervalKb, window: terms.syncWindow ?? server.sync_window ?? settings.syncWindow };
  return pacedSyncPoints(asked, [server.max_bytes_per_second]);
};

const FIELDS = { password: 'password', preconnect_password: 'preconnectPassword' } as const satisfies Record<
  SealedColumn,
  string
>;

/** @throws {PesitError} local: nobody else can mend it */
const openPassword = (secrets: SecretBox, column: SealedColumn, server: Server, sealed: string): string => {
  try {
    return openFor(secrets, column, server, sealed);
  } catch (cause) {
    if (!(cause instanceof SecretError)) throw cause;
    const text = `${FIELDS[column]} of remote server ${JSON.stringify(server.name)} cannot be used for ${server.host}:${server.port}`;
    throw new PesitError(`${text} (${cause.message}): set it again`, {
      fault: 'local',
      diagnostic: '2-215',
      condition: 'setting unusable',
      cause,
    });
  }
};

export interface SessionTargetDeps {
  readonly settings: ExchangeSettings;
  readonly secrets: SecretBox;
  readonly tls: Pick<RemoteTls, 'connecting' | 'isRevoked'>;
}

/** TLS port of a remote server that does not name one. */
const DEFAULT_TLS_PORT = 5001;

/** @param requester PI 3 */
export const sessionTarget = (
  server: Server,
  requester: string,
  terms: Terms,
  { settings, secrets, tls }: SessionTargetDeps,
): SessionTarget => {
  const { host, dialect, server_id: serverId, password: sealed } = server;
  const { tls_enabled: isSecured, keystore_name, truststore_name, tls_server_name, certificate_fingerprint } = server;
  const port = isSecured ? (server.tls_port ?? DEFAULT_TLS_PORT) : server.port;
  const { preconnect_id: identifier, preconnect_password: sealedPreconnect, single_article: singleArticle } = server;
  const layout = { multiArticle: server.multi_article ?? true, concatenation: server.concatenation ?? true };
  const sync = syncPoints(server, terms, settings);
  const crc = terms.crc ?? server.crc ?? false;
  const resynchronisation = terms.resync ?? server.resync ?? false;
  const traceUntil = server.trace_until === null ? null : new Date(server.trace_until);
  // A session that is not traced does not do when there shall be a trace.
  const isTraced = traceUntil !== null && traceUntil.getTime() > Date.now();
  const open = (column: SealedColumn): string | undefined => {
    const secret = server[column];
    return secret === null ? undefined : openPassword(secrets, column, server, secret);
  };
  return {
    serverId: server.id,
    serverName: server.name,
    address: `${host.includes(':') ? `[${host}]` : host}:${port}`,
    limit: server.max_connections ?? undefined,
    connectTimeout: settings.connectTimeout,
    maxSessions: Math.min(server.max_connections ?? settings.maxConnectionsPerHost, settings.maxConnectionsPerHost),
    key: JSON.stringify([
      ...[server.id, host, port, dialect, requester, serverId, sealed, sync, crc, resynchronisation],
      // A session without a place does not do when there shall be one.
      ...[isSecured, keystore_name, truststore_name, tls_server_name, certificate_fingerprint],
      ...[identifier, sealedPreconnect, layout, isTraced, server.max_connections !== null],
    ]),
    traceUntil,
    isRevoked: (security) => tls.isRevoked(server, security),
    asked: { ...sync, resynchronisation },
    options: () => ({
      host,
      port,
      dialect,
      ...(isSecured ? { transport: tls.connecting(server) } : {}),
      connectTimeout: settings.connectTimeout,
      timers: { response: settings.readTimeout, write: settings.writeTimeout },
      limits: dataLimits({
        chunk: settings.chunkSize,
        readBuffer: settings.readBufferSize,
        socketBuffer: settings.socketBufferSize,
      }),
      ...layout,
      ...(singleArticle === null ? {} : { singleArticle }),
      ...(identifier === null ? {} : { preconnection: { identifier, password: open('preconnect_password') ?? '' } }),
      connect: {
        requester,
        server: serverId,
        password: open('password'),
        syncPoints: sync,
        crc,
        resynchronisation,
        accessType: ACCESS_BOTH,
        defaultIntervalKb: settings.syncInterval,
      },
    }),
  };
};

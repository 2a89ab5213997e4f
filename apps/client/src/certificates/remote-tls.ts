import { MadeTerms, OcspClient, revocationCheck, revokedSince } from '@pesit-node/certificates';
import type { Certificates } from '@pesit-node/certificates';
import { TlsClientTerms, connectTls } from '@pesit-node/net';
import type { Connect, TransportSecurity } from '@pesit-node/net';
import { PesitError } from '@pesit-node/protocol';
import { isDatabaseUnavailable, tlsProtocolOf } from '@pesit-node/service';
import type { Config, EventStream, TlsProtocolConfig } from '@pesit-node/service';
import { PEER_UNCHECKED } from '@pesit-node/transfers';

import type { RemoteServerRow } from '../remote-servers/fields.js';

type Server = Pick<
  RemoteServerRow,
  'id' | 'name' | 'keystore_name' | 'truststore_name' | 'tls_server_name' | 'certificate_fingerprint' | 'revocation'
>;

export type RemoteTlsConfig = TlsProtocolConfig &
  Pick<Config<'client'>, 'ssl.keystore-name' | 'ssl.truststore-name' | 'ssl.ocsp'>;

/** The terms that this node brings to its handshakes with each remote server: see `MadeTerms`. */
export class RemoteTls {
  readonly #certificates: Pick<Certificates, 'identity' | 'trust'>;
  readonly #config: RemoteTlsConfig;
  readonly #events: Pick<EventStream, 'publish'>;
  readonly #ocsp = new OcspClient();
  readonly #made: MadeTerms<number, TlsClientTerms>;

  /** @param now as of `MadeTerms` */
  constructor(
    certificates: Pick<Certificates, 'identity' | 'trust'>,
    config: RemoteTlsConfig,
    events: Pick<EventStream, 'publish'>,
    now?: () => number,
  ) {
    this.#certificates = certificates;
    this.#made = new MadeTerms(certificates, now);
    this.#config = config;
    this.#events = events;
  }

  /** The network of the sessions with `server`. */
  connecting(server: Server): Connect {
    return connectTls(() => this.#terms(server));
  }

  /**
   * Whether the certificate of a session with `server` was revoked since its handshake.
   * @throws StoreMissingError; errors of the database
   */
  async isRevoked(server: Server, security: TransportSecurity | undefined): Promise<boolean> {
    const truststore = server.truststore_name ?? this.#config['ssl.truststore-name'];
    const raw = security?.peerCertificate?.raw;
    if (raw === undefined || truststore === '' || server.revocation === 'off') return false;
    return (await revokedSince(raw, await this.#certificates.trust(truststore), truststore)) !== undefined;
  }

  /** @throws {PesitError} local, final: a store is missing, or cannot be used */
  async #terms(server: Server): Promise<TlsClientTerms> {
    const { id, tls_server_name: serverName, certificate_fingerprint: fingerprints, revocation: mode } = server;
    const keystore = server.keystore_name ?? this.#config['ssl.keystore-name'];
    const truststore = server.truststore_name ?? this.#config['ssl.truststore-name'];
    const protocol = tlsProtocolOf(this.#config);
    const ocsp = this.#config['ssl.ocsp'] ? this.#ocsp : undefined;
    const notice = (text: string): void => {
      this.#events.publish(PEER_UNCHECKED, { facts: { server: server.name }, text });
    };
    try {
      return await this.#made.get(id, {
        maxAgeMs: protocol.sessionTimeout * 1000,
        ...{ keystore, truststore, settings: [serverName, fingerprints, mode, ocsp !== undefined, protocol] },
        make: (identity, trust) =>
          new TlsClientTerms({
            revocation: revocationCheck({ mode, trust, store: truststore, notice, ocsp }),
            ...{ identity, trust, fingerprints: fingerprints ?? undefined, serverName: serverName ?? undefined },
            ...protocol,
          }),
      });
    } catch (cause) {
      if (isDatabaseUnavailable(cause)) throw cause;
      const text = `TLS with remote server ${JSON.stringify(server.name)} cannot be used (${(cause as Error).message})`;
      throw new PesitError(`${text}: correct its keystoreName and truststoreName`, {
        fault: 'local',
        diagnostic: '2-215',
        condition: 'setting unusable',
        cause,
      });
    }
  }
}

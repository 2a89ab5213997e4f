import { MadeTerms, OcspClient, revocationCheck, revokedSince } from '@pesit-node/certificates';
import type { Certificates, Identity } from '@pesit-node/certificates';
import { TlsServerTerms } from '@pesit-node/net';
import type { TransportSecurity } from '@pesit-node/net';
import { tlsProtocolOf } from '@pesit-node/service';
import type { Config, EventStream, TlsProtocolConfig } from '@pesit-node/service';
import { PEER_UNCHECKED } from '@pesit-node/transfers';

import type { ListenerRow } from '../listeners/fields.js';

type Named = Pick<ListenerRow, 'server_id' | 'ssl_client_auth' | 'keystore_name' | 'truststore_name' | 'revocation'>;

export type ListenerTlsConfig = TlsProtocolConfig &
  Pick<Config<'server'>, 'ssl.keystore-name' | 'ssl.truststore-name' | 'ssl.ocsp'>;

/** The terms that each listener brings to its handshakes: see `MadeTerms`. */
export class ListenerTls {
  readonly #certificates: Pick<Certificates, 'identity' | 'trust'>;
  readonly #config: ListenerTlsConfig;
  readonly #events: Pick<EventStream, 'publish'>;
  readonly #ocsp = new OcspClient();
  readonly #made: MadeTerms<string, TlsServerTerms>;

  /** @param now as of `MadeTerms` */
  constructor(
    certificates: Pick<Certificates, 'identity' | 'trust'>,
    config: ListenerTlsConfig,
    events: Pick<EventStream, 'publish'>,
    now?: () => number,
  ) {
    this.#certificates = certificates;
    this.#made = new MadeTerms(certificates, now);
    this.#config = config;
    this.#events = events;
  }

  /**
   * For the next handshake of `listener`, as it and its stores are now.
   * @throws Error in words when it names no keystore, or one that is missing or cannot be used
   */
  async terms(listener: Named): Promise<TlsServerTerms> {
    const { server_id: id, ssl_client_auth: clientAuth, revocation: mode } = listener;
    const keystore = listener.keystore_name ?? this.#config['ssl.keystore-name'];
    const truststore = listener.truststore_name ?? this.#config['ssl.truststore-name'];
    if (keystore === '') {
      throw new Error('TLS needs a keystore: set keystoreName of the listener, or ssl.keystore-name');
    }
    if (truststore === '' && clientAuth !== 'NONE') {
      throw new Error(
        `sslClientAuth ${clientAuth} needs a truststore: set truststoreName of the listener, or ssl.truststore-name`,
      );
    }
    const protocol = tlsProtocolOf(this.#config);
    const ocsp = this.#config['ssl.ocsp'] ? this.#ocsp : undefined;
    const notice = (text: string): void => {
      this.#events.publish(PEER_UNCHECKED, { facts: { listener: id }, text });
    };
    return this.#made.get(id, {
      keystore,
      truststore: clientAuth === 'NONE' ? '' : truststore,
      settings: [clientAuth, truststore, mode, ocsp !== undefined, protocol],
      maxAgeMs: protocol.sessionTimeout * 1000,
      make: (identity, trust) => {
        const revocation = trust && revocationCheck({ mode, trust, store: truststore, notice, ocsp });
        return new TlsServerTerms({ identity: identity as Identity, trust, clientAuth, revocation, ...protocol });
      },
    });
  }

  /**
   * Whether the certificate of a session of `listener` was revoked since its handshake, in words.
   * @throws StoreMissingError; errors of the database
   */
  async revoked(listener: Named, security: TransportSecurity | undefined): Promise<string | undefined> {
    const { ssl_client_auth: clientAuth, revocation: mode } = listener;
    const truststore = listener.truststore_name ?? this.#config['ssl.truststore-name'];
    const raw = security?.peerCertificate?.raw;
    if (raw === undefined || clientAuth === 'NONE' || mode === 'off') return undefined;
    return revokedSince(raw, await this.#certificates.trust(truststore), truststore);
  }
}

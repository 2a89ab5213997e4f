import { X509Certificate } from 'node:crypto';

import { MadeTerms, OcspClient, revocationCheck, revokedSince } from '@pesit-node/certificates';
import type { Certificates, Identity, Trust } from '@pesit-node/certificates';
import { connectTls, TlsClientTerms, TlsServerTerms } from '@pesit-node/net';
import type { Connect, TransportSecurity } from '@pesit-node/net';
import { PesitError } from '@pesit-node/protocol';
import { isDatabaseUnavailable, tlsProtocolOf } from '@pesit-node/service';
import type { Config, EventStream, TlsProtocolConfig } from '@pesit-node/service';
import { PEER_UNCHECKED } from '@pesit-node/transfers';

import type { ListenerRow } from '../listeners/fields.js';
import type { TicketKeys } from './ticket-keys.js';

type Named = Pick<ListenerRow, 'server_id' | 'ssl_client_auth' | 'keystore_name' | 'truststore_name' | 'revocation'>;

export type ListenerTlsConfig = TlsProtocolConfig &
  Pick<Config<'server'>, 'ssl.keystore-name' | 'ssl.truststore-name' | 'ssl.ocsp'>;

/** The terms that each listener brings to its handshakes: see `MadeTerms`. */
export class ListenerTls {
  readonly #certificates: Pick<Certificates, 'identity' | 'trust'>;
  readonly #config: ListenerTlsConfig;
  readonly #events: Pick<EventStream, 'publish'>;
  readonly #tickets: Pick<TicketKeys, 'keysFor'>;
  readonly #ocsp = new OcspClient();
  readonly #made: MadeTerms<string, TlsServerTerms>;

  constructor(
    certificates: Pick<Certificates, 'identity' | 'trust'>,
    config: ListenerTlsConfig,
    events: Pick<EventStream, 'publish'>,
    tickets: Pick<TicketKeys, 'keysFor'>,
  ) {
    this.#certificates = certificates;
    this.#made = new MadeTerms(certificates);
    this.#tickets = tickets;
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
      make: (given, trust) => {
        const identity = given as Identity;
        const revocation = trust && revocationCheck({ mode, trust, store: truststore, notice, ocsp });
        // A responder is asked about CAs that a session shows when it is opened alone: another pod has not seen them.
        const isAskedAbout = revocation !== undefined && ocsp !== undefined;
        const kind = JSON.stringify([
          id,
          clientAuth,
          mode,
          protocol,
          identity.certificateChain,
          trust && shownOf(trust),
        ]);
        const ticketKeys = this.#tickets.keysFor(isAskedAbout ? undefined : kind);
        return new TlsServerTerms({ identity, trust, clientAuth, revocation, ticketKeys, ...protocol });
      },
    });
  }

  /** The network of the sessions that this node opens with `listener` itself: whoever shows its certificate is it. */
  toItself(listener: Pick<Named, 'server_id' | 'keystore_name'>): Connect {
    return connectTls(async () => {
      const { server_id: id } = listener;
      const keystore = listener.keystore_name ?? this.#config['ssl.keystore-name'];
      try {
        const { certificateChain } = await this.#certificates.identity(keystore);
        const fingerprints = [new X509Certificate(certificateChain).fingerprint256];
        return new TlsClientTerms({ fingerprints, ...tlsProtocolOf(this.#config) });
      } catch (cause) {
        if (isDatabaseUnavailable(cause)) throw cause;
        const text = `TLS with the listener ${id} cannot be used (${(cause as Error).message}): correct its keystoreName`;
        throw new PesitError(text, { fault: 'local', diagnostic: '2-215', condition: 'setting unusable', cause });
      }
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

/** Tells a truststore from the same one before a change. */
const shownOf = ({ certificates, lists }: Trust): unknown => [
  certificates,
  [...lists].map(([ca, of]) => [
    ca,
    of.map(({ thisUpdate, nextUpdate, number }) => [thisUpdate, nextUpdate ?? null, String(number)]),
  ]),
];

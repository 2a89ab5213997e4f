import { revocationCheck } from '@pesit-node/certificates';
import type { Certificates, Identity, Trust } from '@pesit-node/certificates';
import { TlsServerTerms } from '@pesit-node/net';
import { isDatabaseUnavailable, tlsProtocolOf } from '@pesit-node/service';
import type { Config, Logger, TlsProtocolConfig } from '@pesit-node/service';

import type { ListenerRow } from '../listeners/fields.js';

type Named = Pick<ListenerRow, 'server_id' | 'ssl_client_auth' | 'keystore_name' | 'truststore_name' | 'revocation'>;

export type ListenerTlsConfig = TlsProtocolConfig & Pick<Config<'server'>, 'ssl.keystore-name' | 'ssl.truststore-name'>;

interface Made {
  readonly identity: Identity;
  readonly trust: Trust | undefined;
  readonly settings: string;
  readonly terms: TlsServerTerms;
}

/** The terms that each listener brings to its handshakes: made once from its stores, and anew when they hold something else. */
export class ListenerTls {
  readonly #certificates: Pick<Certificates, 'identity' | 'trust'>;
  readonly #config: ListenerTlsConfig;
  readonly #logger: Pick<Logger, 'warn'>;
  readonly #made = new Map<string, Made>();

  constructor(
    certificates: Pick<Certificates, 'identity' | 'trust'>,
    config: ListenerTlsConfig,
    logger: Pick<Logger, 'warn'>,
  ) {
    this.#certificates = certificates;
    this.#config = config;
    this.#logger = logger;
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
    const settings = JSON.stringify([clientAuth, keystore, truststore, mode, protocol]);
    const made = this.#made.get(id);
    try {
      const identity = await this.#certificates.identity(keystore);
      const trust = truststore === '' || clientAuth === 'NONE' ? undefined : await this.#certificates.trust(truststore);
      if (made?.identity === identity && made.trust === trust && made.settings === settings) return made.terms;
      const notice = (text: string): void => {
        this.#logger.warn({ listener: id }, `a partner was let in, for revocation is soft: ${text}`);
      };
      const revocation = trust && revocationCheck({ mode, trust, store: truststore, notice });
      const terms = new TlsServerTerms({ identity, trust, clientAuth, revocation, ...protocol });
      this.#made.set(id, { identity, trust, settings, terms });
      return terms;
    } catch (error) {
      // Stores cannot be read for now: those that were good a moment ago are.
      if (made?.settings === settings && isDatabaseUnavailable(error)) return made.terms;
      throw error;
    }
  }
}

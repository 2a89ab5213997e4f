import { isDatabaseUnavailable } from '@pesit-node/service';

import type { Certificates, Identity } from './certificates.js';
import type { Trust } from './trust.js';

/** Stores that a side of TLS names, and what its terms are made of besides. */
export interface TermsRequest<T> {
  /** Names of the stores; empty: none. */
  readonly keystore: string;
  readonly truststore: string;
  /** Other values make other terms; compared as JSON. */
  readonly settings: readonly unknown[];
  /** Not called while stores and settings are those of the last time. */
  readonly make: (identity: Identity | undefined, trust: Trust | undefined) => T;
}

interface Made<T> {
  readonly identity: Identity | undefined;
  readonly trust: Trust | undefined;
  readonly settings: string;
  readonly terms: T;
}

/** Terms of handshakes by who brings them: made once from the stores, and anew when those hold something else. */
export class MadeTerms<Key, T> {
  readonly #certificates: Pick<Certificates, 'identity' | 'trust'>;
  readonly #made = new Map<Key, Made<T>>();

  constructor(certificates: Pick<Certificates, 'identity' | 'trust'>) {
    this.#certificates = certificates;
  }

  /** @throws as `Certificates.identity` and `trust`; while the database is away only where nothing was made for these settings */
  async get(key: Key, { keystore, truststore, settings: values, make }: TermsRequest<T>): Promise<T> {
    const settings = JSON.stringify([keystore, truststore, ...values]);
    const made = this.#made.get(key);
    try {
      const identity = keystore === '' ? undefined : await this.#certificates.identity(keystore);
      const trust = truststore === '' ? undefined : await this.#certificates.trust(truststore);
      if (made?.identity === identity && made?.trust === trust && made?.settings === settings) return made.terms;
      const terms = make(identity, trust);
      this.#made.set(key, { identity, trust, settings, terms });
      return terms;
    } catch (error) {
      // Stores cannot be read for now: those that were good a moment ago are.
      if (made?.settings === settings && isDatabaseUnavailable(error)) return made.terms;
      throw error;
    }
  }
}

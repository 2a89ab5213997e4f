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
  /** Milliseconds after which they are made anew in any case, for sessions that cannot be resumed with other terms: none outlives this. Default: never. */
  readonly maxAgeMs?: number;
  /** Not called while stores and settings are those of the last time. */
  readonly make: (identity: Identity | undefined, trust: Trust | undefined) => T;
}

interface Made<T> {
  readonly identity: Identity | undefined;
  readonly trust: Trust | undefined;
  readonly settings: string;
  /** Until then they are used. */
  readonly until: number;
  readonly terms: T;
}

/** Terms of handshakes by who brings them: made once from the stores, and anew when those hold something else, or it is time. */
export class MadeTerms<Key, T> {
  readonly #certificates: Pick<Certificates, 'identity' | 'trust'>;
  readonly #now: () => number;
  readonly #made = new Map<Key, Made<T>>();

  /** @param now milliseconds of a clock that nobody sets. Default: since the start of the process */
  constructor(certificates: Pick<Certificates, 'identity' | 'trust'>, now = () => performance.now()) {
    this.#certificates = certificates;
    this.#now = now;
  }

  /** @throws as `Certificates.identity` and `trust`; while the database is away only where nothing was made for these settings */
  async get(
    key: Key,
    { keystore, truststore, settings: values, maxAgeMs = Infinity, make }: TermsRequest<T>,
  ): Promise<T> {
    const settings = JSON.stringify([keystore, truststore, ...values]);
    const made = this.#made.get(key);
    try {
      const identity = keystore === '' ? undefined : await this.#certificates.identity(keystore);
      const trust = truststore === '' ? undefined : await this.#certificates.trust(truststore);
      const isSame = made?.identity === identity && made?.trust === trust && made?.settings === settings;
      const now = this.#now();
      if (isSame && now < made.until) return made.terms;
      const terms = make(identity, trust);
      this.#made.set(key, { identity, trust, settings, terms, until: now + maxAgeMs });
      return terms;
    } catch (error) {
      // Stores cannot be read for now: those that were good a moment ago are.
      if (made?.settings === settings && isDatabaseUnavailable(error)) return made.terms;
      throw error;
    }
  }
}

import { EventEmitter } from 'node:events';

import { capital, conflict } from '@pesit-node/service';
import type { PeriodicHandle, PeriodicWork, SecretBox } from '@pesit-node/service';
import type { Knex } from 'knex';

import { KeystoreStore } from './keystore-store.js';
import type { StoreHints, StoreKind } from './ports.js';
import { readTrust } from './trust.js';
import type { OwnLists, Trust } from './trust.js';
import { TruststoreStore } from './truststore-store.js';

/** The identity that one side of a handshake proves. */
export interface Identity {
  /** PEM, leaf first. */
  readonly certificateChain: string;
  /** PEM, PKCS#8. */
  readonly privateKey: string;
}

/** Stores as listeners and remote servers name them. */
export interface StoreNames {
  readonly keystoreName?: string | null | undefined;
  readonly truststoreName?: string | null | undefined;
}

/** There is no such store, in words. */
export class StoreMissingError extends Error {
  override readonly name = 'StoreMissingError';
}

interface CertificatesEvents {
  /** A store is another one than it was, or is gone: whoever uses it asks for it anew. On every pod. */
  changed: [kind: StoreKind, name: string];
}

export interface CertificatesOptions {
  readonly knex: Knex;
  readonly secrets: SecretBox;
  readonly periodic: Pick<PeriodicWork, 'add'>;
  readonly hints: StoreHints;
  /** Revocations of CAs that are in this app. Default: it has none. */
  readonly own?: OwnLists | undefined;
  /** Between two looks for what other pods have changed, milliseconds. Default 5000. */
  readonly lookMs?: number | undefined;
}

const LOOK_MS = 5000;

interface Version {
  readonly kind: StoreKind;
  readonly name: string;
  readonly version: number;
}

const VERSIONS = `
  select 'keystore' as kind, name, version from keystores
  union all select 'truststore', name, version from truststores`;

const keyOf = (kind: StoreKind, name: string): string => `${kind}/${name}`;

/**
 * The stores as handshakes use them: what was asked for once is kept in memory, until a look at the database, at the hint of another pod
 * or after some seconds, finds another version of it.
 */
export class Certificates extends EventEmitter<CertificatesEvents> {
  readonly keystores: KeystoreStore;
  readonly truststores: TruststoreStore;
  readonly #knex: Knex;
  readonly #hints: StoreHints;
  readonly #own: OwnLists | undefined;
  readonly #task: PeriodicHandle;
  /** Versions of all stores, as the last look found them. */
  #versions: ReadonlyMap<string, Version> = new Map();
  readonly #kept = new Map<string, Promise<Identity | Trust>>();

  constructor({ knex, secrets, periodic, hints, own, lookMs = LOOK_MS }: CertificatesOptions) {
    super();
    this.keystores = new KeystoreStore(knex, secrets);
    this.truststores = new TruststoreStore(knex);
    this.#knex = knex;
    this.#hints = hints;
    this.#own = own;
    this.#task = periodic.add({
      name: 'look at keystores and truststores',
      intervalMs: lookMs,
      jitter: 0.1,
      first: 'after an interval',
      run: () => this.#look(),
    });
    hints.subscribe(() => this.#task.runNow());
  }

  /**
   * @throws {StoreMissingError} when there is no such keystore
   * @throws {SecretError} when its private key cannot be opened; errors of the database
   */
  identity(name: string): Promise<Identity> {
    return this.#keep('keystore', name, async () => {
      const row = await this.keystores.get(name);
      if (row === undefined) throw missing('keystore', name);
      return { certificateChain: row.certificate, privateKey: this.keystores.privateKeyOf(row) };
    });
  }

  /** @throws {StoreMissingError} when there is no such truststore; errors of the database */
  trust(name: string): Promise<Trust> {
    return this.#keep('truststore', name, async () => {
      const row = await this.truststores.get(name);
      if (row === undefined) throw missing('truststore', name);
      const crls = [...blocksOf(row.crls ?? '').map(derIn), ...(await this.truststores.fetchedCrls(name))];
      return readTrust(blocksOf(row.certificates), crls, this.#own);
    });
  }

  /**
   * Asks for the stores that something is to use from now on; those it names by null or not at all are not meant.
   * @throws {ApiError} 409 naming one that there is not
   */
  async require({ keystoreName, truststoreName }: StoreNames): Promise<void> {
    const lacks = async (store: KeystoreStore | TruststoreStore, name: string | null | undefined): Promise<boolean> =>
      typeof name === 'string' && (await store.get(name)) === undefined;
    if (await lacks(this.keystores, keystoreName))
      throw conflict(capital(missing('keystore', keystoreName ?? '').message));
    if (await lacks(this.truststores, truststoreName))
      throw conflict(capital(missing('truststore', truststoreName ?? '').message));
  }

  /** This pod has changed stores: it uses them from now on, and the others learn of it. Resolves when it does. */
  async changed(): Promise<void> {
    this.#hints.tell();
    await this.#task.runNow();
  }

  /** Looks no more. */
  async stop(): Promise<void> {
    await this.#task.remove();
  }

  async #keep<T extends Identity | Trust>(kind: StoreKind, name: string, load: () => Promise<T>): Promise<T> {
    const key = keyOf(kind, name);
    let kept = this.#kept.get(key) as Promise<T> | undefined;
    if (kept === undefined) {
      kept = load();
      this.#kept.set(key, kept);
      const loaded = kept;
      kept.catch(() => {
        // Asked for again the next time.
        if (this.#kept.get(key) === loaded) this.#kept.delete(key);
      });
    }
    return kept;
  }

  async #look(): Promise<void> {
    const { rows } = await this.#knex.raw<{ rows: Version[] }>(VERSIONS);
    const now = new Map(rows.map((row) => [keyOf(row.kind, row.name), row]));
    const before = this.#versions;
    this.#versions = now;
    const all = new Map([...before, ...now]);
    for (const [key, { kind, name }] of all) {
      if (now.get(key)?.version === before.get(key)?.version) continue;
      this.#kept.delete(key);
      this.emit('changed', kind, name);
    }
  }
}

const missing = (kind: StoreKind, name: string): StoreMissingError =>
  new StoreMissingError(
    `there is no ${kind} ${JSON.stringify(name)}: create it with POST /api/v1/certificates/${kind}s`,
  );

/** The blocks of PEM as this package writes it. */
const blocksOf = (pem: string): readonly string[] =>
  pem.match(/-----BEGIN [^-]+-----[^-]+-----END [^-]+-----\n?/g) ?? [];

const derIn = (block: string): Buffer => Buffer.from(block.replace(/-----[^-]+-----/g, ''), 'base64');

/**
 * The keys of session tickets. A session that was opened at one pod is resumed at another one, and after a restart, since all pods
 * make their keys of the same secrets, one a period of half of `ssl.session-timeout`. Keys of the present period seal; those of the one
 * before are taken, so that a session can be resumed for half of the timeout at least, and never for longer than all of it.
 *
 * A secret is in the database, sealed, one period before it is needed. The clock of the database says which period it is, so that the
 * clocks of pods do not count; a pod that is a moment ahead of others seals with keys that these have already. While it can get no
 * secret, a pod makes one of its own: resumption works then at this pod alone.
 *
 * From the secrets each kind of terms gets keys of its own: who was let in by one truststore is not let in by another, nor by the same one
 * after a change.
 */
import { createHash, hkdfSync, randomBytes, randomUUID } from 'node:crypto';

import type { TicketKeys as Keys } from '@pesit-node/net';
import type { PeriodicTask } from '@pesit-node/service';

import type { TicketKeyStore } from './ticket-key-store.js';

export interface TicketKeysOptions {
  /** The secrets of all pods. Default: none, each process has its own. */
  readonly store?: Pick<TicketKeyStore, 'time' | 'take'>;
  /** `ssl.session-timeout`, seconds, as it is now. */
  readonly timeout: () => number;
  /** Milliseconds of a clock that nobody sets. Default: since the start of the process. */
  readonly now?: (() => number) | undefined;
}

interface Secret {
  readonly bytes: Buffer;
  /** Seals before this, and is taken before that: by `now`, milliseconds. */
  readonly sealsUntil: number;
  readonly takenUntil: number;
}

const LOOK_MS = 60_000;
/** Shorter periods could be over before a pod has looked. */
const MIN_SHARED_MS = 2 * LOOK_MS;
/** An answer of the database that took longer does not say what time it is. */
const MAX_SKEW_MS = 10_000;
const SECRET_BYTES = 32;
const KEY_BYTES = 48;

/** Undefined: the secrets of this process alone. */
type Shared = { readonly periodMs: number; readonly secrets: ReadonlyMap<number, Secret> } | undefined;

export class TicketKeys {
  readonly #store: TicketKeysOptions['store'];
  readonly #timeout: () => number;
  readonly #now: () => number;
  #shared: Shared;
  /** Time of the database minus `now`; 0 until it is known. */
  #offset = 0;
  /** The newest one first. */
  #own: readonly Secret[] = [];

  constructor({ store, timeout, now = () => performance.now() }: TicketKeysOptions) {
    this.#store = store;
    this.#timeout = timeout;
    this.#now = now;
  }

  /** For the runner of periodic work. */
  get task(): PeriodicTask {
    return {
      name: 'look at the keys of session tickets',
      ...{ intervalMs: LOOK_MS, jitter: 0.1, first: 'after an interval' },
      run: () => this.look(),
    };
  }

  /** Learns the secrets of the present period and its neighbours. @throws as `TicketKeyStore.take` */
  async look(): Promise<void> {
    const periodMs = this.#periodMs;
    if (this.#store === undefined || periodMs < MIN_SHARED_MS) return;
    const began = this.#now();
    const time = await this.#store.time();
    const ended = this.#now();
    if (ended - began > MAX_SKEW_MS) {
      throw new Error(`the database took ${Math.round(ended - began)} ms to say what time it is`);
    }
    const taken = await this.#store.take({ periodMs, number: Math.floor(time / periodMs) });
    this.#offset = time - ended;
    const before = this.#shared?.secrets;
    const secrets = taken.map(({ number, bytes }) => {
      const known = before?.get(number)?.bytes;
      // The keys that were made of it are found by the object.
      return [number, this.#secret(number, known?.equals(bytes) === true ? known : bytes)] as const;
    });
    this.#shared = { periodMs, secrets: new Map(secrets) };
  }

  /**
   * Keys for terms of one kind: equal kinds are given equal keys, on every pod.
   * @param kind undefined: what these terms let in no others do
   */
  keysFor(kind: string | undefined): Keys {
    const digest = createHash('sha256').update(kind ?? randomUUID());
    const info = `pesit session tickets ${digest.digest('hex')}`;
    const made = new WeakMap<Buffer, Buffer>();
    const keyOf = ({ bytes }: Secret): Buffer => {
      const key = made.get(bytes) ?? Buffer.from(hkdfSync('sha256', bytes, '', info, KEY_BYTES));
      made.set(bytes, key);
      return key;
    };
    return () => {
      const [sealing, ...others] = this.#secrets();
      return [keyOf(sealing), ...others.map(keyOf)];
    };
  }

  get #periodMs(): number {
    return Math.floor((this.#timeout() * 1000) / 2);
  }

  /** The one that seals first, then those that are taken. */
  #secrets(): readonly [Secret, ...Secret[]] {
    const now = this.#now();
    const periodMs = this.#periodMs;
    const number = Math.floor((now + this.#offset) / periodMs);
    const { secrets } = this.#shared?.periodMs === periodMs ? this.#shared : { secrets: undefined };
    const sealing = secrets?.get(number) ?? this.#ownOf(number, now);
    const known = [...(secrets?.values() ?? []), ...this.#own];
    return [sealing, ...known.filter((secret) => secret !== sealing && now < secret.takenUntil)];
  }

  #ownOf(number: number, now: number): Secret {
    const [newest] = this.#own;
    if (newest !== undefined && now < newest.sealsUntil) return newest;
    const secret = this.#secret(number, randomBytes(SECRET_BYTES));
    this.#own = [secret, ...this.#own.filter(({ takenUntil }) => now < takenUntil)];
    return secret;
  }

  #secret(number: number, bytes: Buffer): Secret {
    const end = (number + 1) * this.#periodMs - this.#offset;
    return { bytes, sealsUntil: end, takenUntil: end + this.#periodMs };
  }
}

import { createHmac, randomBytes, scrypt, timingSafeEqual } from 'node:crypto';
import type { ScryptOptions } from 'node:crypto';

/** 32 MiB and about 60 ms a check: the cost parameters travel in the hash, so that they can be raised later. */
const LOG_N = 15;
const BLOCK_SIZE = 8;
const PARALLEL = 1;
const SALT_BYTES = 16;
const HASH_BYTES = 32;
/** A stored hash may not ask for more memory than this, whoever wrote it. */
const MAX_LOG_N = 17;

const FORMAT = /^\$scrypt\$ln=(\d{1,2}),r=(\d{1,2}),p=(\d{1,2})\$([A-Za-z0-9+/]{4,64})\$([A-Za-z0-9+/]{16,128})$/;

const unpadded = (bytes: Buffer): string => bytes.toString('base64').replace(/=+$/, '');

const derive = (password: string, salt: Buffer, length: number, options: ScryptOptions): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    scrypt(password.normalize('NFC'), salt, length, options, (error, key) => {
      if (error === null) resolve(key);
      else reject(error);
    });
  });

const cost = (logN: number, r: number, p: number): ScryptOptions => ({
  N: 2 ** logN,
  r,
  p,
  maxmem: 256 * 2 ** logN * r,
});

/** Hash of a password to be stored (PHC form `$scrypt$ln=…,r=…,p=…$salt$hash`), with a salt of its own. */
export const hashPassword = async (password: string): Promise<string> => {
  const salt = randomBytes(SALT_BYTES);
  const hash = await derive(password, salt, HASH_BYTES, cost(LOG_N, BLOCK_SIZE, PARALLEL));
  return `$scrypt$ln=${LOG_N},r=${BLOCK_SIZE},p=${PARALLEL}$${unpadded(salt)}$${unpadded(hash)}`;
};

/** Whether `password` gives `stored`, in time that does not depend on where they differ; false for what is no hash of ours. */
export const verifyPassword = async (password: string, stored: string): Promise<boolean> => {
  const [, logN, r, p, salt, hash] = FORMAT.exec(stored) ?? [];
  if (salt === undefined || hash === undefined || Number(logN) > MAX_LOG_N || Number(logN) < 1) return false;
  const expected = Buffer.from(hash, 'base64');
  const options = cost(Number(logN), Number(r), Number(p));
  return timingSafeEqual(await derive(password, Buffer.from(salt, 'base64'), expected.length, options), expected);
};

export interface PasswordVerifierOptions {
  /** Verified credentials that are remembered. Default 1000. */
  readonly capacity?: number;
  /** How long they are remembered, in milliseconds. Default 10 minutes. */
  readonly ttlMs?: number;
  /** Checks that may wait; one more is refused as wrong. Default 256. */
  readonly maxWaiting?: number;
  /** Clock, for tests. */
  readonly now?: () => number;
}

/**
 * Checks passwords against stored hashes, cheaply when they were verified lately.
 *
 * A session or a request each brings its password, and scrypt is slow on purpose: successes are remembered under an HMAC
 * whose key lives as long as the process; failures never are. One scrypt runs at a time, because they share the thread pool
 * with every file write of the transfers, and equal checks that run at once are one.
 */
export class PasswordVerifier {
  readonly #key = randomBytes(32);
  readonly #verified = new Map<string, number>();
  readonly #running = new Map<string, Promise<boolean>>();
  readonly #capacity: number;
  readonly #ttlMs: number;
  readonly #maxWaiting: number;
  readonly #now: () => number;
  #tail: Promise<unknown> = Promise.resolve();
  #dummy: Promise<string> | undefined;

  constructor({ capacity = 1000, ttlMs = 600_000, maxWaiting = 256, now = Date.now }: PasswordVerifierOptions = {}) {
    this.#capacity = capacity;
    this.#ttlMs = ttlMs;
    this.#maxWaiting = maxWaiting;
    this.#now = now;
  }

  /** @param stored the hash, or `undefined` when there is no such user: false, after the same time. */
  async verify(password: string, stored: string | undefined): Promise<boolean> {
    if (stored === undefined) {
      this.#dummy ??= hashPassword(randomBytes(16).toString('hex'));
      await this.verify(password, await this.#dummy);
      return false;
    }
    const id = createHmac('sha256', this.#key).update(stored).update('\0').update(password).digest('base64');
    if (this.#remembers(id)) return true;
    const running = this.#running.get(id);
    if (running !== undefined) return running;
    if (this.#running.size >= this.#maxWaiting) return false;
    const check = this.#tail.then(() => verifyPassword(password, stored));
    this.#running.set(id, check);
    this.#tail = check.catch(() => undefined);
    try {
      const valid = await check;
      if (valid) this.#remember(id);
      return valid;
    } finally {
      this.#running.delete(id);
    }
  }

  #remembers(id: string): boolean {
    const until = this.#verified.get(id);
    if (until === undefined) return false;
    if (until > this.#now()) return true;
    this.#verified.delete(id);
    return false;
  }

  #remember(id: string): void {
    const oldest = this.#verified.keys().next();
    if (this.#verified.size >= this.#capacity && oldest.done !== true) this.#verified.delete(oldest.value);
    this.#verified.set(id, this.#now() + this.#ttlMs);
  }
}

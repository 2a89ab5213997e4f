import { createHmac, timingSafeEqual } from 'node:crypto';

import type { SharedMemory } from '@pesit-node/cluster';
import type { SecretBox } from '@pesit-node/service';

import { mergeRecords } from './clock.js';
import type { ClockRecord } from './clock.js';

/** Purpose of the keys that are derived from `secrets.key` (RFC 5869, info). */
const PURPOSE = 'pesit-node license clock record v1';

/** `<startedAt> <counted> <highest> <signature>`, times in milliseconds since 1970. */
const TEXT = /^((\d{1,15}) (\d{1,15}) (\d{1,15})) ([0-9a-f]{64})$/;

/** HMAC-SHA-256 of what is said of one installation. */
const sign = (key: Buffer, what: string, installation: string): string =>
  createHmac('sha256', key).update(`${what} ${installation}`).digest('hex');

const write = ({ startedAt, counted, highest }: ClockRecord, installation: string, key: Buffer): string => {
  const times = [startedAt, counted, highest].map(Math.trunc).join(' ');
  return `${times} ${sign(key, times, installation)}`;
};

/** @returns undefined for what was not signed with the key, of this installation. */
const read = (text: string, installation: string, key: Buffer): ClockRecord | undefined => {
  const [, times = '', startedAt, counted, highest, signature = ''] = TEXT.exec(text) ?? [];
  const expected = Buffer.from(sign(key, times, installation));
  const given = Buffer.from(signature);
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined;
  return { startedAt: Number(startedAt), counted: Number(counted), highest: Number(highest) };
};

export interface SharedRecordOptions {
  readonly memory: SharedMemory;
  /** The box under `secrets.key`. */
  readonly secrets: Pick<SecretBox, 'keysFor'>;
  /** A text in Redis is not signed as it must be: it counts as absent. Told each time that one is found. */
  readonly forged: () => void;
}

/**
 * The clock record once more, in Redis, where a database that is restored from an older copy does not reach. Its name is made of
 * the installation and of a key from `secrets.key`, its text is signed with that key: who sees or writes Redis, or the database, or
 * both, can neither find out which one it is nor sign another, and installations that do not share both have records of their own.
 * A value that is not signed counts for nothing, and is written over.
 */
export class SharedRecord {
  readonly #memory: SharedMemory;
  readonly #keys: readonly [Buffer, ...Buffer[]];
  readonly #forged: () => void;

  constructor({ memory, secrets, forged }: SharedRecordOptions) {
    this.#memory = memory;
    const [first, ...older] = secrets.keysFor(PURPOSE);
    this.#keys = [first.bytes, ...older.map(({ bytes }) => bytes)];
    this.#forged = forged;
  }

  /**
   * Both records put together; Redis keeps the result, under the newest key. A value signed with an older one counts as long
   * as `secrets.key` has that.
   * @throws when it cannot be reached.
   */
  async meet(installation: string, record: ClockRecord): Promise<ClockRecord> {
    let merged = record;
    let newest: string | null = null;
    for (const [index, key] of this.#keys.entries()) {
      const text = await this.#memory.read(nameOf(installation, key));
      if (index === 0) newest = text;
      if (text === null) continue;
      const known = read(text, installation, key);
      if (known === undefined) this.#forged();
      else merged = mergeRecords(merged, known);
    }
    const [key] = this.#keys;
    const next = write(merged, installation, key);
    if (next !== newest) await this.#memory.write(nameOf(installation, key), next);
    return merged;
  }
}

const nameOf = (installation: string, key: Buffer): string => `license:${sign(key, 'name', installation)}`;

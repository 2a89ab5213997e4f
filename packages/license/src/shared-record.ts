import { createHash, createHmac, timingSafeEqual } from 'node:crypto';

import type { SharedMemory } from '@pesit-node/cluster';

import { mergeRecords } from './clock.js';
import type { ClockRecord } from './clock.js';

/** `<startedAt> <counted> <highest> <signature>`, times in milliseconds since 1970. */
const TEXT = /^((\d{1,15}) (\d{1,15}) (\d{1,15})) ([0-9a-f]{64})$/;

const sign = (times: string, installation: string): string =>
  createHmac('sha256', installation).update(times).digest('hex');

const write = ({ startedAt, counted, highest }: ClockRecord, installation: string): string => {
  const times = [startedAt, counted, highest].map(Math.trunc).join(' ');
  return `${times} ${sign(times, installation)}`;
};

/** @returns undefined for what this installation did not write. */
const read = (text: string, installation: string): ClockRecord | undefined => {
  const [, times = '', startedAt, counted, highest, signature = ''] = TEXT.exec(text) ?? [];
  const expected = Buffer.from(sign(times, installation));
  const given = Buffer.from(signature);
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined;
  return { startedAt: Number(startedAt), counted: Number(counted), highest: Number(highest) };
};

/**
 * The clock record once more, in Redis, where a database that is restored from an older copy does not reach. Its key is made of
 * the installation, which is a secret of the database: another installation has another record, and who sees Redis alone can
 * neither find out which one it is nor sign another. What is not signed counts for nothing, and is written over.
 */
export class SharedRecord {
  readonly #memory: SharedMemory;

  constructor(memory: SharedMemory) {
    this.#memory = memory;
  }

  /** What both know together; Redis knows it from now on. @throws when it cannot be reached. */
  async meet(installation: string, record: ClockRecord): Promise<ClockRecord> {
    const key = `license:${createHash('sha256').update(installation).digest('hex')}`;
    const text = await this.#memory.read(key);
    const known = text === null ? undefined : read(text, installation);
    const merged = known === undefined ? record : mergeRecords(record, known);
    const next = write(merged, installation);
    if (next !== text) await this.#memory.write(key, next);
    return merged;
  }
}

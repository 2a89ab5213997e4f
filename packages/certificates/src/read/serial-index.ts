import { randomInt } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';

import { isOfAnotherCa, TIMES } from './crl-entries.js';
import { DerError, placeAt, sliceAt } from './der.js';
import type { DerSlice } from './der.js';

const SERIAL = 0x02;
const SEQUENCE = 0x30;
/** Entries read in one turn of the event loop: some milliseconds. */
const A_TURN = 10_000;
/** An entry has a serial and a time: 2 + 3 + 15 bytes. One with less could fill the table, and none be found to be missing. */
const LEAST_ENTRY = 20;
/** Its extensions are a reason, a date, and a name. */
const MOST_ENTRY = 8192;

/**
 * The entries of a CRL by their serials. They stay where they are in its DER; a table of their places, open addressing with half of it
 * free, finds one: 8 bytes an entry, and no object.
 */
export class SerialIndex {
  readonly #list: Buffer;
  /** Places of entries, counted from 1; 0: free. */
  readonly #table: Uint32Array;
  /** The maker of a CRL cannot know where its serials come together. */
  readonly #seed = randomInt(2 ** 32);
  #size = 0;

  private constructor(list: Buffer) {
    this.#list = list;
    let slots = 16;
    // At most half of the table is used, since no entry is shorter.
    while (slots < (2 * list.length) / LEAST_ENTRY) slots *= 2;
    this.#table = new Uint32Array(slots);
  }

  /** @param list content of revokedCertificates @throws {DerError} */
  static async of(list: Buffer): Promise<SerialIndex> {
    const index = new SerialIndex(list);
    let inTurn = 0;
    for (let at = 0; at < list.length; inTurn++) {
      if (inTurn === A_TURN) {
        inTurn = 0;
        await turn();
      }
      const { tag, end } = placeAt(list, at);
      if (tag !== SEQUENCE) throw badEntry();
      if (!index.#add(at)) break;
      at = end;
    }
    return index;
  }

  /** Certificates that it names. */
  get size(): number {
    return this.#size;
  }

  /** @param serial upper-case or lower-case hex */
  find(serial: string): DerSlice | undefined {
    const hex = serial.replace(/^0+(?=.)/, '');
    const wanted = Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex');
    const at = this.#table[this.#slot(wanted, 0, wanted.length)] ?? 0;
    return at === 0 ? undefined : sliceAt(this.#list, at - 1);
  }

  /** @returns false: this entry and those behind it are of another CA */
  #add(at: number): boolean {
    const list = this.#list;
    const entry = placeAt(list, at);
    if (entry.end - at > MOST_ENTRY) throw new DerError(`an entry has more than ${MOST_ENTRY} bytes`);
    if (entry.end - at < LEAST_ENTRY) throw badEntry();
    const { tag, start, end } = placeAt(list, entry.start, entry.end);
    if (tag !== SERIAL || end === entry.end || !TIMES.includes(placeAt(list, end, entry.end).tag)) throw badEntry();
    if (isOfAnotherCa(sliceAt(list, at))) return false;
    const slot = this.#slot(list, firstByte(list, start, end), end);
    if (this.#table[slot] === 0) this.#size++;
    this.#table[slot] = at + 1;
    return true;
  }

  /** Where the serial in these bytes is, or would be. */
  #slot(bytes: Buffer, start: number, end: number): number {
    let hash = this.#seed;
    for (let at = start; at < end; at++) hash = Math.imul(hash ^ (bytes[at] ?? 0), 0x01000193);
    hash ^= hash >>> 15;
    const mask = this.#table.length - 1;
    let slot = hash & mask;
    for (let taken = this.#table[slot] ?? 0; taken !== 0; taken = this.#table[slot] ?? 0) {
      const entry = placeAt(this.#list, taken - 1);
      const there = placeAt(this.#list, entry.start);
      const first = firstByte(this.#list, there.start, there.end);
      if (bytes.compare(this.#list, first, there.end, start, end) === 0) break;
      slot = (slot + 1) & mask;
    }
    return slot;
  }
}

/** DER writes a zero before a number whose first bit is set (X.690 §8.3); other writers write more. */
const firstByte = (bytes: Buffer, start: number, end: number): number => {
  let at = start;
  while (at < end - 1 && bytes[at] === 0) at++;
  return at;
};

const badEntry = (): DerError => new DerError('an entry has no serial or date');

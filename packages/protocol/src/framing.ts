/**
 * From socket bytes to FPDUs, in both dialects of TCP (pesit-e.md §1), at any split.
 *
 * - `length-prefixed`: entity = 2-byte length, then 1..n FPDUs; an FPDU never crosses its entity
 * - `raw`: FPDUs back to back
 *
 * Nothing is copied but FPDUs that arrive in many small pieces: what waits for the rest of an FPDU is bounded by the
 * longest FPDU, and so is the number of pieces. Who sends each FPDU in one piece, as nearly all do, costs no memory here.
 */
import { checksum } from './crc.js';
import { PesitError } from './errors.js';
import { FPDU_HEADER_LENGTH, fpduByCodes } from './fpdus.js';
import type { FpduName } from './fpdus.js';

export type Dialect = 'length-prefixed' | 'raw';

/** Bytes before an entity on the wire. */
export const ENTITY_PREFIX_LENGTH: Readonly<Record<Dialect, number>> = { 'length-prefixed': 2, raw: 0 };

/** An FPDU as it lies in the received buffers. */
export interface RawFpdu {
  readonly name: FpduName;
  readonly destination: number;
  readonly source: number;
  /** FPDU length as announced, header included. */
  readonly length: number;
  /** The body, in order; views. */
  readonly body: readonly Buffer[];
}

/** Pieces shorter than this are gathered behind others, so that a peer that sends byte by byte costs no more than its bytes. */
const SMALL_PIECE = 512;
const GATHER_SIZE = 4096;
/** The first one of a reader, shared with others (`Buffer.poolSize`): enough for what comes in pieces between files. */
const FIRST_GATHER_SIZE = 1024;

export class FpduReader {
  readonly #dialect: Dialect;
  /** Pieces not read yet; the first `#offset` bytes of the first one are. */
  readonly #pieces: Buffer[] = [];
  #offset = 0;
  #available = 0;
  /** A gathering buffer of our own, once it is needed, and the bytes used in it; whether the last piece is its end. */
  #gather: Buffer | undefined;
  #gathered = 0;
  #gatherIsLast = false;
  /** Bytes of the current entity not yet read; length-prefixed only. */
  #entityLeft = 0;
  #entityLength = 0;
  /** Whether two CRC bytes follow each FPDU; `undefined` until the CONNECT has shown it. */
  #crc: boolean | undefined;
  /** Whether an FPDU was read: the first shows how the peer understood PI 1. */
  #established = false;

  /** @param crc whether CRC is in use, when it is known beforehand (a requester knows) */
  constructor(dialect: Dialect, crc?: boolean) {
    this.#dialect = dialect;
    this.#crc = crc;
  }

  /** Whether the FPDUs of this connection carry a CRC; false until known. */
  get crc(): boolean {
    return this.#crc === true;
  }

  /** Length of the entity whose FPDU was returned last, bytes; in the raw dialect that of the FPDU with its CRC. */
  get entityLength(): number {
    return this.#entityLength;
  }

  /** Bytes received that are not part of an FPDU returned yet. */
  get pending(): number {
    return this.#available;
  }

  push(bytes: Buffer): void {
    if (bytes.length === 0) return;
    this.#available += bytes.length;
    if (bytes.length >= SMALL_PIECE || this.#pieces.length === 0) {
      this.#gatherIsLast = false;
      this.#pieces.push(bytes);
      return;
    }
    if (this.#gather === undefined || this.#gathered + bytes.length > this.#gather.length) {
      this.#gather = Buffer.allocUnsafe(this.#gather === undefined ? FIRST_GATHER_SIZE : GATHER_SIZE);
      this.#gathered = 0;
      this.#gatherIsLast = false;
    }
    // Views of what was gathered before stay valid: a gathering buffer is only appended to.
    let start = this.#gathered;
    if (this.#gatherIsLast) start = (this.#pieces.pop() as Buffer).byteOffset - this.#gather.byteOffset;
    bytes.copy(this.#gather, this.#gathered);
    this.#gathered += bytes.length;
    this.#pieces.push(this.#gather.subarray(start, this.#gathered));
    this.#gatherIsLast = true;
  }

  /** Copies what is left of the bytes that were pushed last: they are free to be used again. */
  own(): void {
    const last = this.#pieces.at(-1);
    if (last === undefined || this.#gatherIsLast) return;
    const isFirst = this.#pieces.length === 1;
    this.#pieces[this.#pieces.length - 1] = Buffer.from(isFirst ? last.subarray(this.#offset) : last);
    if (isFirst) this.#offset = 0;
  }

  /**
   * The next complete FPDU, or `undefined` when more bytes are needed.
   * @throws PesitError fault `remote`: 3-311 unknown or impossible FPDU; 3-310 wrong CRC: that FPDU is passed over, and the
   *   next call continues behind it
   */
  next(): RawFpdu | undefined {
    if (this.#dialect === 'length-prefixed' && this.#entityLeft < FPDU_HEADER_LENGTH) {
      if (this.#entityLeft > 0) {
        throw impossible('an entity', 'its last FPDU to end it', `${this.#entityLeft} bytes more`);
      }
      if (this.#available < 2) return undefined;
      const entity = this.#peek16(0);
      if (entity < FPDU_HEADER_LENGTH) {
        throw impossible('an entity', `at least ${FPDU_HEADER_LENGTH} bytes`, `a length of ${entity}`);
      }
      // Whether there is a CRC shows in the first entity alone: it is two bytes longer than its CONNECT.
      if (this.#crc === undefined) {
        if (this.#available < 4) return undefined;
        this.#crc = entity === this.#peek16(2) + 2;
      }
      this.#skip(2);
      this.#entityLeft = entity;
      this.#entityLength = entity;
    }
    if (this.#available < 4) return undefined;
    const damaged = this.#damagedHeader();
    if (damaged !== 'no') return damaged;
    const length = this.#peek16(0);
    const name = fpduByCodes(this.#peek8(2), this.#peek8(3));
    if (name === undefined) {
      const got = `phase ${hex(this.#peek8(2))} type ${hex(this.#peek8(3))}`;
      throw impossible('an FPDU', 'a phase and type of PeSIT E', got);
    }
    if (length < FPDU_HEADER_LENGTH) {
      throw impossible(name, `at least ${FPDU_HEADER_LENGTH} bytes`, `a length of ${length}`);
    }
    if (this.#crc === undefined && this.#available >= length) this.#crc = this.#rawConnectAsksForCrc(length);
    const trailer = this.crc ? 2 : 0;
    if (this.#dialect === 'length-prefixed' && length + trailer > this.#entityLeft) {
      if (trailer > 0 && !this.#established && length === this.#entityLeft) throw withoutCrc(name);
      throw impossible(name, `at most the ${this.#entityLeft} bytes left in its entity`, `${length + trailer} bytes`);
    }
    if (this.#crc === undefined || this.#available < length + trailer) return undefined;

    const destination = this.#peek8(4);
    const source = this.#peek8(5);
    this.#established = true;
    if (trailer > 0) this.#checkCrc(name, length);
    this.#skip(FPDU_HEADER_LENGTH);
    const body = this.#take(length - FPDU_HEADER_LENGTH);
    this.#skip(trailer);
    if (this.#dialect === 'length-prefixed') this.#entityLeft -= length + trailer;
    else this.#entityLength = length + trailer;
    return { name, destination, source, length, body };
  }

  /** True when all that came is one FPDU without the CRC that has to follow it. */
  get lacksCrc(): boolean {
    return this.crc && !this.#established && this.#available >= 2 && this.#available === this.#peek16(0);
  }

  /**
   * With CRC a header that does not fit its entity is more likely damaged than meant: the entity is passed over as a whole,
   * unless a CRC in it is right. In the raw dialect nothing tells where the next FPDU begins.
   * @returns `undefined` when the entity has not come whole
   */
  #damagedHeader(): 'no' | undefined {
    if (!this.crc || !this.#established || this.#dialect !== 'length-prefixed') return 'no';
    const length = this.#peek16(0);
    const entity = this.#entityLeft;
    if (length + 2 === entity && fpduByCodes(this.#peek8(2), this.#peek8(3)) !== undefined) return 'no';
    if (this.#available < entity) return undefined;
    // Several FPDUs with a CRC each, or one whose mistake is the peer's own.
    const right = (end: number): boolean => end <= entity - 2 && this.#crcAt(end) === checksum(this.#views(end));
    if (length >= FPDU_HEADER_LENGTH && right(length)) return 'no';
    if (entity > FPDU_HEADER_LENGTH + 2 && right(entity - 2)) return 'no';
    this.#skip(entity);
    this.#entityLeft = 0;
    throw damage('an FPDU', 'a header that fits its entity', 'a damaged one');
  }

  #crcAt(offset: number): number {
    return (this.#peek8(offset) << 8) | this.#peek8(offset + 1);
  }

  /** PI 1 is the first parameter of a CONNECT when it is there (`01 01 01`). */
  #rawConnectAsksForCrc(length: number): boolean {
    const start = FPDU_HEADER_LENGTH;
    return (
      length >= start + 3 && this.#peek8(start) === 1 && this.#peek8(start + 1) === 1 && this.#peek8(start + 2) === 1
    );
  }

  #checkCrc(name: FpduName, length: number): void {
    const expected = checksum(this.#views(length));
    const got = this.#crcAt(length);
    if (expected === got) return;
    this.#skip(length + 2);
    if (this.#dialect === 'length-prefixed') this.#entityLeft -= length + 2;
    throw damage(name, `CRC ${hex(expected, 4)}`, hex(got, 4));
  }

  #peek16(index: number): number {
    return (this.#peek8(index) << 8) | this.#peek8(index + 1);
  }

  #peek8(index: number): number {
    let at = this.#offset + index;
    const first = this.#pieces[0];
    if (first !== undefined && at < first.length) return first[at] as number;
    for (const piece of this.#pieces) {
      if (at < piece.length) return piece[at] as number;
      at -= piece.length;
    }
    throw new RangeError(`peek at ${index} of ${this.#available} bytes`);
  }

  #skip(count: number): void {
    this.#available -= count;
    this.#offset += count;
    for (;;) {
      const first = this.#pieces[0];
      if (first === undefined || this.#offset < first.length) return;
      this.#offset -= first.length;
      this.#pieces.shift();
      if (this.#pieces.length === 0) this.#gatherIsLast = false;
    }
  }

  /** Views of the next `count` bytes. */
  #views(count: number): Buffer[] {
    const views: Buffer[] = [];
    let start = this.#offset;
    let left = count;
    for (const piece of this.#pieces) {
      if (left === 0) break;
      const view = piece.subarray(start, start + left);
      views.push(view);
      left -= view.length;
      start = 0;
    }
    return views;
  }

  #take(count: number): Buffer[] {
    const views = this.#views(count);
    this.#skip(count);
    return views;
  }
}

const damage = (what: string, expected: string, got: string): PesitError =>
  new PesitError(`${what}: expected ${expected}, got ${got}`, {
    fault: 'remote',
    diagnostic: '3-310',
    condition: 'damaged FPDU',
    expected,
    got,
  });

const withoutCrc = (name: FpduName): PesitError => {
  const text = `${name} came without a CRC although PI 1 asked for one: the partner does not support it, switch CRC off`;
  const details = { fault: 'remote', diagnostic: '3-315', expected: 'two CRC bytes', got: 'none' } as const;
  return new PesitError(text, details);
};

const hex = (value: number, width = 2): string => `0x${value.toString(16).padStart(width, '0')}`;

const impossible = (what: string, expected: string, got: string): PesitError =>
  new PesitError(`${what}: expected ${expected}, got ${got}`, {
    fault: 'remote',
    diagnostic: '3-311',
    expected,
    got,
  });

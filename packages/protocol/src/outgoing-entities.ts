/** Control FPDUs on their way out, each an entity of its own (pesit-e.md §1): length before it, CRC behind it. */
import { CRC_LENGTH, checksum } from './crc.js';
import { ENTITY_PREFIX_LENGTH } from './framing.js';
import type { Dialect } from './framing.js';

export class OutgoingEntities {
  /** Bytes that an FPDU has to leave free before it. */
  readonly prefix: number;
  #buffers: Buffer[] = [];

  constructor(dialect: Dialect) {
    this.prefix = ENTITY_PREFIX_LENGTH[dialect];
  }

  /** @param fpdu with `prefix` bytes before it */
  add(fpdu: Buffer, crc: boolean): void {
    if (this.prefix > 0) fpdu.writeUInt16BE(fpdu.length - this.prefix + (crc ? CRC_LENGTH : 0), 0);
    this.#buffers.push(fpdu);
    if (!crc) return;
    const trailer = Buffer.allocUnsafe(CRC_LENGTH);
    trailer.writeUInt16BE(checksum([fpdu.subarray(this.prefix)]), 0);
    this.#buffers.push(trailer);
  }

  /** All that was added since the last call, in order. */
  take(): Buffer[] {
    const buffers = this.#buffers;
    if (buffers.length > 0) this.#buffers = [];
    return buffers;
  }
}

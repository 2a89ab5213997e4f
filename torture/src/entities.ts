/** The stream of one direction cut into entities, so that the proxy knows what it passes on. */
import { describeFpdu, FPDU_HEADER_LENGTH, fpduByCodes, isDataFpdu, type Dialect } from '@pesit-node/protocol';

export interface SeenFpdu {
  /** `unknown` for codes that PeSIT E does not have. */
  readonly name: string;
  /** Article bytes of an FPDU with data, as PI 27 counts them, without the prefixes of a multi-article DTF; else 0. */
  readonly dataBytes: number;
  /** The FPDU, without what precedes it in its entity. */
  readonly bytes: Buffer;
}

export interface SeenEntity {
  /** With the two-byte length of the wire, where the dialect has one. */
  readonly bytes: Buffer;
  readonly fpdus: readonly SeenFpdu[];
}

const dataBytesOf = (name: string, source: number, body: number): number => {
  // ID.SRC > 1 counts the articles, each with its length before it (pesit-e.md §2, §6).
  return name === 'DTF' && source > 1 ? body - 2 * source : body;
};

const seenAt = (bytes: Buffer, at: number): SeenFpdu => {
  const length = Math.max(FPDU_HEADER_LENGTH, bytes.readUInt16BE(at));
  const fpdu = bytes.subarray(at, at + length);
  const name = fpduByCodes(fpdu[2] as number, fpdu[3] as number);
  if (name === undefined) return { name: 'unknown', dataBytes: 0, bytes: fpdu };
  const dataBytes = isDataFpdu(name) ? dataBytesOf(name, fpdu[5] as number, fpdu.length - FPDU_HEADER_LENGTH) : 0;
  return { name, dataBytes, bytes: fpdu };
};

/** An FPDU in a line, data with its size alone. */
export const lineOf = (fpdu: SeenFpdu): string => describeFpdu(fpdu.bytes);

/** Framing of a connection as its CONNECT says; known to the readers of both directions. */
export interface Framing {
  readonly dialect: Dialect;
  /** PI 1: two bytes follow every FPDU. */
  crc: boolean;
}

const CRC_LENGTH = 2;
/** CONNECT's codes, and PI 1 = 1, which is its first parameter when it is there (pesit-e.md §2). */
const CONNECT = Buffer.from('4020', 'hex');
const CRC_USED = Buffer.from('010101', 'hex');

export class EntityReader {
  readonly #framing: Framing;
  readonly #prefix: number;
  #rest: Buffer = Buffer.alloc(0);

  /** @param framing is changed by the CONNECT that passes */
  constructor(framing: Framing) {
    this.#framing = framing;
    this.#prefix = framing.dialect === 'raw' ? 0 : 2;
  }

  /** Bytes of an entity that is not whole yet. */
  get rest(): Buffer {
    return this.#rest;
  }

  /** Takes what arrived; the entities that are whole now, in order. */
  push(chunk: Buffer): SeenEntity[] {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const entities: SeenEntity[] = [];
    let at = 0;
    while (bytes.length - at >= 2) {
      const end = at + this.#lengthAt(bytes, at);
      if (end > bytes.length || end <= at) break;
      entities.push(this.#entity(bytes.subarray(at, end)));
      at = end;
    }
    this.#rest = bytes.subarray(at);
    return entities;
  }

  /** In the raw dialect the CRC is not counted in any length. */
  #lengthAt(bytes: Buffer, at: number): number {
    const start = at + this.#prefix;
    if (
      bytes.length >= start + FPDU_HEADER_LENGTH + CRC_USED.length &&
      CONNECT.equals(bytes.subarray(start + 2, start + 4))
    )
      this.#framing.crc = CRC_USED.equals(bytes.subarray(start + FPDU_HEADER_LENGTH, start + FPDU_HEADER_LENGTH + 3));
    const trailer = this.#prefix === 0 && this.#framing.crc ? CRC_LENGTH : 0;
    return this.#prefix + bytes.readUInt16BE(at) + trailer;
  }

  #entity(bytes: Buffer): SeenEntity {
    const fpdus: SeenFpdu[] = [];
    let at = this.#prefix;
    while (bytes.length - at >= FPDU_HEADER_LENGTH) {
      const fpdu = seenAt(bytes, at);
      fpdus.push(fpdu);
      at += fpdu.bytes.length + (this.#framing.crc ? CRC_LENGTH : 0);
    }
    return { bytes, fpdus };
  }
}

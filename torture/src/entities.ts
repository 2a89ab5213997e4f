/** The stream of one direction cut into entities, so that the proxy knows what it passes on. */
import { describeFpdu, FPDU_HEADER_LENGTH, fpduByCodes, isDataFpdu, type Dialect } from '@pesit-node/protocol';

export interface SeenFpdu {
  /** `unknown` for codes that PeSIT E does not have. */
  readonly name: string;
  /** Of an FPDU with data: its article bytes as PI 27 counts them, without the prefixes of a multi-article DTF; else 0. */
  readonly dataBytes: number;
  /** The FPDU, without what precedes it in its entity. */
  readonly bytes: Buffer;
}

export interface SeenEntity {
  /** With the two-byte length of the wire, where the dialect has one. */
  readonly bytes: Buffer;
  readonly fpdus: readonly SeenFpdu[];
}

function dataBytesOf(name: string, source: number, body: number): number {
  // ID.SRC > 1 counts the articles, each with its length before it (pesit-e.md §2, §6).
  return name === 'DTF' && source > 1 ? body - 2 * source : body;
}

function seenAt(bytes: Buffer, at: number): SeenFpdu {
  const length = Math.max(FPDU_HEADER_LENGTH, bytes.readUInt16BE(at));
  const fpdu = bytes.subarray(at, at + length);
  const name = fpduByCodes(fpdu[2] as number, fpdu[3] as number);
  if (name === undefined) return { name: 'unknown', dataBytes: 0, bytes: fpdu };
  const dataBytes = isDataFpdu(name) ? dataBytesOf(name, fpdu[5] as number, fpdu.length - FPDU_HEADER_LENGTH) : 0;
  return { name, dataBytes, bytes: fpdu };
}

/** An FPDU in a line, data with its size alone. */
export const lineOf = (fpdu: SeenFpdu): string => describeFpdu(fpdu.bytes);

export class EntityReader {
  readonly #prefix: number;
  #rest: Buffer = Buffer.alloc(0);

  constructor(dialect: Dialect) {
    this.#prefix = dialect === 'raw' ? 0 : 2;
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
      const end = at + this.#prefix + bytes.readUInt16BE(at);
      if (end > bytes.length || end <= at) break;
      entities.push(this.#entity(bytes.subarray(at, end)));
      at = end;
    }
    this.#rest = bytes.subarray(at);
    return entities;
  }

  #entity(bytes: Buffer): SeenEntity {
    const fpdus: SeenFpdu[] = [];
    let at = this.#prefix;
    // Fewer bytes than a header are a CRC.
    while (bytes.length - at >= FPDU_HEADER_LENGTH) {
      const fpdu = seenAt(bytes, at);
      fpdus.push(fpdu);
      at += fpdu.bytes.length;
    }
    return { bytes, fpdus };
  }
}

import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';

import { PASSWORD } from './node.js';

/** Bytes of an FPDU, written by hand: header and parameters (pesit-e.md §2). */
export const fpdu = (codes: readonly [phase: number, type: number], ids: readonly [number, number], body: Buffer) => {
  const header = Buffer.from([0, 0, ...codes, ...ids]);
  header.writeUInt16BE(6 + body.length);
  return Buffer.concat([header, body]);
};

/** One parameter. */
export const pi = (code: number, value: string | readonly number[] | Buffer): Buffer => {
  const bytes = typeof value === 'string' ? Buffer.from(value, 'latin1') : Buffer.from(value);
  const length = bytes.length < 255 ? [bytes.length] : [255, bytes.length >> 8, bytes.length & 255];
  return Buffer.concat([Buffer.from([code, ...length]), bytes]);
};

/** The entity of the length-prefixed dialect. */
export const entity = (...fpdus: readonly Buffer[]): Buffer => {
  const all = Buffer.concat(fpdus);
  const length = Buffer.alloc(2);
  length.writeUInt16BE(all.length);
  return Buffer.concat([length, all]);
};

const SUCCESS = pi(2, [0, 0, 0]);

interface Step {
  readonly name: string;
  /** @param y the server's identifier */
  readonly bytes: (y: number) => Buffer;
  /** Whether the server answers. */
  readonly answered: boolean;
}

const step = (name: string, bytes: (y: number) => Buffer, answered = true): Step => ({ name, bytes, answered });

export interface CreateOptions {
  readonly fileName?: string;
  readonly label?: string;
  /** PI 13; default 9. */
  readonly transferId?: number;
  /** PI 15 = 1. */
  readonly restarted?: boolean;
  /** PI 51. */
  readonly creationDate?: string;
}

export const CONNECT = step('CONNECT', () =>
  fpdu(
    [0x40, 0x20],
    [0, 1],
    Buffer.concat([pi(3, 'ACME'), pi(4, 'NODE1'), pi(5, PASSWORD), pi(6, [2]), pi(7, [0, 64, 4]), pi(22, [2])]),
  ),
);

const three = (value: number): Buffer => Buffer.from([value >> 16, (value >> 8) & 255, value & 255]);

export const create = ({
  fileName = 'IN',
  label,
  transferId = 9,
  restarted = false,
  creationDate,
}: CreateOptions = {}): Step =>
  step('CREATE', (y) =>
    fpdu(
      [0xc0, 0x11],
      [y, 0],
      Buffer.concat([
        pi(9, Buffer.concat([pi(11, [0]), pi(12, fileName)])),
        pi(13, three(transferId)),
        ...(restarted ? [pi(15, [1])] : []),
        pi(17, [0]),
        pi(25, [0x10, 0]),
        pi(30, Buffer.concat([pi(31, [0x80]), pi(32, [4, 0]), ...(label === undefined ? [] : [pi(37, label)])])),
        pi(40, Buffer.concat([pi(41, [0]), pi(42, [1])])),
        ...(creationDate === undefined ? [] : [pi(50, pi(51, creationDate))]),
      ]),
    ),
  );

export const select = (fileName: string, transferId = 0, restarted = false): Step =>
  step('SELECT', (y) =>
    fpdu(
      [0xc0, 0x12],
      [y, 0],
      Buffer.concat([
        pi(9, Buffer.concat([pi(11, [0]), pi(12, fileName)])),
        pi(13, three(transferId)),
        pi(14, [0xe0]),
        ...(restarted ? [pi(15, [1])] : []),
        pi(17, [0]),
        pi(25, [0x10, 0]),
      ]),
    ),
  );

export const ORF = step('ORF', (y) => fpdu([0xc0, 0x14], [y, 0], Buffer.alloc(0)));
export const WRITE = step('WRITE', (y) => fpdu([0xc0, 0x02], [y, 0], Buffer.alloc(0)));
export const read = (point: number): Step => step('READ', (y) => fpdu([0xc0, 0x01], [y, 0], pi(18, three(point))));
export const READ = step('READ', (y) => fpdu([0xc0, 0x01], [y, 0], pi(18, [0])));
export const DATA = 'a thousand bytes or fewer';
export const DTF = step('DTF', (y) => fpdu([0, 0], [y, 0], Buffer.from(DATA)), false);
export const syn = (number: number): Step => step(`SYN ${number}`, (y) => fpdu([0xc0, 0x03], [y, 0], pi(20, [number])));
export const DTF_END = step('DTF.END', (y) => fpdu([0xc0, 0x04], [y, 0], SUCCESS), false);
export const transEnd = (dataBytes: number, articles: number): Step =>
  step('TRANS.END', (y) =>
    fpdu([0xc0, 0x08], [y, 0], Buffer.concat([pi(27, three(dataBytes)), pi(28, three(articles))])),
  );
/** The requester cancels: 2-216, end code 16. */
export const IDT_CANCELLED = step('IDT', (y) =>
  fpdu([0xc0, 0x06], [y, 0], Buffer.concat([pi(2, [2, 0, 216]), pi(19, [16])])),
);
export const ACK_IDT = step('ACK(IDT)', (y) => fpdu([0xc0, 0x3a], [y, 0], Buffer.alloc(0)), false);
export const CRF = step('CRF', (y) => fpdu([0xc0, 0x15], [y, 0], SUCCESS));
export const DESELECT = step('DESELECT', (y) => fpdu([0xc0, 0x13], [y, 0], SUCCESS));
export const RELEASE = step('RELEASE', (y) => fpdu([0x40, 0x23], [y, 1], SUCCESS));

/** A whole session that writes one file. */
export const WRITING: readonly Step[] = [
  CONNECT,
  create(),
  ORF,
  WRITE,
  DTF,
  syn(1),
  DTF,
  DTF_END,
  transEnd(2 * DATA.length, 2),
  CRF,
  DESELECT,
  RELEASE,
];

/** A partner that speaks by hand. */
export class RawPeer {
  readonly socket: Socket;
  #received: Buffer = Buffer.alloc(0);
  #y = 0;
  #over = false;
  #wake: (() => void) | undefined;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (bytes: Buffer) => {
      this.#received = Buffer.concat([this.#received, bytes]);
      this.#wake?.();
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.#over = true;
      this.#wake?.();
    });
  }

  static async open(port: number): Promise<RawPeer> {
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    return new RawPeer(socket);
  }

  write(bytes: Buffer): void {
    this.socket.write(bytes);
  }

  /** Sends a step in an entity of its own; with its answer, when there is one. */
  async send({ bytes, answered, name }: Step): Promise<Buffer | undefined> {
    this.write(entity(bytes(this.#y)));
    if (!answered) return undefined;
    const answer = await this.next();
    if (name === 'CONNECT') this.#y = answer?.[5] ?? 0;
    return answer;
  }

  bytesOf({ bytes }: Step): Buffer {
    return entity(bytes(this.#y));
  }

  /** The next FPDU of the server; undefined when the connection is over. */
  async next(): Promise<Buffer | undefined> {
    for (;;) {
      if (this.#received.length >= 2) {
        const length = this.#received.readUInt16BE(0);
        if (this.#received.length >= 2 + length) {
          const answer = this.#received.subarray(2, 2 + length);
          this.#received = this.#received.subarray(2 + length);
          return answer;
        }
      }
      if (this.#over) return undefined;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  /** Resolves when the server has closed. */
  async closed(): Promise<void> {
    while (!this.#over) await new Promise<void>((resolve) => (this.#wake = resolve));
  }
}

/** PI 2 of an answer, `3-317`; undefined when it has none. */
export const diagnosticOf = (answer: Buffer | undefined): string | undefined => {
  const at = answer?.indexOf(Buffer.from([2, 3]), 6) ?? -1;
  if (answer === undefined || at < 0) return undefined;
  return `${answer.readUInt8(at + 2)}-${String(answer.readUInt16BE(at + 3)).padStart(3, '0')}`;
};

/** PI 18 of an ACK(WRITE), or PI 20 of an ACK(SYN). */
export const pointOf = (answer: Buffer | undefined): number | undefined => {
  for (let at = 6; answer !== undefined && at + 1 < answer.length; at += 2 + answer.readUInt8(at + 1)) {
    const length = answer.readUInt8(at + 1);
    if ([18, 20].includes(answer.readUInt8(at))) return answer.readUIntBE(at + 2, length);
  }
  return undefined;
};

/** Phase and type of an answer, `4025` for ABORT. */
export const codesOf = (answer: Buffer | undefined): string | undefined => answer?.toString('hex', 2, 4);

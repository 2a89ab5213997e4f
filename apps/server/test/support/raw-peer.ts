import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';

import { entity } from './steps.js';
import type { Step } from './steps.js';

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

  /** A partner that has said `steps`. */
  static async open(port: number, ...steps: readonly Step[]): Promise<RawPeer> {
    const peer = await RawPeer.from('127.0.0.1', port);
    await peer.say(...steps);
    return peer;
  }

  /** A connection from another address of this machine. */
  static async from(localAddress: string, port: number): Promise<RawPeer> {
    const socket = connect({ port, host: '127.0.0.1', localAddress });
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

  /** One step after the other, with their answers. @returns that of the last */
  async say(...steps: readonly Step[]): Promise<Buffer | undefined> {
    let answer: Buffer | undefined;
    for (const one of steps) answer = await this.send(one);
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

const NAMES: Readonly<Record<string, string>> = {
  '4021': 'ACONNECT',
  '4022': 'RCONNECT',
  '4024': 'RELCONF',
  '4025': 'ABORT',
  c006: 'IDT',
  c030: 'ACK(CREATE)',
  c031: 'ACK(SELECT)',
  c032: 'ACK(DESELECT)',
  c033: 'ACK(ORF)',
  c034: 'ACK(CRF)',
  c035: 'ACK(READ)',
  c036: 'ACK(WRITE)',
  c037: 'ACK(TRANS.END)',
  c038: 'ACK(SYN)',
  c03b: 'ACK(MSG)',
};

/** An answer by its name and its diagnostic, `ACK(CREATE) 2-226`; `nothing` when the connection is over. */
export const said = (answer: Buffer | undefined): string => {
  const codes = codesOf(answer);
  if (codes === undefined) return 'nothing';
  const diagnostic = diagnosticOf(answer);
  return `${NAMES[codes] ?? codes}${diagnostic === undefined ? '' : ` ${diagnostic}`}`;
};

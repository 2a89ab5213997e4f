/**
 * PeSIT by hand: what partners that behave, and partners that do not, put on the wire. Codes and layouts are those of
 * pesit-e.md §1 and §2, by the builder of the protocol tests; the encoder under test is never used for them.
 */
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import type { Dialect } from '@pesit-node/protocol';
import { fpdu, hex, nameByCodes, entity as prefixedEntity } from '@pesit-node/protocol/testing';
import type { Dissected, Name } from '@pesit-node/protocol/testing';
export { diagnosticOf, fpdu, hex, valueOf } from '@pesit-node/protocol/testing';
export type { Name } from '@pesit-node/protocol/testing';

/** An FPDU as it came, read by hand. */
export type Seen = Dissected;

const ascii = (text: string): string => Buffer.from(text, 'latin1').toString('hex');

/** Success, as PI 2. */
export const OK = '0203 000000';
/** PI 2, e.g. `diagnostic('2-205')`. */
export const diagnostic = (code: string): string => {
  const [type, reason] = code.split('-').map(Number) as [number, number];
  return `0203 ${Buffer.from([type, reason >> 8, reason & 0xff]).toString('hex')}`;
};
/** PI 29. */
export const complement = (text: string): string => `1d ${text.length.toString(16).padStart(2, '0')} ${ascii(text)}`;

/** Bodies of a session that writes and of one that reads; the requester is `PART`, the server `SERV`. */
export const BODIES = {
  CONNECT: `0304 ${ascii('PART')} 0404 ${ascii('SERV')} 060102 0703 0001 02 160102`,
  'CONNECT without points': `0304 ${ascii('PART')} 0404 ${ascii('SERV')} 060102 160102`,
  ACONNECT: '060102 0703 0001 02',
  CREATE: `0909 0b0100 0c04 ${ascii('FILE')} 0d0105 110100 19021000 1e07 1f0180 20020400 2803 2a0101`,
  'ACK(CREATE)': `${OK} 19021000`,
  SELECT: `0909 0b0100 0c04 ${ascii('FILE')} 0d0100 0e01e0 110100 19021000`,
  'ACK(SELECT)': `${OK} 0909 0b0100 0c04 ${ascii('FILE')} 0d0105 19021000 1e07 1f0180 20020400 2803 2a0101`,
  'ACK(WRITE)': `${OK} 120100`,
  READ: '120100',
} as const;

/** One FPDU as an entity of the dialect. */
export const entity = (dialect: Dialect, bytes: Buffer): Buffer => (dialect === 'raw' ? bytes : prefixedEntity(bytes));

/** One end of a connection, moved by the test alone. */
export class RawPeer {
  readonly socket: Socket;
  readonly dialect: Dialect;
  /** Identifier that this side chose, and that of the other side once it is known. */
  readonly id: number;
  otherId = 0;
  /** Resolves when the connection is over, however it ended. */
  readonly closed: Promise<void>;
  /** Everything received. */
  received = Buffer.alloc(0);
  #read = 0;
  /** Bytes left of the entity that is being read; length-prefixed only. */
  #entityLeft = 0;
  #over = false;
  #wake: (() => void)[] = [];

  constructor(socket: Socket, dialect: Dialect, id = 7) {
    this.socket = socket;
    this.dialect = dialect;
    this.id = id;
    socket.setNoDelay(true);
    socket.on('data', (bytes: Buffer) => {
      this.received = Buffer.concat([this.received, bytes]);
      this.#notify();
    });
    socket.on('error', () => undefined);
    socket.on('end', () => {
      this.#over = true;
      this.#notify();
    });
    this.closed = new Promise((resolve) => {
      socket.on('close', () => {
        this.#over = true;
        this.#notify();
        resolve();
      });
    });
  }

  static async connect(
    port: number,
    dialect: Dialect = 'length-prefixed',
    localAddress = '127.0.0.1',
  ): Promise<RawPeer> {
    const socket = connect({ port, host: '127.0.0.1', localAddress });
    const peer = new RawPeer(socket, dialect);
    await once(socket, 'connect');
    return peer;
  }

  #notify(): void {
    for (const wake of this.#wake.splice(0)) wake();
  }

  write(bytes: Buffer | string): void {
    this.socket.write(typeof bytes === 'string' ? hex(bytes) : bytes);
  }

  /** The entity of one FPDU, addressed as pesit-e.md §2 says. */
  entity(name: Name, body: string | Buffer = '', source?: number): Buffer {
    const destination = name === 'CONNECT' ? 0 : this.otherId;
    const named = ['CONNECT', 'ACONNECT', 'RELEASE', 'RELCONF', 'ABORT'].includes(name);
    return entity(this.dialect, fpdu(name, destination, source ?? (named ? this.id : 0), body));
  }

  send(name: Name, body: string | Buffer = '', source?: number): void {
    this.write(this.entity(name, body, source));
  }

  /** The next `count` bytes; fewer when the connection ends before. */
  async bytes(count: number): Promise<Buffer> {
    while (this.received.length - this.#read < count && !this.#over) {
      await new Promise<void>((resolve) => this.#wake.push(resolve));
    }
    const bytes = this.received.subarray(this.#read, this.#read + count);
    this.#read += bytes.length;
    return bytes;
  }

  /** The next FPDU; undefined when the connection ended before. */
  async next(): Promise<Seen | undefined> {
    if (this.dialect === 'length-prefixed' && this.#entityLeft === 0) {
      const prefix = await this.bytes(2);
      if (prefix.length < 2) return undefined;
      this.#entityLeft = prefix.readUInt16BE(0);
    }
    const header = await this.bytes(6);
    if (header.length < 6) return undefined;
    const length = header.readUInt16BE(0) - 6;
    const body = await this.bytes(length);
    if (body.length < length) return undefined;
    if (this.dialect === 'length-prefixed') this.#entityLeft -= 6 + length;
    const name = nameByCodes(header.toString('hex', 2, 4));
    const seen = { name, destination: header[4]!, source: header[5]!, body };
    if (name === 'CONNECT' || name === 'ACONNECT') this.otherId = seen.source;
    return seen;
  }

  /** The next FPDU, which has to be `name`. */
  async expect(name: Name): Promise<Seen> {
    const seen = await this.next();
    if (seen?.name !== name) {
      const got = seen === undefined ? 'the end of the connection' : `${seen.name} ${seen.body.toString('hex')}`;
      throw new Error(`expected ${name}, got ${got}`);
    }
    return seen;
  }

  async exchange(name: Name, body: string | Buffer, answer: Name): Promise<Seen> {
    this.send(name, body);
    return this.expect(answer);
  }

  /** CONNECT … ACONNECT. */
  async open(body: string = BODIES.CONNECT): Promise<Seen> {
    return this.exchange('CONNECT', body, 'ACONNECT');
  }

  /** CREATE … ACK(WRITE). */
  async openToWrite(): Promise<void> {
    await this.exchange('CREATE', BODIES.CREATE, 'ACK(CREATE)');
    await this.exchange('ORF', '', 'ACK(ORF)');
    await this.exchange('WRITE', '', 'ACK(WRITE)');
  }

  /** SELECT … ACK(READ). */
  async openToRead(): Promise<void> {
    await this.exchange('SELECT', BODIES.SELECT, 'ACK(SELECT)');
    await this.exchange('ORF', '', 'ACK(ORF)');
    await this.exchange('READ', BODIES.READ, 'ACK(READ)');
  }

  /** CRF, DESELECT. */
  async closeFile(): Promise<void> {
    await this.exchange('CRF', OK, 'ACK(CRF)');
    await this.exchange('DESELECT', OK, 'ACK(DESELECT)');
  }

  async release(): Promise<void> {
    await this.exchange('RELEASE', OK, 'RELCONF');
    this.socket.end();
    await this.closed;
  }

  /** Without a FIN: the other side sees a reset. */
  reset(): void {
    this.socket.resetAndDestroy();
  }
}

/** A server of the test: `serve` is called for each connection with its raw end. */
export class RawServer {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  /** What `serve` rejected with. */
  readonly errors: unknown[] = [];
  readonly served: Promise<void>[] = [];

  private constructor(serve: (peer: RawPeer) => Promise<void>, dialect: Dialect) {
    this.#server = createServer((socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
      this.served.push(serve(new RawPeer(socket, dialect, 9)).catch((error: unknown) => void this.errors.push(error)));
    });
  }

  static async start(
    serve: (peer: RawPeer) => Promise<void>,
    dialect: Dialect = 'length-prefixed',
  ): Promise<RawServer> {
    const server = new RawServer(serve, dialect);
    server.#server.listen(0, '127.0.0.1');
    await once(server.#server, 'listening');
    return server;
  }

  get port(): number {
    return (this.#server.address() as { port: number }).port;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }
}

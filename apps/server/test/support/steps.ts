/** What a partner says, byte by byte as pesit-e.md §2 has it: nothing of the encoder under test. */
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

export interface Step {
  readonly name: string;
  /** @param y the server's identifier */
  readonly bytes: (y: number) => Buffer;
  /** Whether the server answers. */
  readonly answered: boolean;
}

/** A step that `RawPeer` can say. */
export const step = (name: string, bytes: (y: number) => Buffer, answered = true): Step => ({ name, bytes, answered });

const three = (value: number): Buffer => Buffer.from([value >> 16, (value >> 8) & 255, value & 255]);
const four = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};
const two = (value: number): Buffer => Buffer.from([value >> 8, value & 255]);
const text = (code: number, value: string | undefined): Buffer =>
  value === undefined ? Buffer.alloc(0) : pi(code, value);

export interface ConnectOptions {
  /** PI 3, 4, 5, 6 and 22. */
  readonly requester?: string;
  readonly server?: string;
  readonly password?: string;
  readonly version?: number;
  readonly access?: 0 | 1 | 2 | null;
  /** What follows PI 22. */
  readonly more?: Buffer;
}

export const connectAs = ({
  requester = 'ACME',
  server = 'NODE1',
  password = PASSWORD,
  version = 2,
  access = 2,
  more = Buffer.alloc(0),
}: ConnectOptions = {}): Step =>
  step('CONNECT', () =>
    fpdu(
      [0x40, 0x20],
      [0, 1],
      Buffer.concat([
        ...[pi(3, requester), pi(4, server), pi(5, password), pi(6, [version]), pi(7, [0, 64, 4])],
        access === null ? Buffer.alloc(0) : pi(22, [access]),
        more,
      ]),
    ),
  );

export const CONNECT = connectAs();

/** PI 61, 62 and 99. */
interface Extras {
  readonly originalSender?: string;
  readonly finalReceiver?: string;
  readonly freeMessage?: Buffer;
}

const extras = ({ originalSender, finalReceiver, freeMessage }: Extras): Buffer =>
  Buffer.concat([
    ...[text(61, originalSender), text(62, finalReceiver)],
    ...(freeMessage === undefined ? [] : [pi(99, freeMessage)]),
  ]);

export interface CreateOptions extends Extras {
  readonly fileName?: string;
  /** PI 3 of PGI 9: an application, not the partner. */
  readonly application?: string;
  /** PI 11; default 0, a file. */
  readonly fileType?: number;
  readonly label?: string;
  /** PI 31 and 32; default variable, 1024. */
  readonly recordFormat?: number;
  readonly recordLength?: number;
  /** PI 42; default 1. */
  readonly reservationKb?: number;
  /** PI 13; default 9. */
  readonly transferId?: number;
  /** PI 15 = 1. */
  readonly restarted?: boolean;
  /** PI 51. */
  readonly creationDate?: string;
}

export const create = ({
  fileName = 'IN',
  application,
  fileType = 0,
  label,
  recordFormat = 0x80,
  recordLength = 1024,
  reservationKb = 1,
  transferId = 9,
  restarted = false,
  creationDate,
  ...more
}: CreateOptions = {}): Step =>
  step('CREATE', (y) =>
    fpdu(
      [0xc0, 0x11],
      [y, 0],
      Buffer.concat([
        pi(9, Buffer.concat([text(3, application), pi(11, two(fileType)), pi(12, fileName)])),
        pi(13, three(transferId)),
        ...(restarted ? [pi(15, [1])] : []),
        pi(17, [0]),
        pi(25, [0x10, 0]),
        pi(30, Buffer.concat([pi(31, [recordFormat]), pi(32, two(recordLength)), text(37, label)])),
        pi(40, Buffer.concat([pi(41, [0]), pi(42, four(reservationKb))])),
        ...(creationDate === undefined ? [] : [pi(50, pi(51, creationDate))]),
        extras(more),
      ]),
    ),
  );

export interface SelectOptions extends Extras {
  /** PI 13; default 0, a new one. */
  readonly transferId?: number;
  /** PI 14; default all. */
  readonly attributes?: number;
  readonly fileType?: number;
}

export const select = (
  fileName: string,
  { transferId = 0, attributes = 0xe0, fileType = 0, ...more }: SelectOptions = {},
): Step =>
  step('SELECT', (y) =>
    fpdu(
      [0xc0, 0x12],
      [y, 0],
      Buffer.concat([
        pi(9, Buffer.concat([pi(11, two(fileType)), pi(12, fileName)])),
        pi(13, three(transferId)),
        pi(14, [attributes]),
        pi(17, [0]),
        pi(25, [0x10, 0]),
        extras(more),
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
/** All that was sent, and said so: DTF.END, TRANS.END. */
export const endOf = (articles: number): readonly Step[] => [DTF_END, transEnd(articles * DATA.length, articles)];
interface MessageOptions {
  /** PI 11; default FFFF, a message. */
  readonly fileType?: number;
  readonly transferId?: number;
}

const messageHead = ({ fileType = 0xffff, transferId = 1 }: MessageOptions = {}): Buffer =>
  Buffer.concat([pi(9, Buffer.concat([pi(11, two(fileType)), pi(12, 'IN')])), pi(13, three(transferId))]);
export const message = (content: Buffer, options?: MessageOptions): Step =>
  step('MSG', (y) => fpdu([0xc0, 0x16], [y, 0], Buffer.concat([messageHead(options), pi(91, content)])));
/** A message in two FPDUs: MSGDM, MSGFM. */
export const segmentedMessage = (first: Buffer, last: Buffer): readonly Step[] => [
  step('MSGDM', (y) => fpdu([0xc0, 0x17], [y, 0], Buffer.concat([messageHead(), pi(91, first)])), false),
  step('MSGFM', (y) => fpdu([0xc0, 0x19], [y, 0], pi(91, last))),
];
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

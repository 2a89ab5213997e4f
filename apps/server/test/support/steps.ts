/** What a partner says, byte by byte as pesit-e.md §2 has it: nothing of the encoder under test. */
import { fpdu, num, pi, text } from '@pesit-node/protocol/testing';
import { PASSWORD } from './node.js';

const NONE = Buffer.alloc(0);
const SUCCESS = pi(2, '000000');

export interface Step {
  readonly name: string;
  /** @param y the server's identifier */
  readonly bytes: (y: number) => Buffer;
  /** Whether the server answers. */
  readonly answered: boolean;
}

/** A step that `RawPeer` can say. */
export const step = (name: string, bytes: (y: number) => Buffer, answered = true): Step => ({ name, bytes, answered });

/** A parameter with a text, when there is one. */
const optional = (code: number, value: string | undefined): Buffer =>
  value === undefined ? NONE : pi(code, text(value));

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
  more = NONE,
}: ConnectOptions = {}): Step =>
  step('CONNECT', () =>
    fpdu(
      'CONNECT',
      0,
      1,

      ...[pi(3, text(requester)), pi(4, text(server)), pi(5, text(password)), pi(6, num(version, 1)), pi(7, '004004')],
      access === null ? NONE : pi(22, num(access, 1)),
      more,
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
    ...[optional(61, originalSender), optional(62, finalReceiver)],
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
      'CREATE',
      y,
      0,

      pi(9, optional(3, application), pi(11, num(fileType, 2)), pi(12, text(fileName))),
      pi(13, num(transferId, 3)),
      ...(restarted ? [pi(15, '01')] : []),
      pi(17, '00'),
      pi(25, '1000'),
      pi(30, pi(31, num(recordFormat, 1)), pi(32, num(recordLength, 2)), optional(37, label)),
      pi(40, pi(41, '00'), pi(42, num(reservationKb, 4))),
      ...(creationDate === undefined ? [] : [pi(50, pi(51, text(creationDate)))]),
      extras(more),
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
      'SELECT',
      y,
      0,

      pi(9, pi(11, num(fileType, 2)), pi(12, text(fileName))),
      pi(13, num(transferId, 3)),
      pi(14, num(attributes, 1)),
      pi(17, '00'),
      pi(25, '1000'),
      extras(more),
    ),
  );

export const ORF = step('ORF', (y) => fpdu('ORF', y, 0));
export const WRITE = step('WRITE', (y) => fpdu('WRITE', y, 0));
export const read = (point: number): Step => step('READ', (y) => fpdu('READ', y, 0, pi(18, num(point, 3))));
export const READ = step('READ', (y) => fpdu('READ', y, 0, pi(18, '00')));
export const DATA = 'a thousand bytes or fewer';
export const DTF = step('DTF', (y) => fpdu('DTF', y, 0, Buffer.from(DATA)), false);
export const syn = (number: number): Step => step(`SYN ${number}`, (y) => fpdu('SYN', y, 0, pi(20, num(number, 1))));
export const DTF_END = step('DTF.END', (y) => fpdu('DTF.END', y, 0, SUCCESS), false);
export const transEnd = (dataBytes: number, articles: number): Step =>
  step('TRANS.END', (y) => fpdu('TRANS.END', y, 0, pi(27, num(dataBytes, 3)), pi(28, num(articles, 3))));
/** All that was sent, and said so: DTF.END, TRANS.END. */
export const endOf = (articles: number): readonly Step[] => [DTF_END, transEnd(articles * DATA.length, articles)];
interface MessageOptions {
  /** PI 11; default FFFF, a message. */
  readonly fileType?: number;
  readonly transferId?: number;
}

const messageHead = ({ fileType = 0xffff, transferId = 1 }: MessageOptions = {}): Buffer =>
  Buffer.concat([pi(9, pi(11, num(fileType, 2)), pi(12, text('IN'))), pi(13, num(transferId, 3))]);
export const message = (content: Buffer, options?: MessageOptions): Step =>
  step('MSG', (y) => fpdu('MSG', y, 0, messageHead(options), pi(91, content)));
/** A message in two FPDUs: MSGDM, MSGFM. */
export const segmentedMessage = (first: Buffer, last: Buffer): readonly Step[] => [
  step('MSGDM', (y) => fpdu('MSGDM', y, 0, messageHead(), pi(91, first)), false),
  step('MSGFM', (y) => fpdu('MSGFM', y, 0, pi(91, last))),
];
/** The requester cancels: 2-216, end code 16. */
export const IDT_CANCELLED = step('IDT', (y) => fpdu('IDT', y, 0, pi(2, '0200d8'), pi(19, '10')));
export const ACK_IDT = step('ACK(IDT)', (y) => fpdu('ACK(IDT)', y, 0), false);
export const CRF = step('CRF', (y) => fpdu('CRF', y, 0, SUCCESS));
export const DESELECT = step('DESELECT', (y) => fpdu('DESELECT', y, 0, SUCCESS));
export const RELEASE = step('RELEASE', (y) => fpdu('RELEASE', y, 1, SUCCESS));

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

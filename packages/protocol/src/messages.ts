/**
 * Messages (§4.4.31, pesit-e.md §8): a text beside the files, in one MSG, or cut into MSGDM, MSGMM… and MSGFM when it exceeds
 * an entity. Nothing is negotiated for them, so the sender keeps to an entity that every product takes.
 */
import { CRC_LENGTH } from './crc.js';
import { encodeFpdu } from './encoding.js';
import { PesitError } from './errors.js';
import { FPDU_HEADER_LENGTH } from './fpdus.js';
import type { FpduName } from './fpdus.js';
import { MIN_ENTITY_SIZE } from './negotiation.js';
import { PARAMETERS } from './parameters.js';
import type { Parameters } from './parameters.js';
import type { FileIdentifier } from './requests.js';

/** PI 11 of a message, and of a reply to one; any other value: the acknowledgement of a file of that type (annex B). */
export const FILE_TYPE_MESSAGE = 0xffff;
export const FILE_TYPE_REPLY = 0xfffe;
/** PI 14 of a message that wants PI 91 in its ACK(MSG). */
export const REPLY_EXPECTED = 1;
/** Longest text, sent or taken, in bytes. */
export const MAX_MESSAGE_LENGTH = 65_536;
/** Bytes after which a partner whose message has no end is no longer listened to. */
const MAX_SEGMENTED_LENGTH = 16 * MAX_MESSAGE_LENGTH;

export interface MessageRequest {
  /** PGI 9; PI 11 is `FILE_TYPE_MESSAGE`, `FILE_TYPE_REPLY`, or the type of the file that is acknowledged. */
  readonly fileIdentifier: FileIdentifier;
  /** PI 13; of the acknowledged file when there is one. */
  readonly transferId: number;
  /** PI 14 = 1: PI 91 is wanted in the answer. */
  readonly replyExpected?: boolean;
  /** PI 16 of the text. */
  readonly dataCode?: number | undefined;
  /** PI 51, `YYMMDDhhmmss`; of the acknowledged file. */
  readonly creationDate?: string | undefined;
  /** PI 61 and PI 62. */
  readonly originalSender?: string | undefined;
  readonly finalReceiver?: string | undefined;
  /** PI 91: the text, opaque, at most `MAX_MESSAGE_LENGTH` bytes. */
  readonly message?: Buffer | undefined;
  /** Longest entity to send, in bytes, at least 64. Default 4,096. */
  readonly maxEntitySize?: number;
}

export interface MessageAnswer {
  /** PI 91, at most 4,096 bytes; only when PI 14 of the message is `REPLY_EXPECTED`. */
  readonly reply?: Buffer | undefined;
  /** PI 16 of the reply. */
  readonly dataCode?: number | undefined;
}

interface MessageFpdu {
  readonly name: FpduName;
  readonly parameters: Parameters;
}

/** Code and LI of a PI 91 of more than 254 bytes, and of a shorter one. */
const LONG_HEAD = 4;
const SHORT_HEAD = 2;
const DEFAULT_ENTITY_SIZE = 4096;

/**
 * The FPDUs of a message, in order. All of them are encoded once before any is returned.
 * @throws PesitError fault `local` when a value does not fit its parameter
 */
export const messageFpdus = (request: MessageRequest, crc: boolean): MessageFpdu[] => {
  const { fileIdentifier: file, message: text = Buffer.alloc(0) } = request;
  if (text.length > MAX_MESSAGE_LENGTH) {
    const [expected, got] = [`at most ${MAX_MESSAGE_LENGTH} bytes`, `${text.length}`];
    throw new PesitError(`message too long: expected ${expected}, got ${got}: send it as a file`, {
      fault: 'local',
      diagnostic: '3-318',
      expected,
      got,
    });
  }
  const head: Parameters = {
    fileIdentifier: {
      ...(file.requester ? { requester: file.requester } : {}),
      ...(file.server ? { server: file.server } : {}),
      fileType: file.fileType,
      fileName: file.fileName,
    },
    transferId: request.transferId,
    ...(request.replyExpected === true ? { attributesWanted: REPLY_EXPECTED } : {}),
    ...(request.dataCode === undefined ? {} : { dataCode: request.dataCode }),
    ...(request.creationDate === undefined ? {} : { historicalAttributes: { creationDate: request.creationDate } }),
    ...(request.originalSender ? { originalSender: request.originalSender } : {}),
    ...(request.finalReceiver ? { finalReceiver: request.finalReceiver } : {}),
  };
  const entity = Math.max(request.maxEntitySize ?? DEFAULT_ENTITY_SIZE, MIN_ENTITY_SIZE) - (crc ? CRC_LENGTH : 0);
  const first = textRoom(entity - encodeFpdu('MSG', 0, 0, head).length);
  if (text.length <= first) return [{ name: 'MSG', parameters: withText(head, text) }];

  const piece = Math.max(1, textRoom(entity - FPDU_HEADER_LENGTH));
  const fpdus: MessageFpdu[] = [{ name: 'MSGDM', parameters: withText(head, text.subarray(0, first)) }];
  for (let at = first; at < text.length; at += piece) {
    const name = at + piece < text.length ? 'MSGMM' : 'MSGFM';
    fpdus.push({ name, parameters: { message: text.subarray(at, at + piece) } });
  }
  return fpdus;
};

/** Bytes of PI 91 that fit into `room`. */
const textRoom = (room: number): number => {
  const short = Math.min(room - SHORT_HEAD, 254);
  return Math.max(0, short, Math.min(room - LONG_HEAD, PARAMETERS.message.max));
};

const withText = (parameters: Parameters, text: Buffer): Parameters =>
  text.length === 0 ? parameters : { ...parameters, message: text };

/** A segmented message while it comes in: the parameters of its MSGDM and the text so far. */
export class MessageAssembly {
  /** Parameters of MSGDM. */
  readonly head: Parameters;
  readonly #pieces: Buffer[] = [];
  #length = 0;

  constructor(first: Parameters) {
    this.head = first;
    this.add(first);
  }

  /** @throws PesitError 3-318 when the message never ends */
  add({ message }: Parameters): void {
    if (message === undefined) return;
    this.#length += message.length;
    if (this.#length > MAX_SEGMENTED_LENGTH) {
      const [expected, got] = [`a message of at most ${MAX_MESSAGE_LENGTH} bytes`, `${this.#length} and no MSGFM`];
      const details = { fault: 'remote', diagnostic: '3-318', expected, got } as const;
      throw new PesitError(`MSGMM: expected ${expected}, got ${got}`, details);
    }
    if (this.#length > MAX_MESSAGE_LENGTH) this.#pieces.length = 0;
    else this.#pieces.push(message);
  }

  /** The parameters with the whole text; undefined when it was too long. */
  end(): Parameters | undefined {
    if (this.#length > MAX_MESSAGE_LENGTH) return undefined;
    return withText(this.head, Buffer.concat(this.#pieces));
  }
}

import { identifier, isReadable, readBytes, RequestFields } from '@pesit-node/service';
import type { KeptOf, RequestField } from '@pesit-node/service';
import { isCreationDate } from '@pesit-node/transfers';
import { z } from 'zod';

import { FILE_NAME_MAX } from './file-name.js';
import { transferSettings } from './settings.js';

/** `send` has the file in its JSON or in the send tree, `upload` behind its query or form. */
type Request = 'send' | 'upload' | 'receive' | 'message';

/** Longest values on the wire, bytes: PI 37, PI 99, PI 91 over all FPDUs of a message. */
const LABEL_MAX = 80;
const FREE_MESSAGE_MAX = 254;
const MESSAGE_MAX = 65_536;

/** Text that travels in a C parameter: 7-bit ASCII; blanks at its end would be lost (pesit-e.md §2). */
const ascii = (max: number) =>
  z
    .string()
    .min(1)
    .max(max)
    .regex(/^[\x20-\x7e]*$/, 'expected printable ASCII characters alone')
    .refine((value) => value.trim() === value, 'a blank at either end is not allowed');

/** A name below a directory of ours; what it leads to is checked when it is resolved. */
const localPath = z
  .string()
  .min(1)
  .max(4096)
  .refine((value) => !value.includes('\0'), 'NUL is not allowed');

/** A name in the received tree: one component, as it will stand there. */
const localName = z
  .string()
  .min(1)
  .refine((value) => Buffer.byteLength(value) <= 200, 'expected at most 200 bytes')
  .refine(
    (value) => !/[/\\:*?"<>|\p{C}\p{Zl}\p{Zp}]/u.test(value) && !value.startsWith('.') && value.trim() === value,
    'expected a plain file name: no directories, none of \\ : * ? " < > |, no control characters, no dot or blank first',
  );

/** Bytes that the protocol does not look into: text, or `base64:` and the bytes. */
const opaque = (max: number) =>
  z
    .string()
    .refine((value) => !value.includes('\0'), 'NUL is not allowed: give such bytes as base64:…')
    .refine(isReadable, 'expected base64 (RFC 4648 §4) after base64:')
    .refine((value) => readBytes(value).length <= max, `expected at most ${max} bytes`);

const serverName = z
  .string()
  .min(1)
  .max(100)
  .regex(/^[^\0]*$/, 'NUL is not allowed');

const creationDate = z
  .string()
  .refine(isCreationDate, 'expected a date and time without a zone, of 1970 to 2069: 2026-11-21T09:30:15');

/** A moment, with its zone (RFC 3339 §5.6). */
const moment = z.iso.datetime({ offset: true, error: 'expected a date and time with a zone: 2026-11-21T09:30:15Z' });

/** 0 urgent, 1 normal, 2 low (pesit-e.md §3, PI 17). */
const priority = z.int().min(0).max(2);

const SENDS = ['send', 'upload'] as const;
const FILES = ['send', 'upload', 'receive'] as const;
const ALL = ['send', 'upload', 'receive', 'message'] as const;

/** The fields of the requests for transfers. One that is `kept` stands in `settings` of the record, for every attempt and replay. */
const FIELDS = {
  serverId: { schema: z.int().min(1).max(2_147_483_647), in: ALL, words: 'Id of a remote server.' },
  server: {
    schema: serverName,
    in: ALL,
    words: 'Name of a remote server.',
    example: { in: ['send', 'receive', 'message'], value: 'bank' },
  },
  partnerId: { schema: identifier(24), in: ALL, words: 'PI 3; default: the clientId of the server.' },
  virtualFile: {
    schema: identifier(FILE_NAME_MAX),
    in: ALL,
    required: ['message'],
    words: 'PI 12.',
    example: { in: ['send', 'receive', 'message'], value: 'INVOICES' },
  },
  remoteFilename: {
    schema: ascii(LABEL_MAX),
    in: FILES,
    words: 'PI 37, and PI 12 without virtualFile.',
    example: { in: ['send'], value: 'invoices-2026-11-23.csv' },
    wordsIn: {
      receive:
        'The file that is wanted, and PI 12 without virtualFile. Beside virtualFile it is compared with the label (PI 37) of ACK(SELECT), for SELECT cannot carry it: when the partner offers another file nothing is read, and the transfer is FAILED with FILE_NOT_FOUND.',
    },
  },
  message: {
    schema: opaque(MESSAGE_MAX),
    in: ['message'],
    required: ['message'],
    kept: true,
    words: `PI 91: text, or \`base64:\` and bytes; at most ${MESSAGE_MAX}.`,
    example: { in: ['message'], value: 'The invoices of 23 November are booked.' },
  },
  expectReply: { schema: z.boolean(), in: ['message'], kept: true },
  fileType: {
    schema: z.int().min(0).max(0xffff),
    in: ['message'],
    kept: true,
    words: 'PI 11; default 65535: a message. 65534: a reply to one. Else: the type of the file that is acknowledged.',
  },
  pesitTransferId: {
    schema: z.int().min(1).max(0xff_ffff),
    in: ['message'],
    kept: true,
    words: 'PI 13, of the file or message that is acknowledged; default: the next of this node.',
  },
  maxEntitySize: { schema: transferSettings.maxEntitySize, in: FILES, kept: true },
  syncPointsEnabled: { schema: z.boolean(), in: FILES, kept: true },
  syncInterval: { schema: transferSettings.syncInterval, in: FILES, kept: true },
  syncWindow: { schema: transferSettings.syncWindow, in: FILES, kept: true },
  text: { schema: transferSettings.text, in: FILES, kept: true },
  compression: { schema: transferSettings.compression, in: FILES, kept: true },
  crc: { schema: transferSettings.crc, in: ALL, kept: true },
  resync: { schema: transferSettings.resync, in: FILES, kept: true },
  ebcdic: { schema: transferSettings.ebcdic, in: FILES, kept: true },
  codePage: { schema: transferSettings.codePage, in: FILES, kept: true },
  freeMessage: {
    schema: opaque(FREE_MESSAGE_MAX),
    in: FILES,
    kept: true,
    words: `PI 99: text, or \`base64:\` and bytes; at most ${FREE_MESSAGE_MAX}.`,
  },
  originalSender: { schema: identifier(24), in: ALL, kept: true, words: 'PI 61.' },
  finalReceiver: { schema: identifier(24), in: ALL, kept: true, words: 'PI 62.' },
  recordLength: { schema: transferSettings.recordLength, in: SENDS, kept: true },
  recordFormat: { schema: transferSettings.recordFormat, in: SENDS, kept: true },
  label: { schema: ascii(LABEL_MAX), in: SENDS, kept: true },
  creationDate: {
    schema: creationDate,
    in: ['send', 'upload', 'message'],
    kept: true,
    words: 'PI 51; default: of a file its modification time.',
  },
  priority: {
    schema: priority,
    in: ALL,
    kept: true,
    words:
      'Which one of its remote server is begun first: 0 urgent, 1 normal (default), 2 low; of equal ones the older. Other remote servers wait no longer for it.',
  },
  pesitPriority: {
    schema: priority,
    in: FILES,
    kept: true,
    words: 'PI 17: 0 urgent, 1, 2; default: `priority` where it is given, else 0.',
  },
  notBefore: { schema: moment, in: ALL, kept: true, words: 'When the first attempt may begin; default: at once.' },
  expiresAt: {
    schema: moment,
    in: ALL,
    kept: true,
    words:
      'From then on no attempt begins: one that waits is FAILED with 2-221. An attempt that has begun is not ended by it. Behind `notBefore`.',
  },
  ordered: {
    schema: z.boolean(),
    in: ALL,
    kept: true,
    words:
      'It does not begin before the ordered ones with the same remote server and PI 12 that were asked for before it have ended well. `transfer.ordered.after-failure` says what becomes of it when one fails.',
  },
  filename: { schema: localPath, in: ['send'], words: 'A file of the send tree; or fileContent.' },
  fileContent: {
    schema: z.string(),
    in: ['send'],
    words: 'The file itself in base64; or filename.',
    example: { in: ['send'], value: 'aW52b2ljZTthbW91bnQKMTsxMC4wMAo=' },
  },
  selectByName: { schema: transferSettings.selectByName, in: ['receive'], kept: true },
  localName: {
    schema: localName,
    in: ['receive'],
    kept: true,
    words: 'Its name in the received tree.',
    example: { in: ['receive'], value: 'invoices.csv' },
  },
  overwrite: { schema: z.boolean(), in: ['receive'], kept: true },
} as const satisfies Readonly<Record<string, RequestField<Request>>>;

export const TRANSFER_REQUEST = new RequestFields(FIELDS);

/** Settings of a request beside the names; absent = as the remote server has it. */
export type TransferSettings = KeptOf<typeof FIELDS>;

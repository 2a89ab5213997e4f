import {
  identifier,
  isReadable,
  pagingFields,
  periodFields,
  readBytes,
  rowId,
  statisticsAnswer,
  timestamp,
} from '@pesit-node/service';
import { isCreationDate } from '@pesit-node/transfers';
import { z } from 'zod';

import { transferSettings } from './settings.js';
import { FILE_NAME_MAX, fitsInPi12, NO_ROOM_FOR_NAME } from './file-name.js';
import type { FileNames } from './file-name.js';

/** Text that travels in a C parameter: 7-bit ASCII; blanks at its end would be lost (pesit-e.md §2). */
const ascii = (max: number) =>
  z
    .string()
    .min(1, 'expected 1 or more characters, got none')
    .max(max, `expected at most ${max} characters`)
    .regex(/^[\x20-\x7e]*$/, 'expected printable ASCII characters alone')
    .refine((value) => value.trim() === value, 'a blank at either end is not allowed');

/** Longest values on the wire: PI 37, PI 99. */
const LABEL_MAX = 80;
const FREE_MESSAGE_MAX = 254;

/** A name below a directory of ours; what it leads to is checked when it is resolved. */
const localPath = z
  .string()
  .min(1, 'expected 1 or more characters, got none')
  .max(4096, 'expected at most 4096 characters')
  .refine((value) => !value.includes('\0'), 'NUL is not allowed');

/** A name in the received tree: one component, as it will stand there. */
const localName = z
  .string()
  .min(1, 'expected 1 or more characters, got none')
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

const serverFields = {
  serverId: z.int().min(1).max(2_147_483_647).optional().meta({ description: 'Id of a remote server.' }),
  server: z
    .string()
    .min(1)
    .max(100)
    .regex(/^[^\0]*$/, 'NUL is not allowed')
    .optional()
    .meta({ description: 'Name of a remote server.' }),
};

const nameFields = {
  partnerId: identifier(24).optional().meta({ description: 'PI 3; default: the clientId of the server.' }),
  virtualFile: identifier(FILE_NAME_MAX).optional().meta({ description: 'PI 12.' }),
  remoteFilename: ascii(LABEL_MAX).optional().meta({ description: 'PI 37, and PI 12 without virtualFile.' }),
};

const sessionFields = {
  maxEntitySize: transferSettings.maxEntitySize.optional(),
  syncPointsEnabled: z.boolean().optional(),
  syncInterval: transferSettings.syncInterval.optional(),
  syncWindow: transferSettings.syncWindow.optional(),
  text: transferSettings.text.optional(),
  compression: transferSettings.compression.optional(),
  crc: transferSettings.crc.optional(),
  resync: transferSettings.resync.optional(),
  ebcdic: transferSettings.ebcdic.optional(),
  codePage: transferSettings.codePage.optional(),
  freeMessage: opaque(FREE_MESSAGE_MAX)
    .optional()
    .meta({ description: `PI 99: text, or \`base64:\` and bytes; at most ${FREE_MESSAGE_MAX}.` }),
  originalSender: identifier(24).optional().meta({ description: 'PI 61.' }),
  finalReceiver: identifier(24).optional().meta({ description: 'PI 62.' }),
};

const creationDate = z
  .string()
  .refine(isCreationDate, 'expected a date and time without a zone, of 1970 to 2069: 2026-11-21T09:30:15')
  .optional()
  .meta({ description: 'PI 51; default: of a file its modification time.' });

const sendFields = {
  ...serverFields,
  ...nameFields,
  ...sessionFields,
  recordLength: transferSettings.recordLength.optional(),
  recordFormat: transferSettings.recordFormat.optional(),
  label: ascii(LABEL_MAX).optional(),
  creationDate,
};

interface Addressed extends FileNames {
  readonly serverId?: number | undefined;
  readonly server?: string | undefined;
}

const complain = (context: z.RefinementCtx, field: string, message: string): void =>
  context.addIssue({ code: 'custom', path: [field], message });

/** One remote server, and a PI 12. */
const addressed = (value: Addressed, context: z.RefinementCtx): void => {
  if (value.serverId === undefined && value.server === undefined) {
    complain(context, 'server', 'expected server (the name of a remote server) or serverId (its id)');
  }
  if (value.serverId !== undefined && value.server !== undefined) {
    complain(context, 'server', 'expected server or serverId, got both');
  }
  if (value.virtualFile === undefined && value.remoteFilename === undefined) {
    complain(context, 'virtualFile', 'expected virtualFile or remoteFilename: one of them is PI 12');
  }
  if (value.virtualFile === undefined && (value.remoteFilename ?? '').length > FILE_NAME_MAX) {
    complain(
      context,
      'remoteFilename',
      `without virtualFile it is PI 12: expected at most ${FILE_NAME_MAX} characters`,
    );
  }
};

export const sendBody = z
  .strictObject({
    ...sendFields,
    filename: localPath.optional().meta({ description: 'A file of the send tree; or fileContent.' }),
    fileContent: z.string().optional().meta({ description: 'The file itself in base64; or filename.' }),
  })
  .superRefine((value, context) => {
    addressed(value, context);
    if (value.filename === undefined && value.fileContent === undefined) {
      complain(context, 'filename', 'expected filename (a file of the send tree) or fileContent (base64), got neither');
    }
    if (value.filename !== undefined && value.fileContent !== undefined) {
      complain(context, 'filename', 'expected filename or fileContent, got both');
    }
  })
  .meta({ id: 'SendRequest' });

/** `?wait=SECONDS`: hold the answer until the transfer has ended, at most so long. */
export const MAX_WAIT_SECONDS = 300;
const wait = z
  .string()
  .regex(/^\d{1,3}$/, `expected seconds from 0 to ${MAX_WAIT_SECONDS}`)
  .transform(Number)
  .refine((seconds) => seconds <= MAX_WAIT_SECONDS, `expected seconds from 0 to ${MAX_WAIT_SECONDS}`)
  .optional()
  .meta({ description: `Seconds, at most ${MAX_WAIT_SECONDS}: holds the answer until the transfer has ended.` });

export const waitQuery = z.strictObject({ wait });

/** A query has texts alone: numbers and flags are read from them before the field's own rule is applied. */
const number = <T extends z.ZodType>(field: T) =>
  z.preprocess((value) => (typeof value === 'string' && /^\d{1,10}$/.test(value) ? Number(value) : value), field);
const flag = <T extends z.ZodType>(field: T) =>
  z.preprocess((value) => (value === 'true' || value === 'false' ? value === 'true' : value), field);

/** The fields of an upload, in the query: the body is the file. */
export const uploadQuery = z
  .strictObject({
    ...sendFields,
    wait,
    serverId: number(sendFields.serverId),
    maxEntitySize: number(sendFields.maxEntitySize),
    syncInterval: number(sendFields.syncInterval),
    syncWindow: number(sendFields.syncWindow),
    recordLength: number(sendFields.recordLength),
    recordFormat: number(sendFields.recordFormat),
    syncPointsEnabled: flag(sendFields.syncPointsEnabled),
    text: flag(sendFields.text),
    crc: flag(sendFields.crc),
    resync: flag(sendFields.resync),
    ebcdic: flag(sendFields.ebcdic),
  })
  .superRefine(addressed);

const selectable = (
  value: FileNames & { readonly selectByName?: boolean | undefined },
  context: z.RefinementCtx,
): void => {
  if (value.selectByName !== true) return;
  if (value.virtualFile === undefined || value.remoteFilename === undefined) {
    complain(context, 'selectByName', 'expected virtualFile and remoteFilename beside it: PI 12 is made of both');
  } else if (!fitsInPi12(value)) {
    complain(context, 'remoteFilename', NO_ROOM_FOR_NAME);
  }
};

export const receiveBody = z
  .strictObject({
    ...serverFields,
    ...nameFields,
    ...sessionFields,
    remoteFilename: nameFields.remoteFilename.meta({
      description:
        'The file that is wanted, and PI 12 without virtualFile. Beside virtualFile it is compared with the label (PI 37) of ACK(SELECT), for SELECT cannot carry it: when the partner offers another file nothing is read, and the transfer is FAILED with FILE_NOT_FOUND.',
    }),
    selectByName: transferSettings.selectByName.optional(),
    localName: localName.optional().meta({ description: 'Its name in the received tree.' }),
    overwrite: z.boolean().optional(),
  })
  .superRefine(addressed)
  .superRefine(selectable)
  .meta({ id: 'ReceiveRequest' });

/** PI 91 over all FPDUs of a message. */
const MESSAGE_MAX = 65_536;

export const messageBody = z
  .strictObject({
    ...serverFields,
    partnerId: nameFields.partnerId,
    virtualFile: identifier(FILE_NAME_MAX),
    message: opaque(MESSAGE_MAX).meta({
      description: `PI 91: text, or \`base64:\` and bytes; at most ${MESSAGE_MAX}.`,
    }),
    expectReply: z.boolean().optional(),
    fileType: z.int().min(0).max(0xffff).optional().meta({
      description:
        'PI 11; default 65535: a message. 65534: a reply to one. Else: the type of the file that is acknowledged.',
    }),
    pesitTransferId: z.int().min(1).max(0xff_ffff).optional().meta({
      description: 'PI 13, of the file or message that is acknowledged; default: the next of this node.',
    }),
    crc: sessionFields.crc,
    originalSender: sessionFields.originalSender,
    finalReceiver: sessionFields.finalReceiver,
    creationDate,
  })
  .superRefine(addressed)
  .meta({ id: 'MessageRequest' });

export type SendFields = z.output<z.ZodObject<typeof sendFields>>;
export type ReceiveBody = z.output<typeof receiveBody>;

export const TRANSFER_STATUSES = ['PENDING', 'IN_PROGRESS', 'COMPLETED', 'FAILED', 'CANCELLED'] as const;
export const DIRECTIONS = ['SEND', 'RECEIVE'] as const;
export const TRANSFER_TYPES = ['FILE', 'MESSAGE'] as const;

const filters = {
  ...periodFields(),
  type: z.enum(TRANSFER_TYPES).optional(),
  direction: z.enum(DIRECTIONS).optional(),
  serverId: rowId().optional(),
};

export const statisticsQuery = z.strictObject(filters);

export const historyQuery = z.strictObject({
  ...filters,
  ...pagingFields({
    sortable: {
      createdTime: 'created_time',
      startTime: 'start_time',
      endTime: 'end_time',
      status: 'status',
      direction: 'direction',
      filename: 'filename',
      remoteFilename: 'remote_filename',
      virtualFile: 'virtual_file',
      partnerId: 'partner_id',
      serverName: 'server_name',
      size: 'size',
    },
    defaultSort: 'createdTime,desc',
  }),
  status: z.enum(TRANSFER_STATUSES).optional(),
  restartable: z
    .enum(['true', 'false'], 'expected true or false')
    .transform((value) => value === 'true')
    .optional(),
});

export type HistoryQuery = z.output<typeof historyQuery>;
/** Which transfers, whatever the page. */
export type HistoryFilter = Partial<Omit<HistoryQuery, 'page' | 'size' | 'sort'>>;

/** The outbound record in answers. */
export const transferAnswer = z
  .object({
    id: z.uuid(),
    transferId: z.uuid().meta({ description: 'The same as `id`.' }),
    type: z.enum(TRANSFER_TYPES),
    status: z.enum(TRANSFER_STATUSES),
    statusReason: z
      .string()
      .nullable()
      .meta({ description: 'Why a PENDING one waits: its remote server is disabled.' }),
    direction: z.enum(DIRECTIONS),
    filename: z.string().meta({
      description:
        'The name here. A received file: the one that it was stored under; until then the one that was asked for.',
    }),
    remoteFilename: z.string().nullable(),
    virtualFile: z.string().nullable(),
    partnerId: z.string(),
    serverId: z.int().nullable(),
    serverName: z.string(),
    size: z.int().nullable().meta({ description: 'Bytes of the file.' }),
    bytesTransferred: z.int().meta({ description: 'As PI 27 counts them.' }),
    articles: z.int(),
    createdTime: timestamp(),
    startTime: timestamp().nullable(),
    endTime: timestamp().nullable(),
    duration: z.int().nullable().meta({ description: 'Milliseconds.' }),
    checksum: z.string().nullable().meta({ description: '`sha256:` and the digest in hexadecimal.' }),
    localPath: z.string().nullable(),
    diagnostic: z
      .string()
      .nullable()
      .meta({ description: 'PI 2, as `2-205`; `0-000` of a success; null before the first end of an attempt.' }),
    errorCode: z.string().nullable(),
    errorMessage: z.string().nullable(),
    pesitTransferId: z.int().nullable().meta({ description: 'PI 13.' }),
    attempts: z.int(),
    nextAttemptAt: timestamp().nullable().meta({ description: 'null also while the remote server is disabled.' }),
    restartable: z.boolean().meta({ description: 'The next attempt continues where the last one was interrupted.' }),
    syncPoint: z.int().nullable(),
    node: z.string().nullable().meta({ description: 'Who made the last attempt.' }),
    roundTrip: z.number().nullable().meta({ description: 'Milliseconds.' }),
    advice: z.string().nullable().meta({ description: 'Which sync points to ask the partner for.' }),
    label: z.string().nullable(),
    freeMessage: z.string().nullable(),
    originalSender: z.string().nullable(),
    finalReceiver: z.string().nullable(),
    creationDate: z.string().nullable().meta({ description: 'PI 51, in the time of its sender.' }),
    nameConfirmed: z.boolean().nullable().meta({
      description:
        'For a RECEIVE by name (virtualFile and remoteFilename): whether the label (PI 37) of the partner is that name; false: the partner sent none, and this node could not check the name.',
    }),
    contentKept: z.boolean().nullable().meta({
      description:
        'Whether the content that came with the request is still there, as a retry or a replay needs it; null: none came.',
    }),
    diagnosticComplement: z.string().nullable().meta({
      description: 'PI 29 of the last answer of the partner that had one, beside a success too; as `freeMessage`.',
    }),
    answerFreeMessage: z.string().nullable().meta({
      description: 'PI 99 of the last answer of the partner that had one; as `freeMessage`.',
    }),
    fileType: z.int().optional().meta({ description: 'PI 11 of a MESSAGE.' }),
    message: z.string().nullable().optional().meta({ description: 'For a MESSAGE: in its own record, not in a page.' }),
    reply: z.string().nullable().optional().meta({ description: 'For a MESSAGE: in its own record, not in a page.' }),
  })
  .meta({ id: 'Transfer' });

export const transferStatistics = statisticsAnswer(TRANSFER_STATUSES, DIRECTIONS);

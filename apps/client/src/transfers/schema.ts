import {
  flagFilter,
  historyPagingFields,
  patternFilter,
  periodFields,
  rowId,
  statisticsAnswer,
  statisticsFields,
  textFilter,
  timestamp,
  wordsFilter,
} from '@pesit-node/service';
import {
  attemptAnswer,
  attemptTerms,
  DIAGNOSTIC_TEXT,
  diagnosticWordsFields,
  DIRECTIONS,
  FORMER_ATTEMPTS,
  pointsAnswer,
  TRANSFER_STATUSES,
  TRANSFER_TYPES,
} from '@pesit-node/transfers';
import { z } from 'zod';

import { TRANSFER_REQUEST } from './fields.js';
import { FILE_NAME_MAX, fitsInPi12, NO_ROOM_FOR_NAME } from './file-name.js';
import type { FileNames } from './file-name.js';

interface Addressed extends FileNames {
  readonly serverId?: number | undefined;
  readonly server?: string | undefined;
  readonly notBefore?: string | undefined;
  readonly expiresAt?: string | undefined;
}

const complain = (refinement: z.RefinementCtx, field: string, message: string): void =>
  refinement.addIssue({ code: 'custom', path: [field], message });

/** One remote server, and a PI 12; and some time for it. */
const addressed = (value: Addressed, refinement: z.RefinementCtx): void => {
  const { notBefore, expiresAt } = value;
  if (notBefore !== undefined && expiresAt !== undefined && Date.parse(expiresAt) <= Date.parse(notBefore)) {
    complain(refinement, 'expiresAt', `expected a time behind notBefore (${notBefore}): it could never begin`);
  }
  if (value.serverId === undefined && value.server === undefined) {
    complain(refinement, 'server', 'expected server (the name of a remote server) or serverId (its id)');
  }
  if (value.serverId !== undefined && value.server !== undefined) {
    complain(refinement, 'server', 'expected server or serverId, got both');
  }
  if (value.virtualFile === undefined && value.remoteFilename === undefined) {
    complain(refinement, 'virtualFile', 'expected virtualFile or remoteFilename: one of them is PI 12');
  }
  if (value.virtualFile === undefined && (value.remoteFilename ?? '').length > FILE_NAME_MAX) {
    complain(
      refinement,
      'remoteFilename',
      `without virtualFile it is PI 12: expected at most ${FILE_NAME_MAX} characters`,
    );
  }
};

export const sendBody = z
  .strictObject(TRANSFER_REQUEST.shape('send'))
  .superRefine((value, refinement) => {
    addressed(value, refinement);
    if (value.filename === undefined && value.fileContent === undefined) {
      complain(
        refinement,
        'filename',
        'expected filename (a file of the send tree) or fileContent (base64), got neither',
      );
    }
    if (value.filename !== undefined && value.fileContent !== undefined) {
      complain(refinement, 'filename', 'expected filename or fileContent, got both');
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

/** The fields of an upload, in the query: the body is the file. */
export const uploadQuery = z.strictObject({ ...TRANSFER_REQUEST.shapeInTexts('upload'), wait }).superRefine(addressed);

const selectable = (
  value: FileNames & { readonly selectByName?: boolean | undefined },
  refinement: z.RefinementCtx,
): void => {
  if (value.selectByName !== true) return;
  if (value.virtualFile === undefined || value.remoteFilename === undefined) {
    complain(refinement, 'selectByName', 'expected virtualFile and remoteFilename beside it: PI 12 is made of both');
  } else if (!fitsInPi12(value)) {
    complain(refinement, 'remoteFilename', NO_ROOM_FOR_NAME);
  }
};

export const receiveBody = z
  .strictObject(TRANSFER_REQUEST.shape('receive'))
  .superRefine(addressed)
  .superRefine(selectable)
  .meta({ id: 'ReceiveRequest' });

export const messageBody = z
  .strictObject(TRANSFER_REQUEST.shape('message'))
  .superRefine(addressed)
  .meta({ id: 'MessageRequest' });

const filters = {
  ...periodFields(),
  type: z.enum(TRANSFER_TYPES).optional(),
  direction: z.enum(DIRECTIONS).optional(),
  serverId: rowId().optional(),
  partnerId: textFilter(24),
  virtualFileId: textFilter(FILE_NAME_MAX),
  diagnostic: patternFilter(DIAGNOSTIC_TEXT, 'a diagnostic such as 2-205; 0-000 is a success'),
  node: textFilter(253),
  q: wordsFilter('`filename`, `remoteFilename` or `label`'),
};

export const statisticsQuery = z.strictObject({ ...filters, ...statisticsFields });
export type StatisticsQuery = z.output<typeof statisticsQuery>;

export const historyQuery = z.strictObject({
  ...filters,
  ...historyPagingFields(
    {
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
    },
    'uuid',
  ),
  status: z.enum(TRANSFER_STATUSES).optional(),
  restartable: flagFilter(),
});

/** The transfers that run now, page by page. */
export const activeQuery = historyQuery.omit({ status: true, restartable: true });

/** All that the filters leave, whatever the page. */
export const exportQuery = historyQuery.omit({ page: true, size: true, sort: true, after: true });

export type HistoryQuery = z.output<typeof historyQuery>;
/** Which transfers, whatever the page. */
export type HistoryFilter = Partial<Omit<HistoryQuery, 'page' | 'size' | 'sort' | 'after'>>;

/** A file that was sent; the other fields have values of their kind. */
const EXAMPLE = {
  ...{ type: 'FILE', status: 'COMPLETED', direction: 'SEND', filename: 'invoices-2026-11-23.csv', partnerId: 'NODE1' },
  ...{ remoteFilename: 'invoices-2026-11-23.csv', virtualFile: 'INVOICES', serverId: 1, serverName: 'bank', size: 24 },
  ...{ bytesTransferred: 24, articles: 1, createdBy: 'admin', startTime: '2026-11-23T08:30:00.000Z', duration: 250 },
  ...{ endTime: '2026-11-23T08:30:00.250Z', diagnostic: '0-000', pesitTransferId: 17, attempts: 1, priority: 1 },
};

/** The outbound record in answers. */
export const transferAnswer = z
  .object({
    id: z.uuid(),
    transferId: z.uuid().meta({ description: 'The same as `id`.' }),
    type: z.enum(TRANSFER_TYPES),
    status: z.enum(TRANSFER_STATUSES),
    statusReason: z.string().nullable().meta({
      description: 'Why a PENDING one waits: its remote server is disabled, or one comes before it in its order.',
    }),
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
    announcedSize: z.int().nullable().meta({
      description:
        'Bytes that the partner announces for a file that is received (PI 42): an estimate, in whole kilobytes. Null: it does not, or it is not known yet.',
    }),
    bytesTransferred: z.int().meta({ description: 'As PI 27 counts them.' }),
    articles: z.int(),
    createdBy: z
      .string()
      .nullable()
      .meta({ description: 'The user who asked for it, or `api-key`; null in records of older versions.' }),
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
    priority: z.int().meta({ description: '0 urgent, 1 normal, 2 low.' }),
    notBefore: timestamp().nullable().meta({ description: 'As the request has it; see `nextAttemptAt`.' }),
    expiresAt: timestamp().nullable().meta({ description: 'From then on no attempt begins.' }),
    ordered: z.boolean().meta({ description: 'It waits for the ordered ones before it.' }),
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
  .meta({ id: 'Transfer', example: EXAMPLE });

/** One record. */
export const transferDetail = transferAnswer
  .extend({
    ...diagnosticWordsFields,
    terms: attemptTerms.nullable().meta({ description: 'Of the last attempt; null before its end.' }),
    points: pointsAnswer,
    attemptList: z.array(attemptAnswer).meta({
      description: `The attempts, oldest first: the last one, and up to ${FORMER_ATTEMPTS} before it. Also those that \`attempts\` does not count, for the partner asked to come again later.`,
    }),
  })
  .meta({ id: 'TransferDetail', example: EXAMPLE });

export const transferStatistics = statisticsAnswer(TRANSFER_STATUSES, DIRECTIONS);

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
  COMPRESSIONS,
  DIAGNOSTIC_TEXT,
  diagnosticWordsFields,
  DIRECTIONS,
  FORMER_ATTEMPTS,
  pointsAnswer,
  TRANSFER_STATUSES,
  TRANSFER_TYPES,
} from '@pesit-node/transfers';
import { z } from 'zod';

const filters = {
  ...periodFields(),
  partnerId: textFilter(24),
  virtualFileId: textFilter(76),
  listener: textFilter(24),
  direction: z.enum(DIRECTIONS).optional(),
  type: z.enum(TRANSFER_TYPES).optional(),
  diagnostic: patternFilter(DIAGNOSTIC_TEXT, 'a diagnostic such as 2-205; 0-000 is a success'),
  node: textFilter(253),
  q: wordsFilter('`filename` or `label`'),
};

/** The transfers that run now, page by page. */
export const activeQuery = z.strictObject({
  ...historyPagingFields(
    {
      sortable: {
        id: 'id',
        startTime: 'start_time',
        endTime: 'end_time',
        partnerId: 'partner_id',
        virtualFileId: 'virtual_file_id',
        listener: 'listener',
        filename: 'filename',
        direction: 'direction',
        status: 'status',
        size: 'size',
        bytesTransferred: 'bytes_transferred',
      },
      defaultSort: 'startTime,desc',
    },
    'bigint',
  ),
  ...filters,
});

export const statisticsQuery = z.strictObject({ ...filters, ...statisticsFields });
export type StatisticsQuery = z.output<typeof statisticsQuery>;

export const historyQuery = activeQuery.extend({
  status: z.enum(TRANSFER_STATUSES).optional(),
  restartable: flagFilter(),
});

/** All that the filters leave, whatever the page. */
export const exportQuery = historyQuery.omit({ page: true, size: true, sort: true, after: true });

export type HistoryQuery = z.output<typeof historyQuery>;
/** Which transfers, whatever the page. */
export type HistoryFilter = Partial<Omit<HistoryQuery, 'page' | 'size' | 'sort' | 'after'>>;

export const transferParams = z.strictObject({ id: rowId(Number.MAX_SAFE_INTEGER) });

/** A file that has come; the other fields have values of their kind. */
const EXAMPLE = {
  ...{
    id: 4711,
    partnerId: 'ACME',
    filename: 'ACME_INVOICES_20261123_083000_17',
    virtualFileId: 'INVOICES',
    size: 48_210,
  },
  ...{
    status: 'COMPLETED',
    startTime: '2026-11-23T08:30:00.000Z',
    endTime: '2026-11-23T08:30:01.250Z',
    duration: 1250,
  },
  ...{ transferId: 17, listener: 'NODE1', node: 'server-0', remoteAddress: '192.0.2.7', bytesTransferred: 48_210 },
  ...{ articles: 12, attempts: 1, diagnostic: '0-000', label: 'invoices.csv', fileType: 0, occurrences: 1 },
  ...{ sessionId: '6f1f2c1e-5d7a-4c52-9b0e-3f6a2d9c8b71', type: 'FILE', direction: 'RECEIVE' },
};

/** A record of the history in answers. */
export const transferAnswer = z
  .object({
    id: z.int(),
    type: z.enum(TRANSFER_TYPES),
    partnerId: z.string(),
    direction: z.enum(DIRECTIONS).meta({ description: 'Seen by this node: RECEIVE = a partner wrote it here.' }),
    filename: z.string().nullable(),
    virtualFileId: z.string().nullable(),
    size: z.int().nullable().meta({ description: 'Bytes of the file.' }),
    status: z.enum(TRANSFER_STATUSES),
    startTime: timestamp(),
    endTime: timestamp().nullable(),
    duration: z.int().nullable().meta({ description: 'Milliseconds.' }),
    transferId: z.int().nullable().meta({ description: 'PI 13.' }),
    listener: z.string(),
    node: z.string(),
    sessionId: z.string(),
    remoteAddress: z.string(),
    bytesTransferred: z.int().meta({ description: 'As PI 27 counts them.' }),
    articles: z.int(),
    syncPoint: z.int(),
    attempts: z.int(),
    restartable: z.boolean().meta({ description: 'The partner may restart it.' }),
    checksum: z.string().nullable().meta({ description: '`sha256:` and the digest in hexadecimal.' }),
    diagnostic: z
      .string()
      .nullable()
      .meta({ description: 'PI 2, as `2-205`; `0-000` of a success; null before the first end of an attempt.' }),
    diagnosticComplement: z.string().nullable().meta({
      description: 'PI 29 of the last DTF.END, CRF or DESELECT that had one, beside a success too; at most 254 bytes.',
    }),
    errorMessage: z.string().nullable(),
    label: z.string().nullable(),
    freeMessage: z.string().nullable(),
    originalSender: z.string().nullable(),
    finalReceiver: z.string().nullable(),
    creationDate: z.string().nullable(),
    compression: z.enum(COMPRESSIONS),
    fileType: z.int(),
    occurrences: z.int().meta({
      description: 'How often a refused request came: beyond a rate equal ones of a partner are counted in one record.',
    }),
    lastOccurrence: timestamp().nullable().meta({ description: 'When it came last; null: once.' }),
  })
  .meta({ id: 'Transfer', example: EXAMPLE });

/** One record: of a message its text, too. */
export const transferDetail = transferAnswer
  .extend({
    ...diagnosticWordsFields,
    terms: attemptTerms.nullable().meta({ description: 'Of the last attempt; null before its end.' }),
    points: pointsAnswer,
    attemptList: z.array(attemptAnswer.extend({ listener: z.string() }).meta({ id: 'ListenerAttempt' })).meta({
      description: `The attempts, oldest first: the last one, and up to ${FORMER_ATTEMPTS} before it.`,
    }),
    message: z.string().optional(),
  })
  .meta({ id: 'TransferDetail', example: EXAMPLE });

export const transferStatistics = statisticsAnswer(TRANSFER_STATUSES, DIRECTIONS);

import { pagingFields, periodFields, rowId } from '@pesit-node/service';
import { z } from 'zod';

export const TRANSFER_STATUSES = ['PENDING', 'IN_PROGRESS', 'COMPLETED', 'FAILED', 'CANCELLED'] as const;
export type TransferStatus = (typeof TRANSFER_STATUSES)[number];

/** Seen by this node: RECEIVE = a partner wrote a file here, SEND = it read one. */
export const TRANSFER_DIRECTIONS = ['SEND', 'RECEIVE'] as const;
export type TransferDirection = (typeof TRANSFER_DIRECTIONS)[number];

export const TRANSFER_TYPES = ['FILE', 'MESSAGE'] as const;

/** A filter is compared with what a peer sent, so it need not be an identifier that could be configured. */
const filter = (max: number) => z.string().min(1).max(max).optional();

export const historyQuery = z.strictObject({
  ...pagingFields({
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
  }),
  ...periodFields(),
  partnerId: filter(24),
  virtualFileId: filter(76),
  listener: filter(24),
  direction: z.enum(TRANSFER_DIRECTIONS).optional(),
  status: z.enum(TRANSFER_STATUSES).optional(),
  type: z.enum(TRANSFER_TYPES).optional(),
  restartable: z
    .enum(['true', 'false'], 'expected true or false')
    .transform((text) => text === 'true')
    .optional(),
});

export type HistoryQuery = z.output<typeof historyQuery>;

export const transferParams = z.strictObject({ id: rowId() });

import { timestamp } from '@pesit-node/service';
import { z } from 'zod';

/** How far a running transfer is: fields that its record has too have the names that they have there. */
export const transferProgress = z
  .object({
    id: z.union([z.int(), z.string()]),
    bytesTransferred: z.int(),
    expectedBytes: z.int().nullable().meta({ description: 'Bytes that it will have, as far as this side knows.' }),
    isAnnounced: z.boolean().meta({
      description:
        '`expectedBytes` is what the partner announces (PI 42): rounded up to whole kilobytes, and more than the file may have.',
    }),
    rate: z.int().nullable().meta({ description: 'Bytes per second over the last 10 seconds; null: not known yet.' }),
    estimatedEnd: timestamp()
      .nullable()
      .meta({ description: 'At this rate; null: it is not known how much is left, or nothing moves.' }),
    syncPoint: z.int(),
    node: z.string().nullable(),
  })
  .meta({ id: 'TransferProgress' });

export type TransferProgressEvent = z.output<typeof transferProgress>;

/** Reasons why a reader has to list again. */
export const RESET_REASONS = ['new', 'unknown id', 'too much'] as const;
export type ResetReason = (typeof RESET_REASONS)[number];

/** The data of each kind of event, by its name. @param record as pages of the history have it */
export const transferEvents = (record: z.ZodType) =>
  z
    .object({
      transfer: record,
      progress: z.array(transferProgress),
      reset: z.object({ reason: z.enum(RESET_REASONS) }),
    })
    .meta({ id: 'TransferEvents', description: 'The data of each kind of event, by its name.' });

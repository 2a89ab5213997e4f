import { z } from 'zod';

import { negotiated } from './fields.js';

const milliseconds = () => z.number().meta({ description: 'Milliseconds.' });

/** Outcome of a connection test. */
export const testAnswer = z
  .union([
    z.object({
      success: z.literal(true),
      latency: milliseconds(),
      serverVersion: z.int().meta({ description: 'PI 6 of the answer: 1 = D, 2 = E.' }),
      message: z.string(),
      negotiated,
      roundTrip: milliseconds(),
      advice: z.string().nullable().meta({ description: 'Which sync points to ask the partner for.' }),
    }),
    z.object({
      success: z.literal(false),
      latency: milliseconds(),
      errorCode: z.string(),
      diagnostic: z.string(),
      message: z.string(),
    }),
  ])
  .meta({ id: 'ConnectionTest' });

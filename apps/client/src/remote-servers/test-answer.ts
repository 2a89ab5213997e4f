import { timestamp } from '@pesit-node/service';
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
      tls: z
        .object({
          protocol: z.string().meta({ description: 'e.g. TLSv1.3' }),
          cipher: z.string(),
          certificate: z
            .object({
              ...{ subject: z.string(), issuer: z.string(), serial: z.string(), san: z.array(z.string()) },
              ...{ notBefore: timestamp(), notAfter: timestamp(), fingerprint: z.string() },
            })
            .nullable(),
          daysRemaining: z.int().nullable().meta({ description: 'Until the certificate ends.' }),
        })
        .nullable()
        .meta({ description: 'Facts that TLS has found out; null: the connection is plain.' }),
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

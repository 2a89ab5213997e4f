import { z } from 'zod';

import { API_ERRORS } from '../errors.js';
import type { ApiErrorCode } from '../errors.js';

/** Every error body (design §4); that of a missing license has another code and names where to install one. */
export const errorBody = z
  .object({
    error: z.enum(Object.keys(API_ERRORS) as ApiErrorCode[]).meta({ description: 'For programs; does not change.' }),
    message: z.string().meta({ description: 'For people: what was expected, what came, what to do.' }),
    path: z.string(),
    timestamp: z.string().meta({ format: 'date-time' }),
    details: z
      .array(
        z.object({
          field: z.string().meta({ description: 'Its path, e.g. `records[0].length`.' }),
          message: z.string(),
        }),
      )
      .optional()
      .meta({ description: 'The fields at fault.' }),
    diagnostic: z.string().optional().meta({ description: 'PeSIT diagnostic, e.g. `3-304`; see docs/diagnostics.md.' }),
  })
  .meta({ id: 'Error' });

export type ErrorBody = z.output<typeof errorBody>;

import { notFound, traceRoutes } from '@pesit-node/service';
import type { Logger, Routes, Traces } from '@pesit-node/service';
import { z } from 'zod';

import { partnerId } from '../schemas.js';

/** The traces of a partner. */
export const partnerTraceRoutes = (routes: Routes, traces: Traces, logger: Logger): void => {
  traceRoutes(routes, {
    ...{ traces, logger, noun: 'partner' },
    path: '/api/v1/config/partners/:partnerId',
    params: z.strictObject({ partnerId: partnerId() }),
    ownerOf: ({ partnerId: id }) => id,
    missing: (id) => notFound('Partner', id, '/api/v1/config/partners'),
  });
};

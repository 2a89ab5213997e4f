import { rowId, traceRoutes } from '@pesit-node/service';
import type { Logger, Routes, Traces } from '@pesit-node/service';
import { z } from 'zod';

import { serverNotFound } from '../remote-servers/service.js';

/** The traces of a remote server. */
export const serverTraceRoutes = (routes: Routes, traces: Traces, logger: Logger): void => {
  traceRoutes(routes, {
    ...{ traces, logger, noun: 'server' },
    path: '/api/v1/servers/:id',
    params: z.strictObject({ id: rowId() }),
    ownerOf: ({ id }) => id,
    missing: serverNotFound,
  });
};

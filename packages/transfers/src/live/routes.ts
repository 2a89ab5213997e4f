import { endpoint } from '@pesit-node/service';
import type { Endpoint, Routes } from '@pesit-node/service';
import type { z } from 'zod';

import type { LiveTransfers } from './live-transfers.js';
import { transferEvents } from './schema.js';

export interface TransferEventRoutes<P extends z.ZodType<{ readonly id: string | number }>> {
  readonly live: Pick<LiveTransfers<unknown>, 'watch' | 'watchAll'>;
  /** The path of one transfer. */
  readonly params: P;
  /** A record as pages of the history have it. */
  readonly record: z.ZodType;
}

const EVENT_STREAM = 'text/event-stream';
const LAST_EVENT_ID = {
  'Last-Event-ID': 'The id of the last event that this reader has: what came since is given again.',
};

/** `/api/v1/transfers/events` and `/api/v1/transfers/{id}/events`. To be mounted before `/api/v1/transfers/:id`. */
export const transferEventRoutes = <P extends z.ZodType<{ readonly id: string | number }>>(
  routes: Routes,
  { live, params, record }: TransferEventRoutes<P>,
): void => {
  const events = transferEvents(record);
  const refused = { 503: 'Too many readers, or the service is stopping.' };
  const all: Endpoint = endpoint(
    {
      summary: 'What happens to transfers, as server-sent events',
      description:
        '`transfer`: a record has changed, here it is. `progress`: figures of those that run. `reset`: list again, then apply what follows.',
      headers: LAST_EVENT_ID,
      answers: { 200: { contentType: EVENT_STREAM, description: 'Events until one side ends.', events }, ...refused },
    },
    async ({ req, res }) => {
      if (req.method === 'HEAD') res.type(EVENT_STREAM).end();
      else await live.watchAll(req, res, req.get('Last-Event-ID'));
    },
  );
  routes.resource('/api/v1/transfers/events', { get: all });
  const one: Endpoint = endpoint(
    {
      summary: 'What happens to a transfer, as server-sent events',
      description:
        'First its record as it is (`transfer`), then `transfer` and `progress`; the answer ends when it is over.',
      headers: LAST_EVENT_ID,
      params,
      answers: {
        200: { contentType: EVENT_STREAM, description: 'Events until it is over, or one side ends.', events },
        204: 'It is over, and this reader knows: its last event was `over`.',
        404: 'There is no such transfer.',
        ...refused,
      },
    },
    async ({ params: given, req, res }) => {
      const { id } = given as { readonly id: string | number };
      if (req.method === 'HEAD') res.type(EVENT_STREAM).end();
      else await live.watch(id, req, res, req.get('Last-Event-ID'));
    },
  );
  routes.resource('/api/v1/transfers/:id/events', { get: one });
};

import {
  conflict,
  endpoint,
  fetchPage,
  FieldService,
  fieldRoutes,
  notFound,
  pageOf,
  pagingFields,
  timestamp,
} from '@pesit-node/service';
import type { ChangeAudit, EventStream, Routes } from '@pesit-node/service';
import type { Knex } from 'knex';
import { z } from 'zod';

import { HOOK } from './fields.js';
import type { HookRow } from './fields.js';
import { HOOK_USES } from './store.js';
import type { HookStore } from './store.js';

export interface HookRoutes {
  readonly knex: Knex;
  readonly store: HookStore;
  readonly events: EventStream;
  readonly audit: ChangeAudit;
  /** @throws {ApiError} 409: there is no such truststore */
  readonly requireTruststore: (name: string | null | undefined) => Promise<void>;
  /** Something is due. */
  readonly wake: () => void;
}

const STATES = ['WAITING', 'RUNNING', 'DELIVERED', 'GIVEN_UP'] as const;
const PATH = '/api/v1/hook-deliveries';

interface DeliveryRow {
  readonly id: string;
  readonly hook_id: string;
  readonly event: string;
  readonly transfer: string;
  readonly state: (typeof STATES)[number];
  readonly created_at: Date;
  readonly due_at: Date | null;
  readonly attempts: number;
  readonly node: string | null;
  readonly started_at: Date | null;
  readonly ended_at: Date | null;
  readonly status_code: number | null;
  readonly exit_code: number | null;
  readonly error: string | null;
  readonly output?: string | null;
}

const COLUMNS = [
  ...[
    'id',
    'hook_id',
    'event',
    'transfer',
    'state',
    'created_at',
    'due_at',
    'attempts',
    'node',
    'started_at',
    'ended_at',
  ],
  ...['status_code', 'exit_code', 'error'],
];

const answer = z
  .object({
    id: z.uuid().meta({ description: 'The `webhook-id`: the same over all attempts.' }),
    hookId: z.string(),
    event: z.string(),
    transfer: z.string().meta({ description: '`id` of the record of the transfer; empty for a test.' }),
    state: z.enum(STATES).meta({ description: 'GIVEN_UP: nobody was told, and it is not tried again.' }),
    createdTime: timestamp(),
    attempts: z.int(),
    nextAttemptAt: timestamp().nullable(),
    node: z.string().nullable().meta({ description: 'Pod of the last attempt.' }),
    startTime: timestamp().nullable().meta({ description: 'When the last attempt began.' }),
    endTime: timestamp().nullable(),
    statusCode: z.int().nullable().meta({ description: 'HTTP status of the last answer.' }),
    exitCode: z.int().nullable().meta({ description: 'Of the last run of the executable.' }),
    error: z.string().nullable().meta({ description: 'Why the last attempt failed, in words.' }),
  })
  .meta({ id: 'HookDelivery' });

const detail = z
  .object({
    ...answer.shape,
    output: z.string().nullable().meta({
      description: 'The last 4 KB that the executable wrote, or the first 4 KB of an answer that was not good.',
    }),
  })
  .meta({ id: 'HookDeliveryDetail' });

const query = z.strictObject({
  ...pagingFields({ sortable: { createdTime: 'position' }, defaultSort: 'createdTime,desc' }),
  hookId: z
    .string()
    .min(1)
    .max(64)
    .regex(/^[^\0]*$/, 'NUL is not allowed')
    .optional(),
  state: z.enum(STATES).optional(),
  transfer: z
    .string()
    .min(1)
    .max(64)
    .regex(/^[^\0]*$/, 'NUL is not allowed')
    .optional(),
});

const params = z.strictObject({ id: z.uuid() });

const view = (row: DeliveryRow): z.output<typeof answer> => ({
  id: row.id,
  hookId: row.hook_id,
  event: row.event,
  transfer: row.transfer,
  state: row.state,
  createdTime: row.created_at.toISOString(),
  attempts: row.attempts,
  nextAttemptAt: row.state === 'WAITING' ? (row.due_at?.toISOString() ?? null) : null,
  node: row.node,
  startTime: row.started_at?.toISOString() ?? null,
  endTime: row.ended_at?.toISOString() ?? null,
  statusCode: row.status_code,
  exitCode: row.exit_code,
  error: row.error,
});

const detailOf = (row: DeliveryRow): z.output<typeof detail> => ({ ...view(row), output: row.output ?? null });

const MISSING = { 404: 'There is no such delivery.' };

/** `/api/v1/hooks`, and the deliveries that outcomes have ordered. */
export const hookRoutes = (routes: Routes, options: HookRoutes): void => {
  const { knex, store, events, audit, requireTruststore, wake } = options;
  const resource = { path: '/api/v1/hooks', fields: HOOK };
  const service = new FieldService({
    ...{ ...resource, store, events, audit },
    // The store seals it.
    keep: (secret) => secret,
    admit: ({ truststoreName }) => requireTruststore(truststoreName),
  });
  fieldRoutes(routes, {
    ...{ ...resource, service, computed: () => ({}), uses: HOOK_USES },
    answers: { 409: 'It exists already; or its kind is switched off, or there is no such truststore.' },
  });
  routes.resource('/api/v1/hooks/:hookId/test', {
    post: endpoint(
      {
        summary: 'Orders a delivery without a transfer, to see that the hook works',
        description:
          'Its event is `hook.test`, and its `data` are null. The answer is the delivery as it waits: look for its end.',
        audit: ['hook', 'tested'],
        params: z.strictObject({ hookId: HOOK.rows.hookId.schema }),
        answers: { 202: answer, 404: 'There is no such hook.' },
      },
      async ({ params: { hookId }, res }) => {
        const row: HookRow | undefined = await store.get(hookId);
        if (row === undefined) throw notFound('Hook', hookId, '/api/v1/hooks');
        const order = { id: knex.raw('gen_random_uuid()'), hook_id: hookId, event: 'hook.test', transfer: '' };
        const [made] = (await knex('hook_deliveries').insert(order, COLUMNS)) as [DeliveryRow];
        wake();
        res.status(202).location(`${PATH}/${made.id}`).json(view(made));
      },
    ),
  });
  routes.resource(PATH, {
    get: endpoint(
      { summary: 'What hooks have delivered, and what waits', query, answers: { 200: pageOf(answer) } },
      async ({ query: { hookId, state, transfer, ...paging }, res }) => {
        const asked = Object.entries({ hook_id: hookId, state, transfer }).filter(([, value]) => value !== undefined);
        const found = knex('hook_deliveries').where(Object.fromEntries(asked));
        res.json(
          await fetchPage<DeliveryRow, z.output<typeof answer>>(found, paging, {
            tieBreak: 'id',
            columns: COLUMNS,
            map: view,
          }),
        );
      },
    ),
  });
  routes.resource(`${PATH}/:id`, {
    get: endpoint(
      {
        summary: 'A delivery, with what the executable wrote or the receiver said',
        role: 'operator',
        params,
        answers: { 200: detail, ...MISSING },
      },
      async ({ params: { id }, res }) => {
        const row = await knex<DeliveryRow>('hook_deliveries')
          .where({ id })
          .first<DeliveryRow | undefined>(...COLUMNS, 'output');
        if (row === undefined) throw notFound('Hook delivery', id, PATH);
        res.json(detailOf(row));
      },
    ),
  });
  routes.resource(`${PATH}/:id/redeliver`, {
    post: endpoint(
      {
        summary: 'Tries a delivery again, now',
        description: 'Under the same id: a receiver that has it may drop it. One that waits does not wait any longer.',
        role: 'operator',
        audit: ['hook delivery', 'ordered again'],
        params,
        answers: { 202: answer, ...MISSING, 409: 'An attempt runs.' },
      },
      async ({ params: { id }, res }) => {
        const { rows } = await knex.raw<{ rows: DeliveryRow[] }>(
          `update hook_deliveries set state = 'WAITING', due_at = now(), tried_since = now(), ended_at = null
           where id = ? and (state <> 'RUNNING' or due_at <= now()) returning ${COLUMNS.join(', ')}`,
          [id],
        );
        const [row] = rows;
        if (row === undefined) {
          if ((await knex('hook_deliveries').where({ id }).first('id')) === undefined)
            throw notFound('Hook delivery', id, PATH);
          throw inFlight(id);
        }
        wake();
        res.status(202).location(`${PATH}/${id}`).json(view(row));
      },
    ),
  });
};

const inFlight = (id: string): Error =>
  conflict(`An attempt of hook delivery ${id} runs: it decides whether another one is needed`);

import { z } from 'zod';

import { notFound } from '../errors.js';
import type { ApiError } from '../errors.js';
import { answerText } from '../http/answer-text.js';
import type { TextFile } from '../http/answer-text.js';
import { pageOf, pagingFields } from '../http/paging.js';
import type { Routes } from '../http/routes.js';
import { timestamp } from '../http/schemas.js';
import { endpoint } from '../http/validate.js';
import type { Logger } from '../logging.js';
import { TRACE_LIMITS } from './limits.js';
import type { TraceOwner } from './recording.js';
import type { Traces } from './recorder.js';
import type { TraceRow } from './store.js';
import { allText, sessionText } from './text.js';

export interface TraceRoutesOptions<P extends z.ZodRawShape> {
  readonly traces: Traces;
  readonly logger: Logger;
  /** Path of the owner, e.g. `/api/v1/servers/:id`. */
  readonly path: string;
  readonly params: z.ZodObject<P, z.core.$strict>;
  readonly ownerOf: (params: z.output<z.ZodObject<P, z.core.$strict>>) => TraceOwner;
  /** `partner`: for texts, and the name of the downloaded file. */
  readonly noun: string;
  readonly missing: (owner: TraceOwner) => ApiError;
}

const query = z.strictObject(
  pagingFields({
    sortable: { startTime: 'started_at', endTime: 'ended_at', lines: 'lines', size: 'bytes' },
    defaultSort: 'startTime,desc',
  }),
);

export const traceSwitch = z
  .strictObject({
    minutes: z
      .int(`expected 0 to ${TRACE_LIMITS.minutes}`)
      .min(0)
      .max(TRACE_LIMITS.minutes)
      .meta({ description: 'How long new sessions are traced; 0 = off.', example: 15 }),
  })
  .meta({ id: 'TraceSwitch' });

/** In an answer: more is said of a session by the app (listener, address …). */
const tracedSession = z
  .looseObject({
    session: z.uuid(),
    startTime: timestamp(),
    endTime: timestamp().nullable(),
    lastLineTime: timestamp(),
    outcome: z.string().nullable(),
    node: z.string(),
    transfers: z.array(z.string()),
    lines: z.int(),
    size: z.int().meta({ description: 'Bytes of text.' }),
  })
  .meta({ id: 'TracedSession' });

const traceState = z.object({ active: z.boolean(), until: timestamp().nullable() }).meta({ id: 'TraceState' });

const TEXT = { contentType: 'text/plain', description: 'Line by line what went over the wire and what happened.' };
const NO_OWNER = { 404: 'There is no such owner of a trace.' };
const NO_SESSION = { 404: 'There is no trace of this session.' };

const toSession = (row: TraceRow) => ({
  session: row.id,
  startTime: row.started_at.toISOString(),
  endTime: row.ended_at?.toISOString() ?? null,
  lastLineTime: row.last_at.toISOString(),
  outcome: row.outcome,
  ...row.about,
  node: row.node,
  transfers: row.transfers,
  lines: row.lines,
  size: row.bytes,
});

const stateOf = (until: Date | null) => ({
  active: until !== null && until.getTime() > Date.now(),
  until: until?.toISOString() ?? null,
});

/**
 * The trace of an owner: `GET …/trace` (state, sessions), `PUT …/trace` (`minutes`), `DELETE …/trace` (off),
 * `GET …/trace/content` (all as text), `GET` and `DELETE …/trace/{session}`.
 */
export const traceRoutes = <P extends z.ZodRawShape>(routes: Routes, options: TraceRoutesOptions<P>): void => {
  const { traces, logger, noun, missing } = options;
  const { store } = traces;
  const path = `${options.path}/trace`;
  const params = options.params;
  const withSession = z.strictObject({ ...params.shape, session: z.uuid('expected the id of a session') });
  const ownerOf = (values: unknown): TraceOwner => options.ownerOf(values as z.output<typeof params>);
  const title = (owner: TraceOwner): string => `${noun} ${owner}`;

  const untilOf = async (owner: TraceOwner): Promise<Date | null> => {
    const until = await store.until(owner);
    if (until === undefined) throw missing(owner);
    return until;
  };
  const turn = async (owner: TraceOwner, minutes: number): Promise<Date | null> => {
    const until = await store.switch(owner, minutes);
    if (until === undefined) throw missing(owner);
    logger.info({ [noun]: owner, until, minutes }, minutes > 0 ? 'trace switched on' : 'trace switched off');
    return until;
  };
  const sessionOf = async (values: unknown): Promise<{ readonly owner: TraceOwner; readonly row: TraceRow }> => {
    const owner = ownerOf(values);
    const { session } = values as { readonly session: string };
    // Lines that this process recorded a moment ago belong to it.
    await traces.settled();
    const row = await store.find(owner, session);
    if (row === undefined) {
      const seen = path.replace(/:\w+/, encodeURIComponent(String(owner)));
      throw notFound(`A trace of ${title(owner)} of the session`, session, seen);
    }
    return { owner, row };
  };

  routes.resource(path, {
    get: endpoint(
      {
        summary: 'State of the trace, and the sessions that were traced',
        params,
        query,
        answers: { 200: traceState.extend(pageOf(tracedSession).shape), ...NO_OWNER },
      },
      async ({ params: values, query: paging, res }) => {
        const owner = ownerOf(values);
        const until = await untilOf(owner);
        await traces.settled();
        res.json({ ...stateOf(until), ...(await store.page(owner, paging, toSession)) });
      },
    ),
    put: endpoint(
      {
        summary: 'Switches the trace on for a time, or off',
        role: 'operator',
        audit: ['trace', 'switched'],
        params,
        body: traceSwitch,
        answers: { 200: traceState, ...NO_OWNER },
      },
      async ({ params: values, body, res }) => {
        res.json(stateOf(await turn(ownerOf(values), body.minutes)));
      },
    ),
    delete: endpoint(
      {
        summary: 'Switches the trace off; what was traced stays',
        role: 'operator',
        audit: ['trace', 'switched off'],
        params,
        answers: { 204: 'Off.', ...NO_OWNER },
      },
      async ({ params: values, res }) => {
        await turn(ownerOf(values), 0);
        res.status(204).end();
      },
    ),
  });

  routes.resource(`${path}/content`, {
    get: endpoint(
      { summary: 'All traced sessions as text', role: 'operator', params, answers: { 200: TEXT, ...NO_OWNER } },
      async ({ params: values, res }) => {
        const owner = ownerOf(values);
        await untilOf(owner);
        await traces.settled();
        const rows = await store.sessions(owner);
        await answerText(res, asFile(`trace-${noun}-${owner}.txt`), allText(store, rows, title(owner)));
      },
    ),
  });

  routes.resource(`${path}/:session`, {
    get: endpoint(
      {
        summary: 'A traced session as text',
        role: 'operator',
        params: withSession,
        answers: { 200: TEXT, ...NO_SESSION },
      },
      async ({ params: values, res }) => {
        const { owner, row } = await sessionOf(values);
        await answerText(res, asFile(`trace-${row.id}.txt`), sessionText(store, row, title(owner)));
      },
    ),
    delete: endpoint(
      {
        summary: 'Removes the trace of a session',
        audit: ['trace', 'removed'],
        params: withSession,
        answers: { 204: 'Removed.', ...NO_SESSION },
      },
      async ({ params: values, res }) => {
        const { owner, row } = await sessionOf(values);
        await store.remove(owner, row.id);
        logger.info({ [noun]: owner, session: row.id }, 'trace of a session removed');
        res.status(204).end();
      },
    ),
  });
};

const asFile = (filename: string): TextFile => ({ type: 'text/plain', filename });

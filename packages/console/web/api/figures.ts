/** Totals of the history, by hours or by days, and what the process tells of its queue. */
import { answerOf, clientApp, serverApp } from './rest.ts';
import { app } from './session.ts';
import type { components } from './generated/server.ts';

type Statistics = components['schemas']['Statistics'];
type Totals = Pick<Statistics, 'byStatus' | 'bytesTransferred' | 'duration' | 'failureRate'>;

export const RANGES = ['day', 'month'] as const;
export type Range = (typeof RANGES)[number];

/** What happened in an hour or a day. */
export interface Bucket {
  /** Its begin, milliseconds since 1970. */
  readonly at: number;
  readonly completed: number;
  readonly failed: number;
  readonly bytes: number;
  /** Milliseconds; null: none was completed. */
  readonly p50: number | null;
  readonly p95: number | null;
}

/** Milliseconds. */
const LENGTHS = { hour: 3_600_000, day: 86_400_000 } as const;
const HOURS = 24;
const DAYS = 30;

const totals = (query: { from: string; groupBy: 'hour' | 'day' }, signal: AbortSignal): Promise<Statistics> =>
  app.value === 'server'
    ? answerOf(serverApp.GET('/api/v1/transfers/stats', { params: { query }, signal }))
    : answerOf(clientApp.GET('/api/v1/transfers/stats', { params: { query }, signal }));

const count = (by: Totals['byStatus'], status: string): number => {
  const value = (by as Readonly<Record<string, unknown>>)[status];
  return typeof value === 'number' ? value : 0;
};

const bucketOf = (at: number, of: Totals): Bucket => ({
  at,
  completed: count(of.byStatus, 'COMPLETED'),
  failed: count(of.byStatus, 'FAILED'),
  bytes: of.bytesTransferred,
  p50: of.duration?.p50 ?? null,
  p95: of.duration?.p95 ?? null,
});

const none: Totals = { byStatus: {}, bytesTransferred: 0, duration: null, failureRate: null };

/** So many spans of time up to now, one request for all. */
const buckets = async (groupBy: 'hour' | 'day', most: number, signal: AbortSignal): Promise<readonly Bucket[]> => {
  const length = LENGTHS[groupBy];
  const last = Math.floor(Date.now() / length) * length;
  const wanted = Array.from({ length: most }, (_, index) => last - (most - 1 - index) * length);
  const from = new Date(wanted[0] ?? last).toISOString();
  const { groups = [] } = await totals({ from, groupBy }, signal);
  const known = new Map(groups.map((group) => [Date.parse(group.value ?? ''), group]));
  return wanted.map((at) => bucketOf(at, known.get(at) ?? none));
};

export const figures = (range: Range, signal: AbortSignal): Promise<readonly Bucket[]> =>
  range === 'day' ? buckets('hour', HOURS, signal) : buckets('day', DAYS, signal);

/** How long transfers waited for their first attempt, since the process that answers began; seconds at most. */
export interface Waits {
  readonly count: number;
  readonly p50: number;
  readonly p95: number;
}

const BUCKET = /^pesit_queue_wait_seconds_bucket\{[^}]*le="([^"]+)"[^}]*\} (\S+)/gm;

/** From the histogram among the metrics; null: nothing has waited yet. */
export const waitsOf = (metrics: string): Waits | null => {
  const sums = new Map<number, number>();
  for (const [, le = '', value] of metrics.matchAll(BUCKET)) {
    const edge = le === '+Inf' ? Infinity : Number(le);
    sums.set(edge, (sums.get(edge) ?? 0) + Number(value));
  }
  const edges = [...sums].sort(([a], [b]) => a - b);
  const all = edges.at(-1)?.[1] ?? 0;
  if (all === 0) return null;
  const below = (share: number): number => edges.find(([, sum]) => sum >= all * share)?.[0] ?? Infinity;
  return { count: all, p50: below(0.5), p95: below(0.95) };
};

/** Of the client app; the other one has no queue. */
export const queueWaits = async (signal: AbortSignal): Promise<Waits | null> => {
  if (app.value === 'server') return null;
  return waitsOf(await answerOf(clientApp.GET('/metrics', { parseAs: 'text', signal })));
};

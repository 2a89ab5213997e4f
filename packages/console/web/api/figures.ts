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

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const HOURS = 24;
const DAYS = 30;
/** Requests at a time. */
const AT_ONCE = 4;
/** An hour that ended so long ago is asked for once. */
const SETTLED_MS = 2 * HOUR_MS;

const totals = (query: { from: string; to?: string; groupBy?: 'day' }, signal: AbortSignal): Promise<Statistics> =>
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

const settled = new Map<string, Bucket>();

const hour = async (at: number, now: number, signal: AbortSignal): Promise<Bucket> => {
  const key = `${app.value} ${at}`;
  const known = settled.get(key);
  if (known !== undefined) return known;
  // `to` is the last millisecond that counts.
  const query = { from: new Date(at).toISOString(), to: new Date(at + HOUR_MS - 1).toISOString() };
  const bucket = bucketOf(at, await totals(query, signal));
  if (now - at - HOUR_MS > SETTLED_MS) settled.set(key, bucket);
  return bucket;
};

const hours = async (signal: AbortSignal): Promise<readonly Bucket[]> => {
  const now = Date.now();
  const last = Math.floor(now / HOUR_MS) * HOUR_MS;
  const wanted = Array.from({ length: HOURS }, (_, index) => last - (HOURS - 1 - index) * HOUR_MS);
  const buckets = new Map<number, Bucket>();
  const left = [...wanted];
  const work = async (): Promise<void> => {
    for (let at = left.pop(); at !== undefined; at = left.pop()) buckets.set(at, await hour(at, now, signal));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return wanted.flatMap((at) => buckets.get(at) ?? []);
};

const days = async (signal: AbortSignal): Promise<readonly Bucket[]> => {
  const today = Math.floor(Date.now() / DAY_MS) * DAY_MS;
  const wanted = Array.from({ length: DAYS }, (_, index) => today - (DAYS - 1 - index) * DAY_MS);
  const from = new Date(wanted[0] ?? today).toISOString();
  const { groups = [] } = await totals({ from, groupBy: 'day' }, signal);
  const byDay = new Map(groups.map((group) => [Date.parse(group.value ?? ''), group]));
  const none: Totals = { byStatus: {}, bytesTransferred: 0, duration: null, failureRate: null };
  return wanted.map((at) => bucketOf(at, byDay.get(at) ?? none));
};

export const figures = (range: Range, signal: AbortSignal): Promise<readonly Bucket[]> =>
  range === 'day' ? hours(signal) : days(signal);

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

import { useLocation } from 'preact-iso';
import { useMemo } from 'preact/hooks';

import { useAnswer } from '../api/answer.ts';
import { figures, queueWaits, RANGES } from '../api/figures.ts';
import type { Bucket, Range, Waits } from '../api/figures.ts';
import { app } from '../api/session.ts';
import { Chart } from '../parts/chart.tsx';
import type { Series } from '../parts/chart.tsx';
import { FailureNote } from '../parts/failure-note.tsx';
import { Card, Facts, Loading, Page } from '../parts/page.tsx';
import { bytes, number, rate, shortDay, shortTime, span } from '../texts/format.ts';
import { figuresWords } from '../texts/figures.ts';
import { texts } from '../texts/index.ts';
import '../style/figures.css';

const EVERY_MS = 60_000;
const SECONDS = { day: 3600, month: 86_400 } as const;

const Totals = ({ of, range }: { readonly of: readonly Bucket[]; readonly range: Range }) => {
  const words = figuresWords.value;
  const sum = (value: (bucket: Bucket) => number): number => of.reduce((all, bucket) => all + value(bucket), 0);
  const completed = sum((bucket) => bucket.completed);
  const failed = sum((bucket) => bucket.failed);
  const all = sum((bucket) => bucket.bytes);
  const ended = completed + failed;
  return (
    <Card title={words.totals}>
      <Facts
        of={[
          [words.completed, number(completed)],
          [words.failed, number(failed)],
          [words.share, ended === 0 ? null : words.percent((failed / ended) * 100)],
          [words.volume, bytes(all)],
          [words.meanRate, all === 0 ? null : rate(all / (of.length * SECONDS[range]))],
        ]}
      />
    </Card>
  );
};

const Queue = ({ of }: { readonly of: Waits | null | undefined }) => {
  const words = figuresWords.value;
  const edge = (seconds: number): string =>
    Number.isFinite(seconds) ? words.atMost(span(seconds * 1000)) : words.long;
  return (
    <Card title={words.queue}>
      {of === null || of === undefined ? (
        <p class="quiet">{words.noWait}</p>
      ) : (
        <>
          <Facts
            of={[
              [words.attempts, number(of.count)],
              [words.half, edge(of.p50)],
              [words.most, edge(of.p95)],
            ]}
          />
          <p class="quiet">{words.queueHint}</p>
        </>
      )}
    </Card>
  );
};

const Charts = ({ of, range }: { readonly of: readonly Bucket[]; readonly range: Range }) => {
  const words = figuresWords.value;
  const when = (at: number): string => (range === 'day' ? shortTime(at) : shortDay(at));
  const whenName = words.by[range];
  const charts = useMemo(() => {
    const values = (one: (bucket: Bucket) => number | null): readonly (number | null)[] => of.map(one);
    const line = { kind: 'line' } as const;
    const dots = { kind: 'dots' } as const;
    const bars = { kind: 'bars' } as const;
    const seconds = SECONDS[range];
    return {
      at: of.map(({ at }) => at),
      throughput: [{ ...bars, name: words.throughput, colour: '--run', values: values((one) => one.bytes / seconds) }],
      transfers: [
        { ...bars, name: words.completed, colour: '--good', values: values(({ completed }) => completed) },
        { ...line, name: words.failed, colour: '--bad', values: values(({ failed }) => failed) },
      ],
      durations: [
        { ...dots, name: words.half, colour: '--run', values: values(({ p50 }) => p50) },
        { ...dots, name: words.most, colour: '--warn', values: values(({ p95 }) => p95) },
      ],
    } satisfies Record<string, readonly number[] | readonly Series[]>;
  }, [of, range, words]);
  return (
    <>
      <Chart title={words.throughput} series={charts.throughput} format={rate} {...{ at: charts.at, when, whenName }} />
      <Chart
        title={words.transfers}
        series={charts.transfers}
        format={number}
        isCount
        {...{ at: charts.at, when, whenName }}
      />
      <Chart title={words.durations} series={charts.durations} format={span} {...{ at: charts.at, when, whenName }} />
    </>
  );
};

const rangeOf = (asked: string | undefined): Range => RANGES.find((range) => range === asked) ?? 'day';

/** A day, or a month, in figures: throughput, failures, durations, waits in the queue. */
export const FiguresPage = () => {
  const { query } = useLocation();
  const { pages } = texts.value;
  const words = figuresWords.value;
  const range = rangeOf(query['range']);
  const kind = app.value;
  const { value, failure, ask } = useAnswer(`figures ${kind} ${range}`, (signal) => figures(range, signal), EVERY_MS);
  const waits = useAnswer(`waits ${kind}`, queueWaits, EVERY_MS);
  return (
    <Page
      title={pages.figures}
      actions={
        <nav class="row" aria-label={words.ranges}>
          {RANGES.map((one) => (
            <a
              key={one}
              class={one === range ? 'button main' : 'button'}
              href={one === 'day' ? '/figures' : `/figures?range=${one}`}
              aria-current={one === range ? 'page' : undefined}
            >
              {words.range[one]}
            </a>
          ))}
        </nav>
      }
    >
      <FailureNote failure={failure ?? waits.failure} again={ask} isStale={value !== undefined} />
      {value === undefined ? (
        failure === undefined && <Loading />
      ) : (
        <div class="columns charts">
          <Totals of={value} range={range} />
          {kind === 'client' && <Queue of={waits.value} />}
          <Charts of={value} range={range} />
        </div>
      )}
    </Page>
  );
};

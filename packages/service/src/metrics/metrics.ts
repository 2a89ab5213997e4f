import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { OpenMetricsContentType } from 'prom-client';

import type { AppName } from '../config/keys.js';
import { within } from '@pesit-node/ground';
import type { Logger } from '../logging.js';
import { reasonOf } from '@pesit-node/ground';
import { metricRows, METRICS } from './table.js';
import type { LabelsOf, Metric, MetricName, MetricOf } from './table.js';

/** One sample of a gauge. */
export interface Sample<N extends MetricName = MetricName> {
  readonly labels: LabelsOf<N>;
  readonly value: number;
}

/** Value of a gauge; undefined: none, for now. */
export type Reading<N extends MetricName = MetricName> = number | readonly Sample<N>[] | undefined;

/** The readings that one look gives. */
export type Readings<N extends MetricName> = { readonly [K in N]?: Reading<K> };

export interface MetricsOptions<A extends AppName> {
  readonly app: A;
  /** Version of the app, for `service_build_info`. */
  readonly version: string;
  readonly logger: Logger;
  /** How long one look may take at a scrape, milliseconds. Default 2000. */
  readonly readTimeoutMs?: number;
}

interface GaugeReader {
  readonly names: readonly MetricName[];
  readonly read: () => Readings<MetricName> | Promise<Readings<MetricName>>;
}

type LooseLabels = Readonly<Record<string, string>>;

const READ_MS = 2000;
const KINDS = { server: 'inbound', client: 'outbound' } as const satisfies Record<AppName, string>;

/** Every combination of the values of labels; none when one of them is open-ended. */
const combinations = (labels: Metric['labels']): readonly LooseLabels[] =>
  Object.entries(labels).reduce<readonly LooseLabels[]>(
    (all, [label, values]) =>
      typeof values === 'string' ? [] : all.flatMap((one) => values.map((value) => ({ ...one, [label]: value }))),
    [{}],
  );

/**
 * The metrics of one app, as `METRICS` has them: counters and histograms live, gauges read at each scrape. Its registry is
 * its own, never the global one of the library.
 *
 * A gauge costs one call: `metrics.gauge('pesit_license_days_remaining', () => days)`. A gauge that cannot be read in time is left
 * out of that scrape; the rest is still answered.
 */
export class Metrics<A extends AppName = AppName> {
  /** Content-Type of the answer. */
  readonly contentType = Registry.OPENMETRICS_CONTENT_TYPE;
  readonly #registry = new Registry<OpenMetricsContentType>();
  readonly #counters = new Map<MetricName, Counter>();
  readonly #gauges = new Map<MetricName, Gauge>();
  readonly #histograms = new Map<MetricName, Histogram>();
  readonly #readers: GaugeReader[] = [];
  readonly #samplers: (() => void)[] = [];
  readonly #kind: string;
  readonly #logger: Logger;
  readonly #readTimeoutMs: number;

  constructor({ app, version, logger, readTimeoutMs = READ_MS }: MetricsOptions<A>) {
    this.#registry.setContentType(this.contentType);
    this.#kind = KINDS[app];
    this.#logger = logger;
    this.#readTimeoutMs = readTimeoutMs;
    for (const [name, metric] of metricRows(app)) this.#register(name, metric);
    this.#gauges.get('service_build_info')?.set({ version }, 1);
  }

  /** Counts. @param by default 1 */
  add<N extends MetricOf<A, 'counter'>>(name: N, labels: LabelsOf<N>, by = 1): void {
    this.#counters.get(name)?.inc(this.#labelsOf(name, labels), by);
  }

  /** Enters a value into a histogram. */
  observe<N extends MetricOf<A, 'histogram'>>(name: N, labels: LabelsOf<N>, value: number): void {
    this.#histograms.get(name)?.observe(this.#labelsOf(name, labels), value);
  }

  /** Reads a gauge at each scrape. @param read undefined: no sample for now; as is when it throws */
  gauge<N extends MetricOf<A, 'gauge'>>(name: N, read: () => Reading<N> | Promise<Reading<N>>): void {
    this.gauges([name], async () => ({ [name]: await read() }) as Readings<N>);
  }

  /** Reads several gauges at each scrape with one look; what `read` does not return has no sample for now. */
  gauges<N extends MetricOf<A, 'gauge'>>(names: readonly N[], read: () => Readings<N> | Promise<Readings<N>>): void {
    this.#readers.push({ names, read });
  }

  /** Called at each scrape, before anything is read: for counters of work that is still under way. */
  beforeScrape(sample: () => void): void {
    this.#samplers.push(sample);
  }

  /** Adds what is known of the process and of Node.js (`process_*`, `nodejs_*`). It watches until the process ends. */
  watchProcess(): void {
    collectDefaultMetrics({ register: this.#registry });
  }

  /** All metrics in the OpenMetrics text format. */
  async scrape(): Promise<string> {
    for (const sample of this.#samplers) sample();
    await Promise.all(this.#readers.map((reader) => this.#read(reader)));
    // A figure of Node.js that is not known yet: the library writes it as no format has it.
    return (await this.#registry.metrics()).replace(/^.* Nan\n/gm, '');
  }

  async #read({ names, read }: GaugeReader): Promise<void> {
    const what = names.join(', ');
    let readings: Readings<MetricName> = {};
    try {
      const reading = Promise.resolve(read());
      readings = await within(reading, this.#readTimeoutMs, `no answer within ${this.#readTimeoutMs} ms`);
    } catch (error) {
      this.#logger.debug({ metrics: what, reason: reasonOf(error) }, 'could not read metrics');
    }
    for (const name of names) this.#show(name, readings[name]);
  }

  #show(name: MetricName, reading: Reading): void {
    const gauge = this.#gauges.get(name);
    gauge?.reset();
    // A gauge without labels is 0 after a reset: it has no sample when nothing was read.
    if (reading === undefined) gauge?.remove({});
    else if (typeof reading === 'number') gauge?.set(reading);
    else for (const { labels, value } of reading) gauge?.set(labels, value);
  }

  #labelsOf<N extends MetricName>(name: N, labels: LabelsOf<N>): LooseLabels {
    return 'kind' in METRICS[name].labels ? { ...labels, kind: this.#kind } : labels;
  }

  #register(name: MetricName, { type, help, labels, buckets }: Metric): void {
    const registers = [this.#registry];
    const options = { name, help, labelNames: Object.keys(labels), registers };
    // An event that has not happened yet counts 0, not absent: a rate over it is known from the first event on.
    const known = combinations('kind' in labels ? { ...labels, kind: [this.#kind] } : labels);
    switch (type) {
      case 'counter': {
        const counter = new Counter(options);
        for (const one of known) counter.inc(one, 0);
        this.#counters.set(name, counter);
        break;
      }
      case 'gauge':
        this.#gauges.set(name, new Gauge(options));
        this.#show(name, undefined);
        break;
      case 'histogram': {
        const histogram = new Histogram({ ...options, buckets: [...(buckets ?? [])] });
        for (const one of known) histogram.zero(one);
        this.#histograms.set(name, histogram);
      }
    }
  }
}

/** The history of the server app at a million records: every kind of list that its interface can be asked for, and its totals. */
import { setTimeout as delay } from 'node:timers/promises';

import pg from 'pg';

import { timeConsole } from './console.js';
import { freshDatabase } from './database.js';
import { median, type Measurement } from './figures.js';
import { fillHistory, HISTORY_DAYS } from './history-rows.js';
import type { Options } from './options.js';
import { call } from './rest.js';
import { Service } from './service.js';

const ASKED = 20;
const DAY_MS = 86_400_000;

const daysAgo = (days: number): string => new Date(Date.now() - days * DAY_MS).toISOString().slice(0, 10);

/** Frequent and rare values, those that no index serves, those that no record has, and some together. */
const FILTERS: readonly string[] = [
  '',
  ...['direction=SEND', 'direction=RECEIVE', 'partnerId=PARTNER0000', 'partnerId=PARTNER0250', 'partnerId=NOBODY'],
  ...[
    'virtualFileId=FILE0',
    'virtualFileId=FILE59',
    'type=FILE',
    'type=MESSAGE',
    'restartable=true',
    'restartable=false',
  ],
  ...['status=COMPLETED', 'status=FAILED', 'status=CANCELLED', 'status=IN_PROGRESS', 'status=PENDING'],
  ...['diagnostic=0-000', 'diagnostic=2-205', 'diagnostic=3-304', 'diagnostic=2-233', 'node=pod-1', 'node=pod-9'],
  ...['listener=LISTENER0', 'listener=LISTENER6', 'q=invoice', 'q=nowhere', 'q=invoice_77', `from=${daysAgo(1)}`],
  ...[`from=${daysAgo(30)}`, `from=${daysAgo(60)}&to=${daysAgo(59)}`, `to=${daysAgo(80)}`],
  ...['partnerId=PARTNER0000&status=FAILED', 'partnerId=PARTNER0000&virtualFileId=FILE59&direction=SEND'],
  ...[`partnerId=PARTNER0001&status=COMPLETED&from=${daysAgo(30)}`, 'status=CANCELLED&virtualFileId=FILE3&q=nowhere'],
];
const ORDERS = ['', '&sort=startTime,asc'];
/** Where these leave few enough, every order is possible. */
const OTHER_ORDERS: readonly string[] = ['id', 'endTime', 'partnerId', 'filename', 'status', 'size'].map(
  (field) => `partnerId=PARTNER0250&sort=${field},desc`,
);
/** Totals, most of 30 days: from sums, and where there are none from the records. */
const STATISTICS: readonly string[] = [
  '',
  ...['day', 'partner', 'server', 'virtualFile', 'status', 'diagnostic', 'direction', 'node', 'type'].map(
    (group) => `groupBy=${group}`,
  ),
  ...['partnerId=PARTNER0000', 'partnerId=PARTNER0000&groupBy=day', 'virtualFileId=FILE0&groupBy=day', 'node=pod-1'],
  ...[
    'diagnostic=2-205&groupBy=partner',
    'direction=SEND&groupBy=virtualFile',
    'partnerId=PARTNER0000&groupBy=virtualFile',
  ],
].map((query) => `stats?from=${daysAgo(30)}&${query}`);

interface Timed {
  readonly query: string;
  readonly times: readonly number[];
}

const percentile = (times: readonly number[], share: number): number =>
  [...times].sort((a, b) => a - b)[Math.ceil(times.length * share) - 1] ?? 0;

const line = ({ query, times }: Timed): string =>
  times.length === 0
    ? `  refused          ${query}`
    : `  ${median(times).toFixed(1).padStart(7)} ${percentile(times, 0.99).toFixed(1).padStart(7)}  ${query}`;

export class HistoryBench {
  readonly #service: Service;
  readonly #url: string;

  private constructor(service: Service, url: string) {
    this.#service = service;
    this.#url = url;
  }

  /** @throws Error without a PostgreSQL of its own: the rows are made in it */
  static async start(directory: string, options: Options): Promise<HistoryBench> {
    const settings = await freshDatabase(options.database, 'history');
    const url = settings['DATABASE_URL'];
    if (url === undefined) throw new Error('history: the rows are made in PostgreSQL: expected --database postgresql');
    const service = await Service.start('server', directory, settings);
    try {
      const began = performance.now();
      await fillHistory('server', url, options.historyRows);
      const seconds = ((performance.now() - began) / 1000).toFixed(0);
      console.error(`history: ${options.historyRows.toLocaleString('en')} records made in ${seconds} s`);
    } catch (error) {
      await service.stop();
      throw error;
    }
    service.markIdle();
    return new HistoryBench(service, url);
  }

  async #ask(query: string): Promise<{ readonly ms: number; readonly next: string | null }> {
    const began = performance.now();
    const { next = null } = (await call('GET', `${this.#service.base}/api/v1/transfers${query}`)) as {
      readonly next?: string | null;
    };
    return { ms: performance.now() - began, next };
  }

  async #timed(query: string): Promise<Timed> {
    const times: number[] = [];
    for (let time = 0; time < ASKED; time++) times.push((await this.#ask(query)).ms);
    return { query, times };
  }

  /** Without times where the service refuses it: too many records to count, or to sort, one by one. */
  async #timedOrRefused(query: string): Promise<Timed> {
    try {
      return await this.#timed(query);
    } catch (error) {
      if (!/: 400 .*(?:added up one by one|"field":"sort")/s.test((error as Error).message)) throw error;
      return { query, times: [] };
    }
  }

  /** The leader adds the days up, beside what is asked for. */
  async #summedUp(): Promise<void> {
    const client = new pg.Client({ connectionString: this.#url });
    await client.connect();
    try {
      const began = performance.now();
      for (;;) {
        const { rows } = await client.query<{ days: number }>(
          `select count(*)::integer as days from pesit_server.transfer_sum_spans where hours = 24`,
        );
        if ((rows[0]?.days ?? 0) >= HISTORY_DAYS - 2) break;
        await delay(500);
      }
      await client.query('vacuum analyze pesit_server.transfer_sums');
      console.error(`history: days added up after ${((performance.now() - began) / 1000).toFixed(0)} s more`);
    } finally {
      await client.end();
    }
  }

  /** Asks for all of it, one after the other. */
  async run(): Promise<Measurement> {
    await this.#service.begin();
    const began = performance.now();
    const lists: Timed[] = [];
    for (const filter of FILTERS) {
      for (const order of ORDERS) {
        lists.push(await this.#timed(`?${filter}${order}`));
        const { next } = await this.#ask(`?size=500&${filter}${order}`);
        if (next !== null) lists.push(await this.#timed(`?${filter}${order}&after=${next}`));
      }
    }
    for (const query of [...OTHER_ORDERS, 'page=19&size=500', 'partnerId=PARTNER0000&page=499']) {
      lists.push(await this.#timedOrRefused(`?${query}`));
    }
    await this.#summedUp();
    const statistics: Timed[] = [];
    for (const query of [...STATISTICS, 'stats?', 'stats?groupBy=partner'])
      statistics.push(await this.#timedOrRefused(`/${query}`));
    const seconds = (performance.now() - began) / 1000;
    const refused = lists.filter(({ times }) => times.length === 0);
    const slowest = lists
      .filter(({ times }) => times.length > 0)
      .toSorted((a, b) => median(b.times) - median(a.times))
      .slice(0, 8);
    console.error(['      p50     p99  ms', ...[...slowest, ...refused, ...statistics].map(line)].join('\n'));
    const all = lists.flatMap(({ times }) => times);
    console.error(
      `  ${lists.length} lists: p50 ${median(all).toFixed(1)} ms, p99 ${percentile(all, 0.99).toFixed(1)} ms, longest ${Math.max(...all).toFixed(1)} ms`,
    );
    return {
      seconds,
      bytes: 0,
      transfers: all.length + ASKED * statistics.length,
      processes: [await this.#service.end()],
    };
  }

  /** Does what an operator does on the console. */
  async runConsole(): Promise<Measurement> {
    await this.#summedUp();
    await this.#service.begin();
    const began = performance.now();
    const latenciesMs = await timeConsole(this.#service.base);
    const seconds = (performance.now() - began) / 1000;
    return { seconds, bytes: 0, transfers: latenciesMs.length, latenciesMs, processes: [await this.#service.end()] };
  }

  async stop(): Promise<void> {
    await this.#service.stop();
  }

  kill(): void {
    this.#service.kill();
  }
}

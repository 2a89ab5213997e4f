import { describe, expect, test } from '@jest/globals';
import { createHttpApp, HealthRegistry, Metrics, metricsMarkdown } from '@pesit-node/service';
import { captureLog, readOpenMetrics, silentLogger, testConfig, testMetrics } from '@pesit-node/service/testing';
import request from 'supertest';

import { METRICS } from '../../src/metrics/table.js';
import type { Metric } from '../../src/metrics/table.js';

const read = async (metrics: Metrics) => readOpenMetrics(await metrics.scrape());

describe('the registry of an app', () => {
  test('knows the metrics of the app alone, what has not happened is 0', async () => {
    const server = await read(testMetrics('server'));
    const client = await read(testMetrics('client'));
    expect(server.get('service_build_info{version="1.2.3"}')).toBe(1);
    expect(server.get('service_transfers_total{direction="SEND",kind="inbound",status="FAILED"}')).toBe(0);
    expect(client.get('service_transfers_total{direction="SEND",kind="outbound",status="FAILED"}')).toBe(0);
    expect(server.get('pesit_transfer_duration_seconds_bucket{direction="RECEIVE",le="+Inf"}')).toBe(0);
    expect(client.get('pesit_transfer_retries_total{reason="postponed"}')).toBe(0);
    expect([...server.keys()].filter((key) => key.includes('retries') || key.includes('outbound'))).toEqual([]);
  });

  test('two apps in one process count apart', async () => {
    const [one, two] = [testMetrics('server'), testMetrics('server')];
    one.add('pesit_sessions_total', {}, 3);
    expect((await read(one)).get('pesit_sessions_total')).toBe(3);
    expect((await read(two)).get('pesit_sessions_total')).toBe(0);
  });

  test('counts, and enters into histograms', async () => {
    const metrics = testMetrics('server');
    metrics.add('service_transfers_total', { direction: 'RECEIVE', status: 'COMPLETED' });
    metrics.add('service_transfers_total', { direction: 'RECEIVE', status: 'COMPLETED' }, 2);
    metrics.observe('pesit_transfer_duration_seconds', { direction: 'SEND' }, 4);
    for (let scrape = 0; scrape < 2; scrape++) {
      const samples = await read(metrics);
      expect(samples.get('service_transfers_total{direction="RECEIVE",kind="inbound",status="COMPLETED"}')).toBe(3);
      expect(samples.get('pesit_transfer_duration_seconds_bucket{direction="SEND",le="1"}')).toBe(0);
      expect(samples.get('pesit_transfer_duration_seconds_bucket{direction="SEND",le="5"}')).toBe(1);
      expect(samples.get('pesit_transfer_duration_seconds_sum{direction="SEND"}')).toBe(4);
    }
  });

  test('a label value with every character that the format escapes', async () => {
    const metrics = testMetrics('client');
    metrics.add('pesit_peer_transfers_total', { peer: 'a"b\\c\nd', direction: 'SEND', status: 'FAILED' });
    const samples = await read(metrics);
    expect(samples.get('pesit_peer_transfers_total{direction="SEND",peer="a\\"b\\\\c\\nd",status="FAILED"}')).toBe(1);
  });

  test('gauges are read at each scrape; one without a value has no sample', async () => {
    const metrics = testMetrics('server');
    let days: number | undefined = 12;
    metrics.gauge('pesit_license_days_remaining', () => days);
    expect((await read(metrics)).get('pesit_license_days_remaining')).toBe(12);
    days = 0;
    expect((await read(metrics)).get('pesit_license_days_remaining')).toBe(0);
    days = undefined;
    expect((await read(metrics)).has('pesit_license_days_remaining')).toBe(false);
    expect((await read(metrics)).has('service_partners')).toBe(false);
  });

  test('several gauges from one look; labels that are gone are gone', async () => {
    const metrics = testMetrics('server');
    let looks = 0;
    metrics.gauges(['service_listeners', 'pesit_listeners'], () => {
      looks++;
      const samples = looks === 1 ? [{ labels: { status: 'FAILED' } as const, value: 2 }] : [];
      return { service_listeners: 5, pesit_listeners: samples };
    });
    expect((await read(metrics)).get('pesit_listeners{status="FAILED"}')).toBe(2);
    const second = await read(metrics);
    expect([second.get('service_listeners'), second.has('pesit_listeners{status="FAILED"}'), looks]).toEqual([
      5,
      false,
      2,
    ]);
  });

  test('what cannot be read, or not in time, is left out of the answer, and said in the log', async () => {
    const log = captureLog();
    const metrics = new Metrics({ app: 'server', version: '1', logger: log.logger, readTimeoutMs: 5 });
    metrics.gauge('service_partners', () => Promise.reject(new Error('the database is away')));
    metrics.gauge('service_virtual_files', () => new Promise(() => undefined));
    metrics.gauge('service_listeners', () => {
      throw new Error('not thought of');
    });
    metrics.gauge('pesit_sessions_open', () => 4);
    const samples = await read(metrics);
    expect(samples.get('pesit_sessions_open')).toBe(4);
    for (const name of ['service_partners', 'service_virtual_files', 'service_listeners']) {
      expect(samples.has(name)).toBe(false);
    }
    expect(log.entries().map(({ reason }) => reason)).toEqual(
      expect.arrayContaining(['the database is away', 'not thought of', 'no answer within 5 ms']),
    );
  });

  test('process metrics in the same answer', async () => {
    const metrics = testMetrics('server');
    metrics.watchProcess();
    const samples = await read(metrics);
    expect(samples.get('process_resident_memory_bytes')).toBeGreaterThan(1e6);
    expect(samples.get('process_cpu_seconds_total')).toBeGreaterThan(0);
    expect([...samples.keys()].some((key) => key.startsWith('nodejs_eventloop_lag'))).toBe(true);
  });
});

describe('/metrics and /actuator/prometheus', () => {
  const build = (isPublic: boolean) => {
    const metrics = testMetrics('server');
    const app = createHttpApp({
      config: testConfig('server', { 'data.directory': '/nowhere', 'metrics.public': isPublic }),
      info: { name: 'test', version: '1' },
      logger: silentLogger,
      health: new HealthRegistry(),
      metrics,
      routes: () => undefined,
    });
    return { app, metrics };
  };

  test.each(['/metrics', '/actuator/prometheus'])('%s: OpenMetrics behind the login', async (path) => {
    const { app, metrics } = build(false);
    metrics.add('pesit_sessions_total', {}, 7);
    expect((await request(app).get(path)).status).toBe(401);
    const { status, headers, text } = await request(app).get(path).auth('admin', 'admin').buffer(true);
    expect([status, headers['content-type'], headers['cache-control']]).toEqual([
      200,
      'application/openmetrics-text; version=1.0.0; charset=utf-8',
      'no-store',
    ]);
    expect(readOpenMetrics(text).get('pesit_sessions_total')).toBe(7);
  });

  test('open with metrics.public', async () => {
    for (const path of ['/metrics', '/actuator/prometheus', '/actuator/info']) {
      expect([path, (await request(build(true).app).get(path)).status]).toEqual([path, 200]);
    }
  });
});

describe('the table', () => {
  test.each(Object.entries(METRICS))('%s is named and described as the format wants it', (name, metric) => {
    expect(name).toMatch(/^(?:service|pesit)_[a-z_]+$/);
    expect(name.endsWith('_total')).toBe(metric.type === 'counter');
    expect(metric.help).toMatch(/[.)]$/);
    for (const label of Object.keys(metric.labels)) expect(label).toMatch(/^[a-z]+$/);
  });

  test('labels without a list of values are these alone, each bounded by the configuration or the specification', () => {
    const open = Object.values<Metric>(METRICS).flatMap(({ labels }) =>
      Object.entries(labels).flatMap(([label, values]) => (typeof values === 'string' ? [label] : [])),
    );
    // Codes of PeSIT and `other`; partners and remote servers; stores; columns of the database; the one version.
    const bounded = ['diagnostic', 'peer', 'store', 'column', 'version'];
    expect([...new Set(open)].filter((label) => !bounded.includes(label))).toEqual([]);
  });

  test('the names of the specification are there', () => {
    expect(Object.keys(METRICS)).toEqual(
      expect.arrayContaining([
        'service_build_info',
        'service_transfers_total',
        'service_bytes_transferred_total',
        'service_listeners',
        'service_listeners_up',
        'service_partners',
        'service_virtual_files',
      ]),
    );
  });

  test('as a page: a row each, with the values of its labels', () => {
    const page = metricsMarkdown();
    expect(page.split('\n')).toHaveLength(Object.keys(METRICS).length + 3);
    expect(page).toContain('| `pesit_queue_depth` | gauge | client | `state`: `due`, `delayed`, `held` | ');
  });
});

import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { PeerDiagnostic } from '@pesit-node/protocol';
import { EventStream } from '@pesit-node/service';
import type { Metrics } from '@pesit-node/service';
import { readOpenMetrics, testMetrics } from '@pesit-node/service/testing';
import {
  FILE_FLUSHED,
  meterTransfers,
  SESSION_OPENED,
  SESSION_REFUSED,
  TRANSFER_BEGAN,
  TRANSFER_CONFIRMED,
  TRANSFER_ENDED,
  TRANSFER_POINT,
  TRANSFER_REFUSED,
  TRANSFER_WENT_ON,
} from '@pesit-node/transfers';
import type { EndStatus, Figures, ObservedTransfer } from '@pesit-node/transfers';

let metrics: Metrics;
let events: EventStream;
let now: number;

beforeEach(() => {
  now = 1000;
  metrics = testMetrics('server');
  events = new EventStream({
    app: 'server',
    node: 'pod-1',
    failed: (error) => {
      throw error;
    },
  });
  meterTransfers(events, metrics, () => now);
});

afterEach(() => {
  events.close();
});

const meter = {
  begins: (transfer: ObservedTransfer) => {
    events.publish(TRANSFER_BEGAN, { session: undefined, transfer, facts: {} });
  },
  goesFrom: (transfer: ObservedTransfer, from: Figures) => {
    events.publish(TRANSFER_WENT_ON, { session: undefined, transfer, from, attempt: 'next', facts: {} });
  },
  ends: (transfer: ObservedTransfer, status: EndStatus | undefined, diagnostic?: string) => {
    events.publish(TRANSFER_ENDED, { session: undefined, transfer, status, diagnostic, facts: {} });
  },
  over: (status: EndStatus, diagnostic: string) => {
    const refused = {
      session: undefined,
      type: 'FILE',
      direction: 'SEND',
      peer: 'ACME',
      error: undefined,
      counted: false,
    } as const;
    events.publish(TRANSFER_REFUSED, { ...refused, status, diagnostic, facts: {} });
  },
  sessionOpened: () => {
    events.publish(SESSION_OPENED, { session: { id: 's', facts: {} }, facts: {} });
  },
  sessionRefused: (diagnostic?: string) => {
    const refused = { session: { facts: {} }, error: undefined, facts: {} };
    events.publish(SESSION_REFUSED, { ...refused, diagnostic: diagnostic as PeerDiagnostic | undefined });
  },
};

const samples = async () => readOpenMetrics(await metrics.scrape());
const value = async (key: string) => (await samples()).get(key);
const BYTES = 'service_bytes_transferred_total{direction="RECEIVE",kind="inbound"}';
const POINTS = 'pesit_sync_points_total{direction="RECEIVE"}';

const transfer = (direction: 'SEND' | 'RECEIVE' = 'RECEIVE') => {
  const figures = { dataBytes: 0, syncPoint: 0 };
  return {
    figures,
    one: { id: 1, type: 'FILE', direction, peer: 'ACME', progress: () => ({ ...figures }) } satisfies ObservedTransfer,
  };
};

test('a transfer from its begin to its end', async () => {
  const { figures, one } = transfer();
  meter.begins(one);
  expect(await value('pesit_transfers_started_total{direction="RECEIVE"}')).toBe(1);
  expect(await value('pesit_transfers_running{direction="RECEIVE"}')).toBe(1);
  Object.assign(figures, { dataBytes: 700, syncPoint: 2 });
  expect(await value(BYTES)).toBe(700);
  Object.assign(figures, { dataBytes: 1000, syncPoint: 3 });
  now += 2500;
  meter.ends(one, 'COMPLETED');
  const end = await samples();
  expect([end.get(BYTES), end.get(POINTS)]).toEqual([1000, 3]);
  expect(end.get('pesit_transfers_running{direction="RECEIVE"}')).toBe(0);
  expect(end.get('service_transfers_total{direction="RECEIVE",kind="inbound",status="COMPLETED"}')).toBe(1);
  expect(end.get('pesit_peer_transfers_total{direction="RECEIVE",peer="ACME",status="COMPLETED"}')).toBe(1);
  expect(end.get('pesit_transfer_duration_seconds_sum{direction="RECEIVE"}')).toBe(2.5);
});

test('a restart counts what it moves itself', async () => {
  const { figures, one } = transfer();
  Object.assign(figures, { dataBytes: 5000, syncPoint: 5 });
  meter.begins(one);
  meter.goesFrom(one, { dataBytes: 5000, syncPoint: 5 });
  Object.assign(figures, { dataBytes: 6000, syncPoint: 6 });
  expect(await value(BYTES)).toBe(1000);
  expect(await value(POINTS)).toBe(1);
  expect(await value('pesit_transfer_restarts_total{direction="RECEIVE"}')).toBe(1);
});

test('a begin at the start is no restart', async () => {
  const { one } = transfer();
  meter.begins(one);
  meter.goesFrom(one, { dataBytes: 0, syncPoint: 0 });
  expect(await value('pesit_transfer_restarts_total{direction="RECEIVE"}')).toBe(0);
});

test('a resynchronisation takes nothing back, and what is sent again does not count again', async () => {
  const { figures, one } = transfer();
  meter.begins(one);
  for (const [dataBytes, syncPoint] of [
    [900, 9],
    [500, 5],
    [800, 8],
    [1000, 10],
  ] as const) {
    Object.assign(figures, { dataBytes, syncPoint });
    await samples();
  }
  expect([await value(BYTES), await value(POINTS)]).toEqual([1000, 10]);
});

test('failures by diagnostic; an unknown one is other', async () => {
  const { one } = transfer('SEND');
  meter.begins(one);
  meter.ends(one, 'FAILED', '2-211');
  meter.over('FAILED', '9-999');
  // Another attempt follows: an error, and no end.
  const { one: again } = transfer('SEND');
  meter.begins(again);
  meter.ends(again, undefined, '2-201');
  const end = await samples();
  const errors = (diagnostic: string) =>
    end.get(`pesit_transfer_errors_total{diagnostic="${diagnostic}",direction="SEND"}`);
  expect([errors('2-211'), errors('2-201'), errors('other'), errors('9-999')]).toEqual([1, 1, 1, undefined]);
  expect(end.get('service_transfers_total{direction="SEND",kind="inbound",status="FAILED"}')).toBe(2);
  expect(end.get('pesit_transfer_duration_seconds_count{direction="SEND"}')).toBe(0);
});

test('whatever codes partners make up, there are as many series as the specification has codes, and one', async () => {
  for (let code = 0; code < 10_000; code += 1) {
    const digits = String(code).padStart(4, '0');
    meter.over('FAILED', `${digits.slice(0, 1)}-${digits.slice(1)}`);
  }
  const series = [...(await samples()).keys()].filter((name) => name.startsWith('pesit_transfer_errors_total{'));
  expect(series.some((name) => name.includes('"other"'))).toBe(true);
  expect(series.length).toBeLessThan(150);
});

test('an end that is told twice counts once', async () => {
  const { one } = transfer();
  meter.begins(one);
  meter.ends(one, 'COMPLETED');
  meter.ends(one, 'FAILED', '2-211');
  expect(await value('pesit_transfers_running{direction="RECEIVE"}')).toBe(0);
  expect(await value('service_transfers_total{direction="RECEIVE",kind="inbound",status="FAILED"}')).toBe(0);
});

test('sessions', async () => {
  meter.sessionOpened();
  meter.sessionRefused('2-205');
  meter.sessionRefused('partner text');
  meter.sessionRefused();
  const end = await samples();
  const refused = (diagnostic: string) => end.get(`pesit_sessions_refused_total{diagnostic="${diagnostic}"}`);
  expect(end.get('pesit_sessions_total')).toBe(1);
  expect(['2-205', 'other', 'none'].map(refused)).toEqual([1, 1, 1]);
});

test('flushes, and how long partners waited for an acknowledgement of ours', async () => {
  const { one } = transfer();
  const point = { number: 1, dataBytes: 1, articles: 1 };
  for (const ms of [3, 700]) events.publish(FILE_FLUSHED, { ms });
  events.publish(TRANSFER_POINT, { transfer: one, point, waitedMs: 40 });
  // Acknowledged by the partner: how long that took says nothing of this side.
  events.publish(TRANSFER_POINT, { transfer: one, point });
  events.publish(TRANSFER_CONFIRMED, { transfer: one, waitedMs: 2000 });
  const all = await samples();
  const series = (name: string, ...suffixes: readonly string[]) =>
    suffixes.map((suffix) => all.get(`${name}${suffix}`));
  expect(
    series('pesit_flush_duration_seconds', '_count', '_sum', '_bucket{le="0.0025"}', '_bucket{le="0.005"}'),
  ).toEqual([2, 0.703, 0, 1]);
  const waited = ['_count{of="SYN"}', '_sum{of="SYN"}', '_count{of="TRANS.END"}', '_sum{of="TRANS.END"}'];
  expect(series('pesit_acknowledgement_seconds', ...waited)).toEqual([1, 0.04, 1, 2]);
});

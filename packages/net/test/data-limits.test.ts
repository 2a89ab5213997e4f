/** How much goes through a connection at a time, when it is bounded: everything arrives all the same. */
import { describe, expect, test } from '@jest/globals';
import { dataLimits } from '../src/index.js';
import type { WireObserver } from '../src/index.js';
import { articlesOf, connect, create, listen, select } from './support/harness.js';
import { MemorySink, MemorySource } from './support/memory.js';
import { START } from './support/partner.js';

/** Headers, and sync points between the articles. */
const OVERHEAD = 100;
const ARTICLES = articlesOf(Array.from({ length: 300 }, () => 4090));

/** Lengths of what passes, per direction. */
class Meter {
  readonly sent: number[] = [];
  readonly received: number[] = [];
  readonly observer: WireObserver = (direction, bytes) => {
    this[direction].push(bytes.length);
  };
}

describe('a burst', () => {
  test('of a requester holds no more data than it may', async () => {
    const listening = await listen();
    const meter = new Meter();
    const requester = await connect(listening.port, { limits: { burst: 10_000 }, observer: meter.observer });
    await requester.sendFile({ request: create, source: new MemorySource(ARTICLES) });
    expect(listening.handlers[0]!.sinks[0]!.bytes.equals(Buffer.concat(ARTICLES))).toBe(true);
    expect(Math.max(...meter.sent)).toBeLessThan(10_000 + OVERHEAD);
    expect(Math.max(...meter.sent)).toBeGreaterThan(2 * 4090);
  });

  test('of a server, too; one article goes in any case', async () => {
    const meter = new Meter();
    const listening = await listen({ limits: { burst: 4096 } }, (handler) => {
      handler.connection.observe(meter.observer);
      handler.source = () => new MemorySource(articlesOf([9000, 10, 10, 9000]));
    });
    const requester = await connect(listening.port);
    const sink = new MemorySink();
    await requester.receiveFile({
      request: { ...select, maxEntitySize: 32_768 },
      open: () => Promise.resolve({ from: START, sink }),
      stored: () => Promise.resolve(),
    });
    expect(sink.articles.map(({ length }) => length)).toEqual([9000, 10, 10, 9000]);
    expect(meter.sent.filter((length) => length > 8000)).toHaveLength(2);
    expect(Math.max(...meter.sent)).toBeLessThan(9000 + OVERHEAD);
  });

  test('is as large as ever without a bound', async () => {
    const listening = await listen();
    const meter = new Meter();
    const requester = await connect(listening.port, { observer: meter.observer });
    await requester.sendFile({ request: create, source: new MemorySource(ARTICLES) });
    expect(Math.max(...meter.sent)).toBeGreaterThan(250_000);
  });
});

test('a read of the socket takes no more than it may, on either side', async () => {
  const atServer = new Meter();
  const listening = await listen({ limits: { read: 5000 } }, (handler) => {
    handler.connection.observe(atServer.observer);
    handler.source = () => new MemorySource(ARTICLES);
  });
  const atRequester = new Meter();
  const requester = await connect(listening.port, { limits: { read: 7000 }, observer: atRequester.observer });
  await requester.sendFile({ request: create, source: new MemorySource(ARTICLES) });
  expect(listening.handlers[0]!.sinks[0]!.bytes.equals(Buffer.concat(ARTICLES))).toBe(true);
  const sink = new MemorySink();
  await requester.receiveFile({
    request: select,
    open: () => Promise.resolve({ from: START, sink }),
    stored: () => Promise.resolve(),
  });
  expect(sink.bytes.equals(Buffer.concat(ARTICLES))).toBe(true);
  expect([Math.max(...atServer.received), Math.max(...atRequester.received)]).toEqual([5000, 7000]);
});

test('the sizes of the configuration come to these bounds', () => {
  expect(dataLimits({ chunk: 32_768, readBuffer: 65_536, socketBuffer: 8192 })).toEqual({ burst: 8192, read: 8192 });
  expect(dataLimits({ chunk: 32_768, readBuffer: 65_536, socketBuffer: 65_536 })).toEqual({
    burst: 32_768,
    read: 65_536,
  });
});

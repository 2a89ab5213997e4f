import { describe, expect, test } from '@jest/globals';
import type { Dialect } from '@pesit-node/protocol';
import { articlesOf, connect, create, listen, select } from './support/harness.js';
import { MemorySink, MemorySource } from './support/memory.js';
import { START } from './support/partner.js';

describe.each<Dialect>(['length-prefixed', 'raw'])('%s', (dialect) => {
  test.each([
    ['an empty file', []],
    ['one byte', [1]],
    ['many small articles', Array.from({ length: 5000 }, (_, i) => 1 + (i % 97))],
    ['segmented articles', [4091, 4090, 4089, 30_000, 12, 29_999]],
    ['8 MB', Array.from({ length: 2000 }, () => 4090)],
  ])('%s is written and read in one session', async (_, sizes) => {
    const articles = articlesOf(sizes);
    const { port, handlers } = await listen({}, (handler) => (handler.source = () => new MemorySource(articles)));
    const requester = await connect(port, { dialect });

    const written = await requester.sendFile({ request: create, source: new MemorySource(articles) });
    expect(written).toEqual({ dataBytes: Buffer.concat(articles).length, articles: articles.length });
    expect(handlers[0]!.sinks[0]!.articles.map((a) => a.toString('hex'))).toEqual(
      articles.map((a) => a.toString('hex')),
    );

    const sink = new MemorySink();
    const read = await requester.receiveFile({
      request: select,
      open: () => Promise.resolve({ from: START, sink }),
      stored: () => Promise.resolve(),
    });
    expect(read).toEqual(written);
    expect(sink.bytes.equals(Buffer.concat(articles))).toBe(true);
    await requester.release();
    await handlers[0]!.over;
    expect(handlers[0]!.imbalance).toEqual([]);
    expect(handlers[0]!.calls).toEqual([
      `CONNECT PART ${dialect}`,
      'CREATE FILE',
      'END',
      'DESELECTED',
      'SELECT FILE',
      'END',
      'DESELECTED',
      'ENDED released',
    ]);
  });
});

test('an application may take longer than the partner may: its answer starts the timer anew', async () => {
  const response = 100;
  const slow = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 2 * response));
  const { port, handlers } = await listen({ timers: { response } }, (handler) => {
    handler.hooks.create = slow;
    handler.hooks.write = slow;
    handler.hooks.endTransfer = slow;
  });
  const requester = await connect(port);
  const articles = articlesOf([10]);
  // Both sides have been silent for longer than Tp when the next file begins.
  for (let file = 0; file < 2; file++) {
    await slow();
    await requester.sendFile({ request: create, source: new MemorySource(articles) });
  }
  expect(handlers[0]!.failures).toEqual([]);
});

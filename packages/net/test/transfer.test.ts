import { randomBytes } from 'node:crypto';
import { afterEach, describe, expect, test } from '@jest/globals';
import { PesitError } from '@pesit-node/protocol';
import type { Dialect } from '@pesit-node/protocol';
import { PesitListener, PesitRequester } from '../src/index.js';
import type { ListenerOptions, RequesterOptions } from '../src/index.js';
import { MemorySink, MemorySource } from './support/memory.js';
import { START, TestHandler } from './support/partner.js';

const closing = new PesitError('the test is over', { fault: 'local', diagnostic: '3-316' });
const open: { close(): Promise<void> }[] = [];

async function listen(
  options: Partial<ListenerOptions> = {},
  prepare: (handler: TestHandler) => void = () => undefined,
) {
  const handlers: TestHandler[] = [];
  const rejected: string[] = [];
  const listener = await PesitListener.listen({
    host: '127.0.0.1',
    port: 0,
    maxConnections: 10,
    tcpipHeader: 'auto',
    accept: (connection) => {
      const handler = new TestHandler(connection);
      prepare(handler);
      handlers.push(handler);
      return handler;
    },
    rejected: (_, reason) => rejected.push(reason),
    ...options,
  });
  open.push({ close: () => listener.close(closing, 0) });
  return { listener, handlers, rejected };
}

async function connect(port: number, options: Partial<RequesterOptions> = {}): Promise<PesitRequester> {
  const requester = await PesitRequester.open({
    host: '127.0.0.1',
    port,
    dialect: 'length-prefixed',
    connectTimeout: 5000,
    connect: { requester: 'PARTNER', server: 'SERVER', accessType: 2, syncPoints: { intervalKb: 256, window: 8 } },
    ...options,
  });
  open.push({ close: () => requester.release() });
  return requester;
}

afterEach(async () => {
  await Promise.all(open.splice(0).map((resource) => resource.close()));
});

const create = {
  fileIdentifier: { fileType: 0, fileName: 'FILE' },
  transferId: 5,
  maxEntitySize: 4096,
  recordFormat: 128,
  recordLength: 30_000,
  maxReservationKb: 100,
};
const select = { fileIdentifier: { fileType: 0, fileName: 'FILE' }, transferId: 0, maxEntitySize: 4096 };

function articlesOf(sizes: readonly number[]): Buffer[] {
  return sizes.map((size) => randomBytes(size));
}

describe.each<Dialect>(['length-prefixed', 'raw'])('%s', (dialect) => {
  test.each([
    ['an empty file', []],
    ['one byte', [1]],
    ['many small articles', Array.from({ length: 5000 }, (_, i) => 1 + (i % 97))],
    ['segmented articles', [4091, 4090, 4089, 30_000, 12, 29_999]],
    ['8 MB', Array.from({ length: 2000 }, () => 4090)],
  ])('%s is written and read in one session', async (_, sizes) => {
    const articles = articlesOf(sizes);
    const { listener, handlers } = await listen({}, (handler) => (handler.source = () => new MemorySource(articles)));
    const requester = await connect(listener.port, { dialect });

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
    expect(handlers[0]!.bugs).toEqual([]);
    await requester.release();
    await handlers[0]!.ended_;
    expect(handlers[0]!.log.filter((line) => !line.startsWith('NOTICE'))).toEqual([
      `CONNECT PARTNER ${dialect}`,
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

/** What is negotiated for a connection and a file, over sockets: compression, CRC, and what both ends may say of each other. */
import { describe, expect, test } from '@jest/globals';
import type { CompressionMode, Dialect, SingleArticleStyle } from '@pesit-node/protocol';
import { connect, create, listen, rawPeer, rawServer, select } from './support/harness.js';
import { MemorySink, MemorySource } from './support/memory.js';
import { START } from './support/partner.js';
import { respond } from './support/responder.js';
import { OK } from './support/wire.js';

/** Records that either kind of compression shortens. */
const RECORDS = Array.from({ length: 2000 }, (_, i) =>
  Buffer.from(`${String(i).padStart(8, '0')}${'A'.repeat(40)}${'the same in every line '.repeat(2)}`),
);
const PLAIN = Buffer.concat(RECORDS);

describe('compression', () => {
  const modes: (0 | CompressionMode)[] = [0, 1, 2, 3];
  const cases = modes.flatMap((asked) => modes.map((allowed) => [asked, allowed, asked & allowed] as const));
  test.each(cases)('asked %i, allowed %i: %i is used, both ways', async (asked, allowed, used) => {
    const listening = await listen({}, (handler) => {
      handler.compression = allowed;
      handler.source = () => new MemorySource(RECORDS);
    });
    const requester = await connect(listening.port);
    const written = await requester.sendFile({
      request: { ...create, compression: asked },
      source: new MemorySource(RECORDS),
    });
    expect(listening.handlers[0]!.sinks[0]!.bytes.equals(PLAIN)).toBe(true);
    expect(listening.handlers[0]!.connection.fileTerms).toEqual({ maxEntitySize: 4096, compression: used });
    expect(requester.fileTerms).toEqual({ maxEntitySize: 4096, compression: used });

    const sink = new MemorySink();
    const read = await requester.receiveFile({
      request: { ...select, compression: asked },
      open: () => Promise.resolve({ from: START, sink }),
      stored: () => Promise.resolve(),
    });
    expect(sink.bytes.equals(PLAIN)).toBe(true);
    expect(requester.fileTerms).toEqual({ maxEntitySize: 4096, compression: used });
    for (const { dataBytes, articles } of [written, read]) {
      expect(articles).toBe(2000);
      if (used === 0) expect(dataBytes).toBe(PLAIN.length);
      else expect(dataBytes).toBeLessThan(PLAIN.length / 1.5);
    }
    await requester.release();
    expect(listening.handlers[0]!.imbalance).toEqual([]);
  });

  test('is forgotten with the file', async () => {
    const listening = await listen({}, (handler) => {
      handler.compression = 3;
    });
    const requester = await connect(listening.port);
    await requester.sendFile({ request: { ...create, compression: 3 }, source: new MemorySource(RECORDS) });
    const plain = await requester.sendFile({ request: create, source: new MemorySource(RECORDS) });
    expect(plain.dataBytes).toBe(PLAIN.length);
    expect(requester.fileTerms).toEqual({ maxEntitySize: 4096, compression: 0 });
  });
});

test.each<[Dialect, boolean]>([
  ['length-prefixed', false],
  ['length-prefixed', true],
  ['raw', false],
  ['raw', true],
])('the terms, as both ends tell them: %s, CRC %s', async (dialect, crc) => {
  const listening = await listen({}, (handler) => {
    handler.connectAnswer = { syncPoints: { intervalKb: 64, window: 4 } };
  });
  const requester = await connect(listening.port, {
    dialect,
    connect: {
      requester: 'PART',
      server: 'SERV',
      accessType: 0,
      syncPoints: { intervalKb: 128, window: 2 },
      crc,
    },
  });
  const terms = {
    dialect,
    version: 2,
    crc,
    syncInterval: 65_536,
    syncWindow: 2,
    resynchronisation: false,
    accessType: 0,
  };
  expect(requester.terms).toEqual(terms);
  expect(listening.handlers[0]!.connection.terms).toEqual(terms);
  expect(requester.fileTerms).toBeUndefined();
  expect(listening.handlers[0]!.connection.fileTerms).toBeUndefined();
  await requester.sendFile({ request: create, source: new MemorySource(RECORDS) });
  expect(listening.handlers[0]!.sinks[0]!.bytes.equals(PLAIN)).toBe(true);
});

describe('single articles (ID.SRC 1) of a partner that is known', () => {
  /** Prefixed, as seen for the first time; plain when it is known that the partner writes plain articles. */
  const ARTICLE = Buffer.from('0003616263', 'hex');
  test.each<[SingleArticleStyle | undefined, string, string[]]>([
    [undefined, '616263', ['LEARNED']],
    ['unknown', '616263', ['LEARNED']],
    ['prefixed', '616263', []],
    ['plain', '0003616263', []],
  ])('a server that remembers %s reads %s', async (singleArticle, expected, learned) => {
    const listening = await listen({}, (handler) => {
      handler.connectAnswer = { singleArticle };
    });
    const peer = await rawPeer(listening.port);
    await peer.open();
    await peer.openToWrite();
    peer.send('DTF', ARTICLE, 1);
    peer.send('DTF.END', OK);
    await peer.exchange('TRANS.END', '', 'ACK(TRANS.END)');
    const handler = listening.handlers[0]!;
    expect(handler.sinks[0]!.bytes.toString('hex')).toBe(expected);
    expect(handler.calls.filter((line) => line === 'LEARNED')).toEqual(learned);
  });

  test.each<[SingleArticleStyle | undefined, string, SingleArticleStyle[]]>([
    [undefined, '616263', ['prefixed']],
    ['prefixed', '616263', []],
    ['plain', '0003616263', []],
  ])('a requester that remembers %s reads %s', async (singleArticle, expected, styles) => {
    const server = await rawServer(async (peer) => {
      await respond(peer, {
        READ: () => {
          peer.send('ACK(READ)', OK);
          peer.send('DTF', ARTICLE, 1);
          peer.send('DTF.END', OK);
        },
      });
      peer.socket.end();
    });
    const learned: SingleArticleStyle[] = [];
    const requester = await connect(server.port, { singleArticle, learned: (style) => learned.push(style) });
    const sink = new MemorySink();
    await requester.receiveFile({
      request: select,
      open: () => Promise.resolve({ from: START, sink }),
      stored: () => Promise.resolve(),
    });
    expect(sink.bytes.toString('hex')).toBe(expected);
    expect(learned).toEqual(styles);
  });
});

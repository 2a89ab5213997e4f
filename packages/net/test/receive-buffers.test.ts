/** Buffers that are used again: nothing that a file still needs is ever overwritten. */
import { createHash, randomFillSync } from 'node:crypto';
import { describe, expect, jest, test } from '@jest/globals';
import type { ArticleBatch, ArticleSource, Burst, Dialect } from '@pesit-node/protocol';
import { BulkBuffers, ReceiveBuffers } from '../src/receive-buffers.js';
import { articlesOf, connect, create, listen, rawPeer, select } from './support/harness.js';
import { MemorySink, MemorySource } from './support/memory.js';
import { START } from './support/partner.js';
import { OK, entity, fpdu } from './support/wire.js';

/** Bytes of a burst. */
const BURST = 524_288;

// Before the others, which leave buffers to be used again.
test('a file of one burst takes one buffer to be sent, and the next file the same', async () => {
  const allocated = jest.spyOn(Buffer, 'allocUnsafeSlow');
  const bursts = () => allocated.mock.calls.filter(([size]) => size >= BURST).length;
  try {
    const { port } = await listen();
    const requester = await connect(port);
    for (const sizes of [[4000], [4000], [10]]) {
      await requester.sendFile({ request: create, source: new MemorySource(articlesOf(sizes)) });
      expect(bursts()).toBe(1);
    }
    await requester.release();
  } finally {
    allocated.mockRestore();
  }
});

test('between files all connections read into one buffer, and each keeps what it was given', () => {
  const [one, other] = [new ReceiveBuffers(), new ReceiveBuffers()];
  const taken = [
    [one, 'CONNECT'],
    [other, 'SELECT'],
    [one, 'CREATE'],
  ] as const;
  const rooms = taken.map(([buffers]) => buffers.next());
  const kept = taken.map(([buffers, text], index) => {
    rooms[index]!.write(text);
    return buffers.take(text.length);
  });
  expect(new Set(rooms.map(({ buffer }) => buffer)).size).toBe(1);
  expect(kept.map(String)).toEqual(taken.map(([, text]) => text));
});

test('many short reads that are kept share their memory', () => {
  const buffers = new ReceiveBuffers();
  const kept = Array.from({ length: 1000 }, () => {
    buffers.next();
    return buffers.take(16).buffer;
  });
  expect(new Set(kept).size).toBeLessThanOrEqual(4);
});

test('a read that waits when buffers are given, or taken away, fills the room that it has', () => {
  const buffers = new ReceiveBuffers();
  const bulk = new BulkBuffers();
  buffers.next().write('before');
  buffers.given = bulk;
  expect(String(buffers.take(6))).toBe('before');
  const room = buffers.next();
  room.write('bulk');
  buffers.given = undefined;
  expect(buffers.take(4).buffer).toBe(room.buffer);
  expect(buffers.next().buffer).not.toBe(room.buffer);
});

/** Reads each batch only when its turn comes, as a slow disk does, and gives its memory back then. */
class LateSink extends MemorySink {
  readonly hash = createHash('sha256');
  readonly #queue: { batch: ArticleBatch; release: (() => void) | undefined }[] = [];
  readonly #keepBack: number;
  released = 0;

  /** @param keepBack batches that wait before the first is written */
  constructor(keepBack: number) {
    super();
    this.#keepBack = keepBack;
  }

  override write(batch: ArticleBatch, release?: () => void): boolean {
    this.taken += batch.bytes;
    this.#queue.push({ batch, release });
    while (this.#queue.length > this.#keepBack) this.#writeOne();
    return true;
  }

  #writeOne(): void {
    const { batch, release } = this.#queue.shift()!;
    for (const part of batch.parts) this.hash.update(part);
    this.released += 1;
    release?.();
  }

  digest(): string {
    while (this.#queue.length > 0) this.#writeOne();
    return this.hash.digest('hex');
  }
}

/** Random articles of changing sizes, and their hash. */
class RandomSource implements ArticleSource {
  readonly hash = createHash('sha256');
  #left: number;
  #turn = 0;
  readonly #sizes: readonly number[];

  constructor(bytes: number, sizes: readonly number[]) {
    this.#left = bytes;
    this.#sizes = sizes;
  }

  fill(burst: Burst): Promise<boolean> {
    for (;;) {
      const size = Math.min(this.#sizes[this.#turn % this.#sizes.length]!, this.#left);
      if (size === 0 || !burst.reserve(size)) break;
      this.#turn += 1;
      this.#left -= size;
    }
    for (const slot of burst.slots) this.hash.update(randomFillSync(slot));
    return Promise.resolve(this.#left > 0);
  }
}

const SIZE = 8 * 1024 * 1024;

describe.each([0, 1, 2, 7])('a sink that is %i batches behind', (behind) => {
  test.each<[Dialect, number, readonly number[]]>([
    ['length-prefixed', 32_768, [29_999, 30_000, 17, 4000]],
    ['raw', 4096, [4090, 100, 30_000]],
    ['raw', 32_768, [511, 513, 30_000, 1]],
  ])('%s, entities of %i: what is written is what was sent', async (dialect, maxEntitySize, sizes) => {
    const sink = new LateSink(behind);
    const sent = new RandomSource(SIZE, sizes);
    const served = new RandomSource(SIZE, sizes);
    const listening = await listen({}, (handler) => {
      handler.newSink = () => sink;
      handler.source = () => served;
    });
    const requester = await connect(listening.port, { dialect });
    await requester.sendFile({ request: { ...create, maxEntitySize }, source: sent });
    expect(sink.digest()).toBe(sent.hash.digest('hex'));

    const received = new LateSink(behind);
    await requester.receiveFile({
      request: { ...select, maxEntitySize },
      open: () => Promise.resolve({ from: START, sink: received }),
      stored: () => Promise.resolve(),
    });
    expect(received.digest()).toBe(served.hash.digest('hex'));
  });
});

test('pieces of any length: an FPDU across buffers stays whole until its file has it', async () => {
  const sink = new LateSink(3);
  const listening = await listen({}, (handler) => (handler.newSink = () => sink));
  const peer = await rawPeer(listening.port, 'raw');
  await peer.open();
  await peer.openToWrite();
  const hash = createHash('sha256');
  const stream: Buffer[] = [];
  for (let i = 0; i < 8000; i++) {
    const article = randomFillSync(Buffer.alloc(1 + ((i * 7919) % 1024)));
    hash.update(article);
    stream.push(entity('raw', fpdu('DTF', peer.otherId, 0, article)));
  }
  const bytes = Buffer.concat(stream);
  for (let at = 0, turn = 0; at < bytes.length; turn++) {
    const end = at + 1 + ((turn * 104_729) % 150_000);
    await new Promise((resolve) => peer.socket.write(bytes.subarray(at, end), resolve));
    at = end;
  }
  peer.send('DTF.END', OK);
  await peer.exchange('TRANS.END', '', 'ACK(TRANS.END)');
  expect(sink.digest()).toBe(hash.digest('hex'));
});

test('a sink that never gives memory back costs its garbage, not the whole file', async () => {
  const listening = await listen({}, (handler) => {
    handler.newSink = () => {
      const sink = new MemorySink();
      sink.keep = false;
      return sink;
    };
  });
  const requester = await connect(listening.port);
  const before = process.memoryUsage().arrayBuffers;
  let left = 5000;
  const source: ArticleSource = {
    fill: (burst) => {
      while (left > 0 && burst.reserve(32_000)) left -= 1;
      return Promise.resolve(left > 0);
    },
  };
  await requester.sendFile({ request: { ...create, recordLength: 32_000, maxEntitySize: 32_768 }, source });
  expect(listening.handlers[0]!.sinks[0]!.taken).toBe(160_000_000);
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(100_000_000);
});

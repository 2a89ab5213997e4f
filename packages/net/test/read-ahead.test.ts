/** The file is read while the partner's disk is busy; what is read waits for the window, and so does no other timer. */
import { describe, expect, test } from '@jest/globals';
import type { TestListener } from './support/harness.js';
import { articlesOf, gate, listen, rawPeer, tpHasPassed } from './support/harness.js';
import { MemorySource } from './support/memory.js';
import { diagnosticOf } from './support/wire.js';
import type { RawPeer } from './support/wire.js';

/** One article between two points. */
const ARTICLES = articlesOf(Array.from({ length: 5 }, () => 900));

/** A partner that reads `source`, up to the window of two points. */
async function reading(source: MemorySource, timers = {}): Promise<{ peer: RawPeer; listening: TestListener }> {
  const listening = await listen({ timers }, (handler) => (handler.source = () => source));
  const peer = await rawPeer(listening.port);
  await peer.open();
  await peer.openToRead();
  for (const name of ['DTF', 'SYN', 'DTF', 'SYN'] as const) await peer.expect(name);
  return { peer, listening };
}

/** A session beside it comes and goes: what was under way in the process has gone on. */
async function another(listening: TestListener): Promise<void> {
  const peer = await rawPeer(listening.port);
  await peer.open();
  await peer.release();
}

async function points(peer: RawPeer, ...expected: readonly string[]): Promise<void> {
  for (const point of expected) {
    await peer.expect('DTF');
    expect((await peer.expect('SYN')).body.toString('hex')).toBe(point);
  }
}

async function end(peer: RawPeer, listening: TestListener): Promise<void> {
  await peer.expect('DTF');
  await peer.expect('DTF.END');
  await peer.exchange('TRANS.END', '', 'ACK(TRANS.END)');
  await peer.closeFile();
  await peer.release();
  expect(listening.handlers[0]!.imbalance).toEqual([]);
}

describe('while the window is full', () => {
  test('the next burst is read, and not a byte of it is sent before ACK(SYN)', async () => {
    const source = new MemorySource(ARTICLES);
    const asked: number[] = [];
    const second = gate();
    source.beforeFill = (fill) => {
      asked.push(fill);
      if (fill === 1) second.open();
    };
    const { peer, listening } = await reading(source);
    await second.passed;
    const { length } = peer.received;
    await another(listening);
    expect([asked, peer.received.length]).toEqual([[0, 1], length]);

    peer.send('ACK(SYN)', '140101');
    await points(peer, '140103');
    peer.send('ACK(SYN)', '140103');
    await points(peer, '140104');
    await end(peer, listening);
  });

  test('an ACK(SYN) of the point that was read ahead is refused (3-311)', async () => {
    const { peer, listening } = await reading(new MemorySource(ARTICLES));
    peer.send('ACK(SYN)', '140103');
    expect(diagnosticOf(await peer.expect('ABORT'))).toBe('3-311');
    peer.socket.end();
    expect((await listening.handlers[0]!.over)?.diagnostic).toBe('3-311');
  });

  test('an interruption leaves the burst unsent', async () => {
    const { peer, listening } = await reading(new MemorySource(ARTICLES));
    await peer.exchange('IDT', '0203 0200d8 130110', 'ACK(IDT)');
    await peer.closeFile();
    await peer.release();
    expect(listening.handlers[0]!.calls.slice(2)).toEqual(['FAILED 2-216 end 16', 'DESELECTED', 'ENDED released']);
  });

  test('the partner has its time from the moment that we wait, however long the file took to read', async () => {
    const slow = gate();
    const source = new MemorySource(ARTICLES);
    source.beforeFill = (fill) => (fill === 1 ? slow.passed : undefined);
    const { peer, listening } = await reading(source, { response: 600 });
    await tpHasPassed(listening.port);
    slow.open();
    await another(listening);
    peer.send('ACK(SYN)', '140102');
    await points(peer, '140103', '140104');
    peer.send('ACK(SYN)', '140104');
    await end(peer, listening);
  });
});

/** RESYN over sockets (§3.6.3 p): damage on the line, both roles and directions; partners that go back when it is early or late. */
import { describe, expect, test } from '@jest/globals';
import { MAX_RESYNCHRONISATIONS, PesitError } from '@pesit-node/protocol';
import type { CompressionMode, Dialect } from '@pesit-node/protocol';
import type { PesitRequester } from '../src/index.js';
import { atEnd, connect, create, gate, listen, rawPeer, rejectionOf, select } from './support/harness.js';
import type { TestListener } from './support/harness.js';
import { MemorySink, MemorySource } from './support/memory.js';
import { START } from './support/partner.js';
import { Relay } from './support/relay.js';
import type { Change, Direction } from './support/relay.js';
import { BODIES, OK, diagnostic, diagnosticOf, valueOf } from './support/wire.js';
import type { RawPeer } from './support/wire.js';
import { ARTICLES, SYNC, at, point } from './support/resynchronising.js';

const PLAIN = Buffer.concat(ARTICLES);

interface Line {
  readonly listening: TestListener;
  readonly relay: Relay;
  readonly requester: PesitRequester;
  readonly source: MemorySource;
}

/** Both ends of ours with a relay between them. */
async function line(change: Change, more: { dialect?: Dialect; resynchronisation?: boolean } = {}): Promise<Line> {
  const { dialect = 'length-prefixed', resynchronisation = true } = more;
  const source = new MemorySource(ARTICLES);
  const listening = await listen({ timers: { response: 1000 } }, (handler) => {
    handler.connectAnswer = { syncPoints: SYNC, resynchronisation };
    handler.compression = 3;
    handler.source = () => source;
  });
  const relay = await Relay.start(listening.port, change);
  atEnd(() => relay.close());
  const requester = await connect(relay.port, {
    dialect,
    timers: { response: 1000 },
    connect: { requester: 'PART', server: 'SERV', accessType: 2, syncPoints: SYNC, resynchronisation, crc: true },
  });
  return { listening, relay, requester, source };
}

const receive = (requester: PesitRequester, sink: MemorySink, compression: CompressionMode | 0 = 0) =>
  requester.receiveFile({
    request: { ...select, compression },
    open: () => Promise.resolve({ from: START, sink }),
    stored: () => Promise.resolve(),
  });

/** Flips one bit at each of these offsets of one direction, counted from where the data begin; each once. */
function flips(direction: Direction, offsets: readonly number[]): { change: Change; arm: (at: number) => void } {
  let left: number[] = [];
  return {
    arm: (at) => {
      left = offsets.map((offset) => at + offset);
    },
    change: (bytes, offset, way) => {
      if (way !== direction) return bytes;
      left = left.filter((at) => {
        if (at < offset || at >= offset + bytes.length) return true;
        bytes[at - offset]! ^= 0x10;
        return false;
      });
      return bytes;
    },
  };
}

describe.each<Dialect>(['length-prefixed', 'raw'])('damage on the line, %s', (dialect) => {
  // A DTF of two articles and its CRC has 1,014 bytes, in its entity 1,016: these are data of several of them.
  test.each([[[600]], [[1900]], [[600, 3000, 9000, 20_000]], [[20_000, 20_001, 20_002]]])(
    'write, at %j: the file arrives',
    async (offsets) => {
      const { change, arm } = flips('to server', offsets);
      const { listening, relay, requester, source } = await line(change, { dialect });
      arm(relay.carried['to server'] + 100);
      expect(await requester.sendFile({ request: create, source })).toEqual({ dataBytes: 30_000, articles: 60 });
      const handler = listening.handlers[0]!;
      expect(handler.sinks[0]!.bytes.equals(PLAIN)).toBe(true);
      expect(handler.sinks[0]!.returns.length).toBeGreaterThan(0);
      expect(source.returns).toEqual(handler.sinks[0]!.returns);
      expect(requester.usable).toBe(true);
      await requester.release();
      expect(handler.imbalance).toEqual([]);
    },
  );

  test.each([[[600]], [[600, 3000, 9000, 20_000]]])('read, at %j: the file arrives', async (offsets) => {
    const { change, arm } = flips('to requester', offsets);
    const { listening, relay, requester, source } = await line(change, { dialect });
    arm(relay.carried['to requester'] + 100);
    const sink = new MemorySink();
    expect(await receive(requester, sink)).toEqual({ dataBytes: 30_000, articles: 60 });
    expect(sink.bytes.equals(PLAIN)).toBe(true);
    expect(sink.returns.length).toBeGreaterThan(0);
    expect(source.returns).toEqual(sink.returns);
    await requester.release();
    expect(listening.handlers[0]!.imbalance).toEqual([]);
  });

  test.each<[CompressionMode]>([[1], [2], [3]])('compressed (%i), both ways', async (compression) => {
    const directions = ['to server', 'to requester'] as const;
    const [up, down] = directions.map((direction) => flips(direction, [600, 9000]));
    const both: Change = (bytes, offset, way) => down!.change(up!.change(bytes, offset, way), offset, way);
    const { listening, relay, requester } = await line(both, { dialect });
    up!.arm(relay.carried['to server'] + 100);
    const written = await requester.sendFile({
      request: { ...create, compression },
      source: new MemorySource(ARTICLES),
    });
    expect(listening.handlers[0]!.sinks[0]!.bytes.equals(PLAIN)).toBe(true);
    down!.arm(relay.carried['to requester'] + 100);
    const sink = new MemorySink();
    expect(await receive(requester, sink, compression)).toEqual(written);
    expect(sink.bytes.equals(PLAIN)).toBe(true);
    expect([sink.returns.length, listening.handlers[0]!.sinks[0]!.returns.length]).toEqual([2, 2]);
  });

  test('TRANS.END that is damaged is sent again, behind the last point', async () => {
    let damaged = false;
    const { listening, requester, source } = await line(
      (bytes, _, way) => {
        const at = bytes.indexOf(Buffer.from('c008', 'hex'));
        if (way === 'to requester' || at < 0 || damaged) return bytes;
        damaged = true;
        bytes[at + 5]! ^= 1;
        return bytes;
      },
      { dialect },
    );
    expect(await requester.sendFile({ request: create, source })).toEqual({ dataBytes: 30_000, articles: 60 });
    const sink = listening.handlers[0]!.sinks[0]!;
    expect(sink.bytes.equals(PLAIN)).toBe(true);
    expect(sink.returns).toHaveLength(1);
    expect(listening.handlers[0]!.calls.slice(1)).toEqual(['CREATE FILE', 'END', 'DESELECTED']);
  });

  test('without PI 23: ABORT 3-310, and the sender knows why', async () => {
    const { change, arm } = flips('to server', [600]);
    const { listening, relay, requester, source } = await line(change, { dialect, resynchronisation: false });
    arm(relay.carried['to server'] + 100);
    const error = await rejectionOf(requester.sendFile({ request: create, source }));
    expect(error).toMatchObject({ fault: 'refused', diagnostic: '3-310' });
    expect(error.message).toContain('expected CRC');
    expect((await listening.handlers[0]!.over)?.diagnostic).toBe('3-310');
  });

  test('without end: 3-320 after the bound', async () => {
    const { listening, requester, source } = await line(
      (bytes, _, way) => {
        // Of every piece that holds data, some byte in their midst.
        if (way === 'to server' && bytes.length > 1000) bytes[700]! ^= 1;
        return bytes;
      },
      { dialect },
    );
    const error = await rejectionOf(requester.sendFile({ request: create, source }));
    expect(error).toMatchObject({ fault: 'refused', diagnostic: '3-320' });
    expect(listening.handlers[0]!.sinks[0]!.returns).toHaveLength(MAX_RESYNCHRONISATIONS);
  });
});

describe('whoever cannot go back interrupts the transfer, which is restarted later', () => {
  test('a sink', async () => {
    const { change, arm } = flips('to server', [600]);
    const { listening, relay, requester, source } = await line(change);
    listening.handlers[0]!.newSink = () => {
      const sink = new MemorySink();
      delete sink.goBack;
      return sink;
    };
    arm(relay.carried['to server'] + 100);
    const error = await rejectionOf(requester.sendFile({ request: create, source }));
    expect(error).toMatchObject({ fault: 'refused', diagnostic: '2-218' });
    expect(listening.handlers[0]!.calls).toContain('FAILED 2-218 end 4');
    const again = await requester.sendFile({ request: create, source: new MemorySource([Buffer.from('abc')]) });
    expect(again).toEqual({ dataBytes: 3, articles: 1 });
  });

  test.each(['a source', 'a source that fails'])('%s', async (kind) => {
    const { change, arm } = flips('to server', [600]);
    const { listening, relay, requester, source } = await line(change);
    const lost = new PesitError('the disk is gone', { fault: 'local', diagnostic: '2-213' });
    if (kind === 'a source') delete source.goBack;
    else source.beforeGoBack = () => Promise.reject(lost);
    const code = kind === 'a source' ? '2-218' : '2-213';
    arm(relay.carried['to server'] + 100);
    expect(await rejectionOf(requester.sendFile({ request: create, source }))).toMatchObject({ diagnostic: code });
    const handler = listening.handlers[0]!;
    await listening.until(() => handler.failures.length > 0);
    expect(handler.calls).toContain(`FAILED ${code} end 4`);
    expect(requester.usable).toBe(true);
  });
});

/** A partner of our server that has written seven articles, three points of which are acknowledged. */
async function writing(): Promise<{ peer: RawPeer; listening: TestListener; sink: MemorySink }> {
  const listening = await listen({}, (handler) => {
    handler.connectAnswer = { syncPoints: SYNC, resynchronisation: true };
  });
  const peer = await rawPeer(listening.port);
  await peer.open(`${BODIES.CONNECT.replace('0001 02', '0001 04')} 170101`);
  await peer.openToWrite();
  for (let i = 0; i < 7; i++) {
    if (i > 0 && i % 2 === 0) await peer.exchange('SYN', `14010${i / 2}`, 'ACK(SYN)');
    peer.send('DTF', ARTICLES[i]);
  }
  return { peer, listening, sink: listening.handlers[0]!.sinks[0]! };
}

/** The rest of seven articles from point `n` on, in one segment, up to TRANS.END. */
function rest(peer: RawPeer, n: number): Buffer {
  const parts: Buffer[] = [];
  for (let i = 2 * n; i < 7; i++) {
    if (i > 2 * n && i % 2 === 0) parts.push(peer.entity('SYN', `14010${i / 2}`));
    parts.push(peer.entity('DTF', ARTICLES[i]));
  }
  return Buffer.concat([...parts, peer.entity('DTF.END', OK), peer.entity('TRANS.END', '1b020dac 1c0107')]);
}

describe('a partner of our server goes back', () => {
  test.each([0, 3])('to point %i in the middle of its data', async (n) => {
    const { peer, listening, sink } = await writing();
    const answer = await peer.exchange('RESYN', point(n), 'ACK(RESYN)');
    expect(answer.body.toString('hex')).toBe(`12010${n}`);
    peer.write(rest(peer, n));
    for (let next = await peer.next(); next!.name !== 'ACK(TRANS.END)'; next = await peer.next()) {
      expect(next!.name).toBe('ACK(SYN)');
    }
    expect(sink.bytes.equals(Buffer.concat(ARTICLES.slice(0, 7)))).toBe(true);
    expect(sink.returns).toEqual([n === 0 ? START : at(n)]);
    await peer.closeFile();
    expect(listening.handlers[0]!.imbalance.slice(2)).toEqual([]);
  });

  test('after DTF.END: what is void is not delivered', async () => {
    const { peer, sink } = await writing();
    peer.send('DTF', ARTICLES[50]);
    peer.send('DTF.END', OK);
    await peer.exchange('RESYN', point(3), 'ACK(RESYN)');
    peer.write(rest(peer, 3));
    expect(diagnosticOf(await peer.expect('ACK(TRANS.END)'))).toBe('0-000');
    expect(sink.bytes.equals(Buffer.concat(ARTICLES.slice(0, 7)))).toBe(true);
  });

  test('while its file is delivered: IDT 2-218, nothing is asked twice, and the session goes on', async () => {
    const { peer, listening, sink } = await writing();
    const asked = gate();
    const delivered = gate();
    listening.handlers[0]!.hooks.endTransfer = async () => {
      asked.open();
      await delivered.passed;
    };
    peer.send('DTF.END', OK);
    peer.send('TRANS.END');
    await asked.passed;
    const idt = await peer.exchange('RESYN', point(3), 'IDT');
    expect([diagnosticOf(idt), valueOf(idt.body, 19)?.toString('hex')]).toEqual(['2-218', '04']);
    delivered.open();
    peer.send('ACK(IDT)');
    await peer.closeFile();
    await peer.release();
    expect(sink.returns).toEqual([]);
    expect(listening.handlers[0]!.calls.slice(1)).toEqual(['CREATE FILE', 'END', 'DESELECTED', 'ENDED released']);
    expect(listening.handlers[0]!.imbalance).toEqual([]);
  });

  test('when ACK(TRANS.END) of what it reads is on its way: IDT 2-218, what was served stays, and the session goes on', async () => {
    const listening = await listen({}, (handler) => {
      handler.connectAnswer = { syncPoints: SYNC, resynchronisation: true };
      handler.source = () => new MemorySource(ARTICLES.slice(0, 2));
    });
    const peer = await rawPeer(listening.port);
    await peer.open(`${BODIES.CONNECT.replace('0001 02', '0001 04')} 170101`);
    for (const file of [1, 2]) {
      await peer.openToRead();
      await peer.expect('DTF');
      await peer.expect('DTF.END');
      await peer.exchange('TRANS.END', '', 'ACK(TRANS.END)');
      if (file === 1) {
        const idt = await peer.exchange('RESYN', point(0), 'IDT');
        expect([diagnosticOf(idt), valueOf(idt.body, 19)?.toString('hex')]).toEqual(['2-218', '04']);
        peer.send('ACK(IDT)');
      }
      await peer.closeFile();
    }
    await peer.release();
    const served = ['SELECT FILE', 'END', 'DESELECTED'];
    expect(listening.handlers[0]!.calls.slice(1)).toEqual([...served, ...served, 'ENDED released']);
    expect(listening.handlers[0]!.imbalance).toEqual([]);
  });

  test('and the sink takes its time: ACK(RESYN) waits for it, a checkpoint of before says nothing any more', async () => {
    const { peer, sink } = await writing();
    const flushed = gate();
    const back = gate();
    sink.stored = () => flushed.passed;
    sink.beforeGoBack = () => back.passed;
    peer.send('DTF', ARTICLES[7]);
    peer.send('SYN', '140104');
    peer.send('RESYN', point(3));
    flushed.open();
    await new Promise(setImmediate);
    back.open();
    await peer.expect('ACK(RESYN)');
    peer.write(rest(peer, 3));
    expect(diagnosticOf(await peer.expect('ACK(TRANS.END)'))).toBe('0-000');
    expect(sink.bytes.equals(Buffer.concat(ARTICLES.slice(0, 7)))).toBe(true);
  });

  test('and is interrupted, or lost, while the sink goes back: nobody waits', async () => {
    for (const end of ['IDT', 'reset'] as const) {
      const { peer, listening, sink } = await writing();
      const asked = gate();
      const back = gate();
      sink.beforeGoBack = async () => {
        asked.open();
        await back.passed;
      };
      peer.send('RESYN', point(3));
      await asked.passed;
      if (end === 'IDT') {
        await peer.exchange('IDT', `${diagnostic('2-216')} 130110`, 'ACK(IDT)');
        await peer.closeFile();
      } else {
        peer.reset();
        await listening.handlers[0]!.over;
      }
      back.open();
      const expected = end === 'IDT' ? 'FAILED 2-216 end 16' : 'FAILED 3-310';
      expect(listening.handlers[0]!.calls).toContain(expected);
    }
  });
});

test('we have asked: what comes behind ACK(RESYN) waits until the sink is ready', async () => {
  const { change, arm } = flips('to server', [600]);
  const { listening, relay, requester, source } = await line(change);
  const asked = gate();
  const back = gate();
  let before = 0;
  listening.handlers[0]!.newSink = () => {
    const sink = new MemorySink();
    sink.beforeGoBack = async () => {
      before = sink.articles.length;
      asked.open();
      await back.passed;
    };
    return sink;
  };
  arm(relay.carried['to server'] + 100);
  const sending = requester.sendFile({ request: create, source });
  await asked.passed;
  // A whole session beside it: the data behind ACK(RESYN) are here by now.
  const other = await rawPeer(listening.port);
  await other.open();
  await other.release();
  const sink = listening.handlers[0]!.sinks[0]!;
  expect(sink.articles).toHaveLength(before);
  back.open();
  expect(await sending).toEqual({ dataBytes: 30_000, articles: 60 });
  expect(sink.bytes.equals(PLAIN)).toBe(true);
});

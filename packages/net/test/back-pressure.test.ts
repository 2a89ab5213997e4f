/** Disks that are behind: the socket waits, the others do not, and no time runs against the partner (design §3). */
import { describe, expect, test } from '@jest/globals';
import { PesitError } from '@pesit-node/protocol';
import {
  articlesOf,
  connect,
  create,
  gate,
  listen,
  rawPeer,
  rejectionOf,
  select,
  tpHasPassed,
} from './support/harness.js';
import { EndlessSource, MemorySink, MemorySource } from './support/memory.js';
import { START } from './support/partner.js';
import { BODIES, OK, diagnosticOf } from './support/wire.js';

const MB = 1024 * 1024;

/** A sink that takes `limit` bytes, then refuses until it is opened, and tells when it was first full. */
function fullAfter(limit: number) {
  const sink = new MemorySink();
  const full = gate();
  sink.keep = false;
  sink.onWrite = ({ bytes }) => {
    if (sink.taken + bytes < limit) return;
    sink.full = true;
    sink.onWrite = undefined;
    full.open();
  };
  return { sink, full: full.passed };
}

describe('a sink that is full', () => {
  test('stops the socket: 64 MB wait at the partner, other sessions run, no timer fires; then all arrives', async () => {
    const { sink, full } = fullAfter(1);
    let first = true;
    const listening = await listen({ timers: { response: 400 } }, (handler) => {
      if (first) handler.newSink = () => sink;
      first = false;
    });

    const peer = await rawPeer(listening.port);
    await peer.open(BODIES['CONNECT without points']);
    await peer.openToWrite();
    const article = peer.entity('DTF', Buffer.alloc(1000, 0x41));
    const megabyte = Buffer.concat(Array.from({ length: 1000 }, () => article));
    for (let i = 0; i < 64; i++) peer.write(megabyte);
    await full;
    const held = sink.taken;

    // Beside it a file of 8 MB crosses, and a silent session is timed out.
    const requester = await connect(listening.port);
    const articles = articlesOf(Array.from({ length: 2000 }, () => 4090));
    await requester.sendFile({ request: create, source: new MemorySource(articles) });
    expect(listening.handlers[1]!.sinks[0]!.bytes.equals(Buffer.concat(articles))).toBe(true);
    await tpHasPassed(listening.port);

    expect(sink.taken).toBe(held);
    expect(held).toBeLessThanOrEqual(64 * 1024);
    expect(peer.socket.writableLength).toBeGreaterThan(32 * MB);
    expect(listening.handlers[0]!.calls).toEqual(['CONNECT PART length-prefixed', 'CREATE FILE']);

    sink.open();
    peer.send('DTF.END', OK);
    await peer.exchange('TRANS.END', '1b04 03d09000 1c02 fa00', 'ACK(TRANS.END)');
    expect(sink.taken).toBe(64_000_000);
    await peer.closeFile();
    await peer.release();
    expect(listening.handlers[0]!.imbalance).toEqual([]);
  });

  test('again and again', async () => {
    const sink = new MemorySink();
    let refusals = 0;
    sink.onWrite = () => {
      sink.full = true;
      refusals += 1;
      setImmediate(() => {
        sink.open();
      });
    };
    const listening = await listen({}, (handler) => (handler.newSink = () => sink));
    const requester = await connect(listening.port);
    const articles = articlesOf(Array.from({ length: 1000 }, () => 4090));
    await requester.sendFile({ request: create, source: new MemorySource(articles) });
    expect(sink.bytes.equals(Buffer.concat(articles))).toBe(true);
    expect(refusals).toBeGreaterThan(10);
  });

  test('on the requester, stops the server from reading its file', async () => {
    const { sink, full } = fullAfter(1);
    const source = new EndlessSource(4000);
    const listening = await listen({ timers: { response: 10_000 } }, (handler) => (handler.source = () => source));
    const requester = await connect(listening.port, { connect: { requester: 'PART', server: 'SERV', accessType: 2 } });
    const cancel = new AbortController();
    const receiving = rejectionOf(
      requester.receiveFile({
        request: select,
        open: () => Promise.resolve({ from: START, sink }),
        stored: () => Promise.resolve(),
        signal: cancel.signal,
      }),
    );
    await full;
    const held = sink.taken;
    await tpHasPassedOn();
    expect(sink.taken).toBe(held);
    expect(source.filled).toBeLessThan(24 * MB);
    cancel.abort();
    // The sink never drains: an interrupted transfer waits for no disk.
    expect((await receiving).diagnostic).toBe('2-216');
    expect(requester.usable).toBe(true);
    expect(listening.handlers[0]!.failures[0]?.diagnostic).toBe('2-216');
  });

  test('an interrupted transfer is answered although the sink never drains', async () => {
    const { sink, full } = fullAfter(1);
    const listening = await listen({}, (handler) => (handler.newSink = () => sink));
    const peer = await rawPeer(listening.port);
    await peer.open();
    await peer.openToWrite();
    peer.send('DTF', Buffer.alloc(100));
    await full;
    const reason = new PesitError('stopped', { fault: 'local', diagnostic: '2-216' });
    listening.handlers[0]!.connection.cancel(reason);
    const idt = await peer.expect('IDT');
    expect([diagnosticOf(idt), idt.body.toString('hex').includes('13010c')]).toEqual(['2-216', true]);
    peer.send('ACK(IDT)');
    await peer.closeFile();
    await peer.release();
    expect(listening.handlers[0]!.calls.slice(2)).toEqual(['FAILED 2-216 end 12', 'DESELECTED', 'ENDED released']);
  });

  test('an aborted session closes although the sink never drains', async () => {
    const { sink, full } = fullAfter(1);
    const listening = await listen({ timers: { close: 30 } }, (handler) => (handler.newSink = () => sink));
    const peer = await rawPeer(listening.port);
    peer.socket.allowHalfOpen = true;
    await peer.open();
    await peer.openToWrite();
    peer.send('DTF', Buffer.alloc(100));
    await full;
    const reason = new PesitError('stopped', { fault: 'local', diagnostic: '3-316' });
    // The partner never closes its half: Tr ends the connection.
    await listening.listener.close(reason, 0);
    await peer.expect('IDT');
    expect(diagnosticOf(await peer.expect('ABORT'))).toBe('3-316');
    expect(listening.handlers[0]!.imbalance).toEqual([]);
  });
});

/** Time passes on another listener. */
async function tpHasPassedOn(): Promise<void> {
  const witness = await listen({ timers: { response: 200 } });
  await tpHasPassed(witness.port);
}

describe('checkpoints', () => {
  test('a flush that takes longer than Tp is our time, not that of a partner whose window is full', async () => {
    const flushed = gate();
    const sink = new MemorySink();
    sink.stored = () => flushed.passed;
    const listening = await listen({ timers: { response: 200 } }, (handler) => {
      handler.newSink = () => sink;
    });
    const peer = await rawPeer(listening.port);
    await peer.open();
    await peer.openToWrite();
    for (const point of ['01', '02']) {
      peer.send('DTF', Buffer.alloc(900));
      peer.send('SYN', `1401${point}`);
    }
    await tpHasPassed(listening.port);
    flushed.open();
    expect((await peer.expect('ACK(SYN)')).body.toString('hex')).toBe('140101');
    expect((await peer.expect('ACK(SYN)')).body.toString('hex')).toBe('140102');
    // From here on it is the partner's turn again.
    expect(diagnosticOf(await peer.expect('ABORT'))).toBe('3-317');
  });

  test('a flush that never ends does not keep a later silence from being noticed', async () => {
    const sink = new MemorySink();
    sink.stored = () => new Promise(() => undefined);
    const listening = await listen({ timers: { response: 200 } }, (handler) => (handler.newSink = () => sink));
    const peer = await rawPeer(listening.port);
    await peer.open();
    await peer.openToWrite();
    peer.send('DTF', Buffer.alloc(900));
    peer.send('SYN', '140101');
    await peer.exchange('IDT', '0203 0200d8 130110', 'ACK(IDT)');
    expect(diagnosticOf(await peer.expect('ABORT'))).toBe('3-317');
  });

  test('without a window, points that are not stored hold the socket', async () => {
    const flushed = gate();
    const sink = new MemorySink();
    sink.keep = false;
    sink.stored = () => flushed.passed;
    const listening = await listen({}, (handler) => {
      handler.newSink = () => sink;
      handler.connectAnswer = { syncPoints: { intervalKb: 1, window: 0 } };
    });
    const peer = await rawPeer(listening.port);
    await peer.open();
    await peer.openToWrite();
    const entities: Buffer[] = [];
    const count = 40_000;
    for (let point = 1; point <= count; point++) {
      entities.push(peer.entity('DTF', 'aa'));
      entities.push(peer.entity('SYN', `1403 ${point.toString(16).padStart(6, '0')}`));
    }
    const [half, rest] = [entities.slice(0, count), entities.slice(count)];
    await new Promise((resolve) => peer.socket.write(Buffer.concat(half), resolve));
    peer.write(Buffer.concat(rest));
    const other = await connect(listening.port);
    await other.sendFile({ request: create, source: new MemorySource(articlesOf([10])) });
    // One read of the socket, of 64 KB at most: 22 bytes and more a point.
    expect(sink.points.length).toBeGreaterThan(60);
    expect(sink.points.length).toBeLessThan(4000);
    flushed.open();
    peer.send('DTF.END', OK);
    await peer.exchange('TRANS.END', '', 'ACK(TRANS.END)');
    expect(sink.points).toHaveLength(count);
  });
});

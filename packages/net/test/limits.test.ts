/** What one partner can cost: places, silence, half sent and never read bytes. */
import { describe, expect, test } from '@jest/globals';
import { PesitError } from '@pesit-node/protocol';
import type { ArticleSource, Burst } from '@pesit-node/protocol';
import { connect, create, gate, listen, rawPeer, rejectionOf, tpHasPassed } from './support/harness.js';
import { EndlessSource, MemorySink } from './support/memory.js';
import { BODIES, OK, RawPeer, diagnosticOf, entity, fpdu, valueOf } from './support/wire.js';

describe('maxConnections', () => {
  test('one more is told RCONNECT 3-309, and the place is free again after RELEASE', async () => {
    const listening = await listen({ maxConnections: 2 });
    const [first, second, third] = [
      await rawPeer(listening.port),
      await rawPeer(listening.port),
      await rawPeer(listening.port),
    ];
    await first.open();
    await second.open();
    expect(listening.listener.activeConnections).toBe(2);
    const refusal = await third.exchange('CONNECT', BODIES.CONNECT, 'RCONNECT');
    expect(diagnosticOf(refusal)).toBe('3-309');
    expect(valueOf(refusal.body, 29)?.toString('latin1')).toMatch(/connection/i);
    third.socket.end();
    await third.closed;
    expect(listening.handlers[2]!.calls).toEqual(['ENDED 3-309']);

    await first.release();
    await listening.handlers[0]!.over;
    expect(listening.listener.activeConnections).toBe(1);
    const fourth = await rawPeer(listening.port);
    await fourth.open();
    expect(listening.rejected).toEqual([]);
  });

  test('a place is free as soon as RELCONF is sent, whenever the partner closes', async () => {
    const listening = await listen({ maxConnections: 1 });
    const first = await rawPeer(listening.port);
    await first.open();
    await first.exchange('RELEASE', OK, 'RELCONF');
    await listening.handlers[0]!.over;
    const second = await rawPeer(listening.port);
    await second.open();
    first.socket.end();
  });

  test.each([
    ['a refused partner', 'RCONNECT'],
    ['an aborted session', 'ABORT'],
  ] as const)('%s gives its place back', async (_, how) => {
    const refusal = new PesitError('unknown', { fault: 'local', diagnostic: '3-301' });
    const listening = await listen({ maxConnections: 1 }, (handler) => {
      if (how === 'RCONNECT' && listening.handlers.length === 0) handler.hooks.connect = () => Promise.reject(refusal);
    });
    const first = await rawPeer(listening.port);
    if (how === 'RCONNECT') {
      expect(diagnosticOf(await first.exchange('CONNECT', BODIES.CONNECT, 'RCONNECT'))).toBe('3-301');
    } else {
      await first.open();
      await first.exchange('WRITE', '', 'ABORT');
    }
    await listening.handlers[0]!.over;
    await (await rawPeer(listening.port)).open();
  });

  test('partners whose application is still thinking hold no place: whoever is proven first has it', async () => {
    const answer = gate();
    const listening = await listen({ maxConnections: 1 }, (handler) => {
      if (listening.handlers.length === 0) handler.hooks.connect = () => answer.passed;
    });
    const first = await rawPeer(listening.port);
    first.send('CONNECT', BODIES.CONNECT);
    await listening.handler();
    const second = await rawPeer(listening.port);
    await second.open();
    expect(listening.listener.activeConnections).toBe(1);
    answer.open();
    expect(diagnosticOf(await first.expect('RCONNECT'))).toBe('3-309');
    await second.release();
  });

  test('a place that the application takes itself is refused before it books anything', async () => {
    let booked = 0;
    const listening = await listen({ maxConnections: 1 }, (handler) => {
      handler.hooks.connect = () => {
        handler.connection.takePlace();
        booked += 1;
      };
    });
    const [first, second] = [await rawPeer(listening.port), await rawPeer(listening.port)];
    await first.open();
    expect(diagnosticOf(await second.exchange('CONNECT', BODIES.CONNECT, 'RCONNECT'))).toBe('3-309');
    expect(booked).toBe(1);
  });

  test('a session of this side with itself takes no place, and is asked for though all are taken', async () => {
    const listening = await listen({ maxConnections: 1 }, (handler) => {
      const takesNoPlace = listening.handlers.length === 1;
      Object.assign(handler, { takesNoPlace: () => takesNoPlace });
    });
    const [first, own, third] = [
      await rawPeer(listening.port),
      await rawPeer(listening.port),
      await rawPeer(listening.port),
    ];
    await first.open();
    await own.open();
    expect(listening.listener.activeConnections).toBe(1);
    expect(diagnosticOf(await third.exchange('CONNECT', BODIES.CONNECT, 'RCONNECT'))).toBe('3-309');
    await own.release();
    await first.release();
  });

  test('hundreds that are refused and never close do not add up', async () => {
    const listening = await listen({ maxConnections: 1 });
    const honest = await rawPeer(listening.port);
    await honest.open();
    const peers: RawPeer[] = [];
    for (let batch = 0; batch < 4; batch++) {
      const some = await Promise.all(Array.from({ length: 100 }, () => rawPeer(listening.port)));
      for (const peer of some) peer.socket.allowHalfOpen = true;
      await Promise.all(some.map((peer) => peer.exchange('CONNECT', BODIES.CONNECT, 'RCONNECT')));
      peers.push(...some);
    }
    await honest.release();
    await (await rawPeer(listening.port)).open();
    expect(listening.listener.activeConnections).toBe(1);
  });
});

describe('partners that are being identified', () => {
  /** As many as may be, all from 127.0.0.1 and one after the other, whose application thinks until the gate opens. */
  const crowd = async () => {
    const answer = gate();
    const listening = await listen({ maxConnections: 1, maxProving: 8 }, (handler) => {
      if (listening.handlers.length >= 8) return;
      handler.hooks.connect = () => {
        listening.notify();
        return answer.passed;
      };
    });
    const peers: RawPeer[] = [];
    for (let asked = 1; asked <= 8; asked++) {
      const peer = await rawPeer(listening.port);
      peer.send('CONNECT', BODIES.CONNECT);
      await listening.until(() => listening.handlers.filter(({ calls }) => calls.length > 0).length === asked);
      peers.push(peer);
    }
    return { listening, peers, answer };
  };

  test('have a budget of their own: one more of their address gets 3-309, and the place of a session stays free', async () => {
    const { listening, peers, answer } = await crowd();
    const more = await rawPeer(listening.port);
    const refusal = await more.exchange('CONNECT', BODIES.CONNECT, 'RCONNECT');
    expect(diagnosticOf(refusal)).toBe('3-309');
    expect(valueOf(refusal.body, 29)?.toString()).toBe('too many partners are being identified: try again later');
    expect(listening.listener.activeConnections).toBe(0);
    answer.open();
    for (const peer of peers) peer.socket.destroy();
    for (const handler of listening.handlers) {
      await handler.over;
      expect(handler.imbalance).toEqual([]);
    }
  });

  test('of one address give way to a partner of another', async () => {
    const { listening, peers, answer } = await crowd();
    const partner = await rawPeer(listening.port, 'length-prefixed', '127.0.0.2');
    await partner.open();
    const newest = peers.at(-1)!;
    expect(diagnosticOf(await newest.expect('RCONNECT'))).toBe('3-309');
    expect(listening.listener.activeConnections).toBe(1);
    await partner.release();
    answer.open();
    for (const peer of peers) peer.socket.destroy();
    for (const handler of listening.handlers) {
      await handler.over;
      expect(handler.imbalance).toEqual([]);
    }
  });
});

describe('silence', () => {
  test('2,000 connections that send nothing: the oldest give way, an honest partner gets through at any time', async () => {
    const listening = await listen({ maxConnections: 2 });
    const peers: RawPeer[] = [];
    for (let batch = 0; batch < 10; batch++) {
      peers.push(...(await Promise.all(Array.from({ length: 200 }, () => RawPeer.connect(listening.port)))));
      const honest = await rawPeer(listening.port);
      await honest.open();
      await honest.release();
    }
    // The listener has taken all of them before the last honest one: 512 stay, the others are closed.
    const rejected = await listening.rejections(peers.length - 512);
    expect(new Set(rejected.map(({ reason }) => reason))).toEqual(
      new Set(['512 connections wait without CONNECT: the oldest of the address that has most gives way']),
    );
    await Promise.all(peers.slice(0, rejected.length - 10).map((peer) => peer.closed));
    expect(peers.slice(-400).every((peer) => !peer.socket.destroyed)).toBe(true);
    for (const peer of peers) peer.socket.destroy();
    await Promise.all(peers.map((peer) => peer.closed));
  });

  test('of one address does not cost a silent connection of another its place', async () => {
    const listening = await listen();
    const slow = await rawPeer(listening.port, 'length-prefixed', '127.0.0.2');
    slow.write('002c 002c 4020');
    await listening.handler();
    const peers: RawPeer[] = [];
    for (let batch = 0; batch < 3; batch++)
      peers.push(...(await Promise.all(Array.from({ length: 200 }, () => RawPeer.connect(listening.port)))));
    const rejected = await listening.rejections(peers.length + 1 - 512);
    expect(new Set(rejected.map(({ address }) => address))).toEqual(new Set(['127.0.0.1']));
    expect(slow.socket.destroyed).toBe(false);
    for (const peer of peers) peer.socket.destroy();
    await Promise.all(peers.map((peer) => peer.closed));
  });

  test('beginnings of a CONNECT count as silence, not as sessions', async () => {
    const listening = await listen({ maxConnections: 1 });
    const peers: RawPeer[] = [];
    for (let batch = 0; batch < 3; batch++) {
      const some = await Promise.all(Array.from({ length: 200 }, () => RawPeer.connect(listening.port)));
      for (const peer of some) peer.write('002c 002c 4020');
      peers.push(...some);
      await listening.until(() => listening.handlers.length >= peers.length);
    }
    const honest = await rawPeer(listening.port);
    await honest.open();
    expect(listening.rejected.length).toBeGreaterThan(80);
    for (const peer of peers) peer.socket.destroy();
    for (const handler of listening.handlers.slice(0, 600)) {
      await handler.over;
      expect(handler.imbalance).toEqual([]);
    }
  });

  test.each([
    ['between two files (Td)', [], '3-313'],
    ['after CREATE', ['CREATE'], '3-317'],
    ['after ORF', ['CREATE', 'ORF'], '3-317'],
    ['in the middle of the data', ['CREATE', 'ORF', 'WRITE'], '3-317'],
  ] as const)('%s ends in ABORT and closes for good', async (_, requests, expected) => {
    const listening = await listen({ timers: { response: 200, idle: 200, close: 40 } });
    const peer = await rawPeer(listening.port);
    peer.socket.allowHalfOpen = true;
    await peer.open();
    for (const request of requests) {
      await peer.exchange(request, request === 'CREATE' ? BODIES.CREATE : '', `ACK(${request})`);
    }
    expect(diagnosticOf(await peer.expect('ABORT'))).toBe(expected);
    const handler = listening.handlers[0]!;
    expect((await handler.over)?.diagnostic).toBe(expected);
    expect(handler.imbalance).toEqual([]);
  });

  test('half-open: a partner that closes its half in the middle of its file is gone', async () => {
    const listening = await listen();
    const peer = await rawPeer(listening.port);
    peer.socket.allowHalfOpen = true;
    await peer.open();
    await peer.openToWrite();
    peer.socket.end();
    expect((await listening.handlers[0]!.over)?.diagnostic).toBe('3-310');
    await peer.closed;
    expect(listening.handlers[0]!.imbalance).toEqual([]);
  });
});

test('a partner that trickles one byte at a time is served', async () => {
  const listening = await listen();
  const peer = await rawPeer(listening.port);
  const trickle = async (bytes: Buffer): Promise<void> => {
    for (const byte of bytes) await new Promise((resolve) => peer.socket.write(Buffer.from([byte]), resolve));
  };
  await trickle(peer.entity('CONNECT', BODIES.CONNECT));
  await peer.expect('ACONNECT');
  for (const [name, body] of [
    ['CREATE', BODIES.CREATE],
    ['ORF', ''],
    ['WRITE', ''],
  ] as const) {
    await trickle(peer.entity(name, body));
    await peer.expect(`ACK(${name})`);
  }
  // Two articles in one entity, a segmented one in another.
  await trickle(peer.entity('DTF', Buffer.from('\0\u0003one\0\u0003two', 'latin1'), 2));
  const [first, last] = [fpdu('DTFDA', peer.otherId, 0, '4142'), fpdu('DTFFA', peer.otherId, 0, '43')];
  await trickle(entity('length-prefixed', Buffer.concat([first, last])));
  await trickle(peer.entity('DTF.END', OK));
  await trickle(peer.entity('TRANS.END', '1b0109 1c0103'));
  await peer.expect('ACK(TRANS.END)');
  await peer.closeFile();
  await peer.release();
  expect(listening.handlers[0]!.sinks[0]!.articles.map(String)).toEqual(['one', 'two', 'ABC']);
});

describe('a partner that does not read', () => {
  test('its file is not read ahead, and after Tp it is aborted (3-317)', async () => {
    const sources: EndlessSource[] = [];
    const listening = await listen({ timers: { response: 250, close: 50 } }, (handler) => {
      handler.source = () => {
        const source = new EndlessSource(4000);
        sources.push(source);
        return source;
      };
    });
    const peer = await rawPeer(listening.port);
    await peer.open(BODIES['CONNECT without points']);
    await peer.openToRead();
    peer.socket.pause();
    const handler = listening.handlers[0]!;
    const error = await handler.over;
    expect(error).toMatchObject({ fault: 'timeout', diagnostic: '3-317' });
    expect(handler.imbalance).toEqual([]);
    // What the kernel of a loopback takes, and two bursts.
    expect(sources[0]!.filled).toBeLessThan(24 * 1024 * 1024);
    const { fills } = sources[0]!;
    await listening.listener.close(error!, 0);
    expect(sources[0]!.fills).toBe(fills);
  });

  test('nor acknowledge: the time runs also when the window closes while the source is slow', async () => {
    const slow = gate();
    const listening = await listen({ timers: { response: 200, close: 40 } }, (handler) => {
      handler.source = () => new OneByOne(900, 4, slow.passed);
    });
    const peer = await rawPeer(listening.port);
    await peer.open();
    await peer.openToRead();
    for (const name of ['DTF', 'SYN', 'DTF', 'SYN'] as const) await peer.expect(name);
    // Another one that stays silent shows that more than Tp has passed meanwhile.
    await tpHasPassed(listening.port);
    slow.open();
    expect(diagnosticOf(await peer.expect('ABORT'))).toBe('3-317');
    expect(listening.handlers[0]!.imbalance).toEqual([]);
  });

  test('a server that does not read is given up too', async () => {
    const listening = await listen();
    const source = new EndlessSource(4000);
    const requester = await connect(listening.port, { timers: { response: 250, close: 50 } });
    const handler = listening.handlers[0]!;
    handler.newSink = () => {
      const sink = new MemorySink();
      sink.keep = false;
      sink.full = true;
      return sink;
    };
    const error = await rejectionOf(requester.sendFile({ request: create, source }));
    expect(error).toMatchObject({ fault: 'timeout', diagnostic: '3-317' });
    expect(requester.usable).toBe(false);
    handler.sinks[0]!.open();
    await handler.over;
    expect(handler.imbalance).toEqual([]);
  });
});

/** One article a burst; the last waits. */
class OneByOne implements ArticleSource {
  #left: number;
  readonly #size: number;
  readonly #beforeLast: Promise<void>;

  constructor(size: number, count: number, beforeLast: Promise<void>) {
    this.#size = size;
    this.#left = count;
    this.#beforeLast = beforeLast;
  }

  async fill(burst: Burst): Promise<boolean> {
    if (this.#left === 1) await this.#beforeLast;
    if (burst.reserve(this.#size)) this.#left -= 1;
    return this.#left > 0;
  }
}

/** Connections that end anywhere: every file accepted is reported once, every connection ends once. */
import { connect as connectSocket, createServer } from 'node:net';
import { once } from 'node:events';
import { describe, expect, test } from '@jest/globals';
import { PesitError } from '@pesit-node/protocol';
import type { Dialect } from '@pesit-node/protocol';
import fc from 'fast-check';
import { PesitRequester } from '../src/index.js';
import { articlesOf, atEnd, create, listen, rawPeer, select } from './support/harness.js';
import { MemorySink, MemorySource } from './support/memory.js';
import { START } from './support/partner.js';
import { BODIES, OK } from './support/wire.js';
import type { Name, RawPeer } from './support/wire.js';

/** What the partner does, in order: sends, or waits for an answer. */
type Step = readonly ['>', Name, (string | Buffer)?] | readonly ['<', Name];

const END: readonly Step[] = [
  ['>', 'CRF', OK],
  ['<', 'ACK(CRF)'],
  ['>', 'DESELECT', OK],
  ['<', 'ACK(DESELECT)'],
  ['>', 'RELEASE', OK],
  ['<', 'RELCONF'],
];

const WRITE: readonly Step[] = [
  ['>', 'CONNECT', BODIES.CONNECT],
  ['<', 'ACONNECT'],
  ['>', 'CREATE', BODIES.CREATE],
  ['<', 'ACK(CREATE)'],
  ['>', 'ORF'],
  ['<', 'ACK(ORF)'],
  ['>', 'WRITE'],
  ['<', 'ACK(WRITE)'],
  ['>', 'DTF', Buffer.from('one')],
  ['>', 'SYN', '140101'],
  ['<', 'ACK(SYN)'],
  ['>', 'DTFDA', Buffer.from('two')],
  ['>', 'DTFMA', Buffer.from('two')],
  ['>', 'DTFFA', Buffer.from('two')],
  ['>', 'DTF.END', OK],
  ['>', 'TRANS.END', '1b010c 1c0102'],
  ['<', 'ACK(TRANS.END)'],
  ...END,
];

const READ: readonly Step[] = [
  ['>', 'CONNECT', BODIES.CONNECT],
  ['<', 'ACONNECT'],
  ['>', 'SELECT', BODIES.SELECT],
  ['<', 'ACK(SELECT)'],
  ['>', 'ORF'],
  ['<', 'ACK(ORF)'],
  ['>', 'READ', BODIES.READ],
  ['<', 'ACK(READ)'],
  ['<', 'DTF'],
  ['<', 'SYN'],
  ['>', 'ACK(SYN)', '140101'],
  ['<', 'DTF'],
  ['<', 'DTF.END'],
  ['>', 'TRANS.END', '1b020708 1c0102'],
  ['<', 'ACK(TRANS.END)'],
  ...END,
];

async function play(peer: RawPeer, steps: readonly Step[]): Promise<void> {
  for (const [arrow, name, body] of steps) {
    if (arrow === '>') peer.send(name, body);
    else await peer.expect(name);
  }
}

const CUTS = [
  [
    'a FIN',
    (peer: RawPeer) => {
      peer.socket.end();
    },
  ],
  [
    'a reset',
    (peer: RawPeer) => {
      peer.reset();
    },
  ],
] as const;

describe.each([
  ['write', WRITE],
  ['read', READ],
] as const)('a session to %s', (direction, steps) => {
  describe.each<Dialect>(['length-prefixed', 'raw'])('%s', (dialect) => {
    const prepared = () =>
      listen({ maxConnections: 1 }, (handler) => {
        handler.source = () => new MemorySource([Buffer.alloc(900, 1), Buffer.alloc(900, 2)]);
      });

    test('is played to its end', async () => {
      const listening = await prepared();
      const peer = await rawPeer(listening.port, dialect);
      await play(peer, steps);
      const handler = listening.handlers[0]!;
      expect(await handler.over).toBeUndefined();
      expect(handler.imbalance).toEqual([]);
      expect(handler.failures).toEqual([]);
      if (direction === 'write') expect(handler.sinks[0]!.articles.map(String)).toEqual(['one', 'twotwotwo']);
    });

    // One place for everyone: a session that left something behind would keep the next one out.
    test.each(CUTS)('ends with %s at every FPDU', async (_, cut) => {
      const listening = await prepared();
      const accepted = steps.findIndex(([, name]) => name === 'ACK(CREATE)' || name === 'ACK(SELECT)');
      const ended = steps.findIndex(([, name]) => name === 'ACK(TRANS.END)');
      const released = steps.findIndex(([, name]) => name === 'RELCONF');
      for (let count = 2; count < steps.length; count++) {
        const peer = await rawPeer(listening.port, dialect);
        await play(peer, steps.slice(0, count));
        cut(peer);
        await peer.closed;
        const handler = listening.handlers[count - 2]!;
        const error = await handler.over;
        expect([count, handler.imbalance]).toEqual([count, []]);
        if (count < released) expect(error?.diagnostic).toBe('3-310');
        if (count > accepted && count < ended - 1) expect(handler.failures[0]?.diagnostic).toBe('3-310');
        if (count > ended) expect(handler.failures).toEqual([]);
      }
      expect(listening.rejected).toEqual([]);
    });

    test('ends cleanly when the partner closes in the middle of any FPDU', async () => {
      const listening = await prepared();
      for (let count = 1; count < steps.length; count++) {
        const [arrow, name, body] = steps[count]!;
        if (arrow === '<') continue;
        const peer = await rawPeer(listening.port, dialect);
        await play(peer, steps.slice(0, count));
        peer.socket.end(peer.entity(name, body).subarray(0, -1));
        await peer.closed;
        const handler = listening.handlers.at(-1)!;
        expect((await handler.over)?.diagnostic).toBe('3-310');
        expect([count, handler.imbalance]).toEqual([count, []]);
      }
    });
  });
});

test('RELEASE and the end of the connection in one segment is a release', async () => {
  const listening = await listen();
  const peer = await rawPeer(listening.port);
  await peer.open();
  peer.socket.end(peer.entity('RELEASE', OK));
  await peer.closed;
  expect(await listening.handlers[0]!.over).toBeUndefined();
});

/** A network that lets `up` bytes through towards the server and `down` back, then resets both sides. */
async function fragileNetwork(port: number, limits: { up: number; down: number }): Promise<number> {
  const server = createServer((near) => {
    const far = connectSocket({ port, host: '127.0.0.1' });
    const cut = (): void => {
      if (!near.destroyed) near.resetAndDestroy();
      if (!far.destroyed) far.resetAndDestroy();
    };
    const left = { ...limits };
    const pipe = (from: typeof near, to: typeof near, way: 'up' | 'down'): void => {
      from.on('data', (bytes: Buffer) => {
        const passed = bytes.subarray(0, left[way]);
        left[way] -= passed.length;
        if (passed.length > 0) to.write(passed);
        if (left[way] === 0) to.write(Buffer.alloc(0), cut);
      });
      from.on('error', cut);
      from.on('end', () => to.end());
      from.on('close', () => to.end());
    };
    pipe(near, far, 'up');
    pipe(far, near, 'down');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  atEnd(async () => {
    server.close();
    await once(server, 'close');
  });
  return (server.address() as { port: number }).port;
}

test('a network that fails anywhere leaves both sides balanced, and no side believes what the other does not', async () => {
  const articles = articlesOf([700, 900, 1, 5000, 600, 600, 600]);
  await fc.assert(
    fc.asyncProperty(
      fc.record({ up: fc.integer({ min: 1, max: 9700 }), down: fc.integer({ min: 1, max: 9700 }) }),
      fc.constantFrom<Dialect>('length-prefixed', 'raw'),
      async (limits, dialect) => {
        const listening = await listen({}, (handler) => (handler.source = () => new MemorySource(articles)));
        const port = await fragileNetwork(listening.port, limits);
        const outcomes: unknown[] = [];
        const attempt = async (work: () => Promise<unknown>): Promise<void> => {
          await work().then(
            () => outcomes.push('done'),
            (error: unknown) => outcomes.push(error),
          );
        };
        const sink = new MemorySink();
        const opened: PesitRequester[] = [];
        await attempt(async () => {
          const requester = await PesitRequester.open({
            host: '127.0.0.1',
            port,
            dialect,
            connectTimeout: 5000,
            connect: { requester: 'PART', server: 'SERV', accessType: 2, syncPoints: { intervalKb: 1, window: 2 } },
          });
          opened.push(requester);
        });
        for (const connected of opened) {
          await attempt(() => connected.sendFile({ request: create, source: new MemorySource(articles) }));
          await attempt(() =>
            connected.receiveFile({
              request: select,
              open: () => Promise.resolve({ from: START, sink }),
              stored: () => Promise.resolve(),
            }),
          );
          await connected.release();
        }
        for (const handler of listening.handlers) await handler.over;
        for (const handler of listening.handlers) expect(handler.imbalance).toEqual([]);
        for (const outcome of outcomes) if (outcome !== 'done') expect(outcome).toBeInstanceOf(PesitError);
        const delivered = listening.handlers.flatMap(({ log }) => log).filter((line) => line === 'END').length;
        const acknowledged = outcomes.slice(1).filter((outcome) => outcome === 'done').length;
        expect(delivered).toBeGreaterThanOrEqual(acknowledged);
        if (outcomes[2] === 'done') expect(sink.bytes.equals(Buffer.concat(articles))).toBe(true);
      },
    ),
    { numRuns: 60 },
  );
});

/** What passes a connection, seen by an observer at either end, and told as text. */
import { describe, expect, test } from '@jest/globals';
import { SessionTrace } from '@pesit-node/protocol';
import type { Dialect, TraceLine } from '@pesit-node/protocol';
import { articlesOf, connect, create, listen, rawPeer, rejectionOf, select } from './support/harness.js';
import { MemorySink, MemorySource } from './support/memory.js';
import { START } from './support/partner.js';
import { BODIES, diagnosticOf } from './support/wire.js';
import type { WireObserver } from '../src/index.js';

class Trace {
  readonly lines: TraceLine[] = [];
  readonly #trace: SessionTrace;
  #time = 0;

  constructor(dialect: Dialect) {
    this.#trace = new SessionTrace(dialect);
  }

  readonly observer: WireObserver = (direction, bytes) => {
    this.lines.push(...this.#trace.take(direction, bytes, ++this.#time));
  };

  /** `>` sent, `<` received; parameters left out. */
  get short(): string[] {
    return [...this.lines, ...this.#trace.end()].map(
      ({ direction, text }) => `${direction === 'sent' ? '>' : '<'} ${text.replace(/ (to|from) .*/, '')}`,
    );
  }
}

describe.each<[Dialect, boolean]>([
  ['length-prefixed', false],
  ['length-prefixed', true],
  ['raw', false],
  ['raw', true],
])('%s, CRC %s', (dialect, crc) => {
  test('a file each way, the same story at both ends', async () => {
    const articles = articlesOf([900, 900, 900]);
    const atServer = new Trace(dialect);
    const listening = await listen({}, (handler) => {
      handler.connection.observe(atServer.observer);
      handler.connectAnswer = { syncPoints: { intervalKb: 1, window: 1 } };
      handler.source = () => new MemorySource(articles);
    });
    const atRequester = new Trace(dialect);
    const requester = await connect(listening.port, {
      dialect,
      observer: atRequester.observer,
      connect: {
        requester: 'PART',
        server: 'SERV',
        password: 'SECRET',
        accessType: 2,
        syncPoints: { intervalKb: 1, window: 1 },
        crc,
      },
    });
    await requester.sendFile({ request: create, source: new MemorySource(articles) });
    await requester.receiveFile({
      request: select,
      open: () => Promise.resolve({ from: START, sink: new MemorySink() }),
      stored: () => Promise.resolve(),
    });
    await requester.release();
    await listening.handlers[0]!.over;
    const data = (arrow: string, back: string): string[] => [
      `${arrow} data: 1 FPDU, 900 bytes`,
      `${arrow} SYN`,
      `${arrow} data: 1 FPDU, 900 bytes`,
      `${back} ACK(SYN)`,
      `${arrow} SYN`,
      `${arrow} data: 1 FPDU, 900 bytes`,
    ];
    const story = atRequester.short;
    // An acknowledgement may come a moment earlier or later.
    expect(story.filter((line) => !line.includes('SYN') && !line.includes('data'))).toEqual([
      '> CONNECT',
      '< ACONNECT',
      ...['CREATE', 'ORF', 'WRITE'].flatMap((name) => [`> ${name}`, `< ACK(${name})`]),
      '> DTF.END',
      ...['TRANS.END', 'CRF', 'DESELECT'].flatMap((name) => [`> ${name}`, `< ACK(${name})`]),
      ...['SELECT', 'ORF', 'READ'].flatMap((name) => [`> ${name}`, `< ACK(${name})`]),
      '< DTF.END',
      ...['TRANS.END', 'CRF', 'DESELECT'].flatMap((name) => [`> ${name}`, `< ACK(${name})`]),
      '> RELEASE',
      '< RELCONF',
    ]);
    expect(story.filter((line) => line.startsWith('> data'))).toEqual(
      data('>', '<').filter((line) => line.includes('data')),
    );
    const mirrored = atServer.short.map((line) =>
      line.startsWith('>') ? line.replace('>', '<') : line.replace('<', '>'),
    );
    expect([...mirrored].sort()).toEqual([...story].sort());
    const all = JSON.stringify([atServer.lines, atRequester.lines]);
    expect(all).not.toContain('SECRET');
    expect(all).toContain('PI 5 (access control) ********');
    // The CRC goes out behind its FPDU.
    expect(atRequester.lines[0]!.time).toBe(crc ? 2 : 1);
  });
});

test('bytes that are no PeSIT are said to be so, once, and the rest is left out', async () => {
  const trace = new Trace('length-prefixed');
  const listening = await listen({}, (handler) => {
    handler.connection.observe(trace.observer);
  });
  const peer = await rawPeer(listening.port);
  await peer.open();
  peer.write('0007 0006 c07f 0700 00');
  await peer.expect('ABORT');
  expect(trace.short.slice(0, 2)).toEqual(['< CONNECT', '> ACONNECT']);
  expect(trace.lines[2]).toMatchObject({
    direction: 'received',
    text: expect.stringMatching(/^unreadable from here on: an FPDU: expected a phase and type of PeSIT E, got/),
  });
  expect(trace.lines).toHaveLength(4);
});

test('an observer may leave, and come', async () => {
  const seen: string[] = [];
  const listening = await listen();
  const peer = await rawPeer(listening.port);
  await peer.open();
  const { connection } = listening.handlers[0]!;
  connection.observe((direction, bytes) => seen.push(`${direction} ${bytes.length}`));
  await peer.exchange(
    'CREATE',
    '0909 0b0100 0c0446494c45 0d0105 110100 19021000 1e07 1f0180 20020400 2803 2a0101',
    'ACK(CREATE)',
  );
  connection.observe(undefined);
  await peer.exchange('DESELECT', '0203000000', 'ACK(DESELECT)');
  expect(seen).toEqual(['received 43', 'sent 17']);
});

describe('an observer that throws ends its session, and nothing else', () => {
  const full = (): never => {
    throw new Error('no space for the trace');
  };

  test.each(['received', 'sent'] as const)('of a server, at what is %s', async (broken) => {
    const listening = await listen({}, (handler) => {
      if (listening.handlers.length > 0) return;
      handler.connection.observe((direction) => {
        if (direction === broken) full();
      });
    });
    const peer = await rawPeer(listening.port);
    peer.send('CONNECT', BODIES.CONNECT);
    if (broken === 'sent') await peer.expect('ACONNECT');
    expect(diagnosticOf(await peer.expect('ABORT'))).toBe('3-399');
    peer.socket.end();
    expect((await listening.handlers[0]!.over)?.message).toBe('internal error: no space for the trace');
    expect(listening.handlers[0]!.bugs).toHaveLength(1);
    await (await connect(listening.port)).release();
  });

  test.each([
    ['a request', 0],
    ['data', 1000],
  ])('of a requester, at %s', async (_, longerThan) => {
    const listening = await listen();
    const requester = await connect(listening.port);
    requester.observe((_direction, bytes) => {
      if (bytes.length > longerThan) full();
    });
    const error = await rejectionOf(
      requester.sendFile({ request: create, source: new MemorySource(articlesOf([5000])) }),
    );
    expect(error).toMatchObject({ fault: 'local', diagnostic: '3-399' });
    expect(error.message).toContain('no space for the trace');
    expect((await listening.handlers[0]!.over)?.diagnostic).toBe('3-399');
    await requester.release();
  });
});

/** Connections that balancers pass on, over real sockets: who is believed, who is refused, and that nothing after a header is lost. */
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { connect as connectTlsSocket } from 'node:tls';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { serveTcpBehind } from '../src/index.js';
import type { ProxyServing } from '../src/index.js';
import { bareSocket, closing, listen } from './support/harness.js';
import type { TestListener } from './support/harness.js';
import { accepting, createPki } from './support/tls.js';
import type { Pki } from './support/tls.js';
import { BODIES, RawPeer, hex } from './support/wire.js';

const LOCAL = '127.0.0.1';
const V1 = Buffer.from('PROXY TCP4 192.0.2.7 192.0.2.1 40000 6502\r\n');
const V2 = hex(`0d0a0d0a000d0a515549540a 21 21 0024 20010db8000000000000000000000007 ${'00'.repeat(16)} 9c40 1966`);
const V2_LOCAL = hex('0d0a0d0a000d0a515549540a 20 00 0000');

let pki: Pki;
beforeAll(async () => {
  pki = await createPki();
});

const behind = (serving: Partial<ProxyServing> = {}): ProxyServing => ({
  mode: () => 'required',
  isTrusted: (address) => address === LOCAL,
  ...serving,
});
const untrusting = { isTrusted: () => false };

const gone = async (socket: Socket): Promise<void> => {
  socket.resume();
  if (!socket.closed) await once(socket, 'close');
};

/** A session over `socket`; what came before CONNECT leaves with it in one packet. */
const session = async (socket: Socket, before: Buffer = Buffer.alloc(0)): Promise<RawPeer> => {
  const peer = new RawPeer(socket, 'length-prefixed');
  peer.write(Buffer.concat([before, peer.entity('CONNECT', BODIES.CONNECT)]));
  expect((await peer.next())?.name).toBe('ACONNECT');
  return peer;
};

const addressOf = async (listening: TestListener, index = 0): Promise<string> =>
  (await listening.handler(index)).connection.remoteAddress;

describe('a listener behind a balancer', () => {
  const plain = (serving: Partial<ProxyServing> = {}) => listen({ transport: serveTcpBehind(behind(serving)) });

  test.each([
    ['version 1', V1, '192.0.2.7'],
    ['version 2', V2, '2001:db8::7'],
    ['LOCAL', V2_LOCAL, LOCAL],
  ])('sees the address that the header tells, and loses nothing after it: %s', async (_, header, address) => {
    const listening = await plain();
    await session(await bareSocket(listening.port), header);
    expect(await addressOf(listening)).toBe(address);
    expect(listening.rejected).toEqual([]);
  });

  test('takes a header byte by byte', async () => {
    const listening = await plain();
    const socket = await bareSocket(listening.port);
    socket.setNoDelay(true);
    for (const byte of V1) await new Promise((sent) => socket.write(Buffer.of(byte), sent));
    await session(socket);
    expect(await addressOf(listening)).toBe('192.0.2.7');
  });

  test('optional: takes a partner without a header as the connection says', async () => {
    const listening = await plain({ mode: () => 'optional' });
    await session(await bareSocket(listening.port));
    await session(await bareSocket(listening.port), V1);
    expect([await addressOf(listening), await addressOf(listening, 1)]).toEqual([LOCAL, '192.0.2.7']);
  });

  test('optional: takes a partner that is no balancer, and never believes its header', async () => {
    const listening = await plain({ mode: () => 'optional', ...untrusting });
    await session(await bareSocket(listening.port));
    expect(await addressOf(listening)).toBe(LOCAL);
    const liar = await bareSocket(listening.port);
    liar.resume().write(V1);
    await gone(liar);
    expect(listening.rejected).toEqual([
      {
        address: LOCAL,
        reason:
          '127.0.0.1 sent a PROXY header, and is not among trustedProxies: it is not believed; switch the header off there, or add its address to trustedProxies',
      },
    ]);
    expect(listening.handlers).toHaveLength(1);
  });

  test('required: refuses at once who is not trusted', async () => {
    const listening = await plain(untrusting);
    const socket = await bareSocket(listening.port);
    await gone(socket);
    expect(await listening.rejections(1)).toEqual([
      {
        address: LOCAL,
        reason:
          '127.0.0.1 is not among trustedProxies, and proxyProtocol of the listener is required: connect through the balancer, or add its address to trustedProxies',
      },
    ]);
  });

  test.each([
    ['no header', hex('0018 0006 4020 0007'), /^127\.0\.0\.1 sent no PROXY header, .* first bytes 0018000640200007$/],
    [
      'a malformed one',
      Buffer.from('PROXY TCP4 x'.padEnd(200)),
      /^the PROXY header of 127\.0\.0\.1 is malformed: no end of line within 107 bytes; first bytes /,
    ],
  ])('required: refuses a trusted proxy with %s', async (_, bytes, words) => {
    const listening = await plain();
    const socket = await bareSocket(listening.port);
    socket.resume().write(bytes);
    await gone(socket);
    expect(listening.rejected).toEqual([{ address: LOCAL, reason: expect.stringMatching(words) }]);
    expect(listening.handlers).toEqual([]);
  });

  test('a change counts for the next connection', async () => {
    let mode: 'off' | 'required' = 'off';
    const listening = await plain({ mode: () => mode });
    await session(await bareSocket(listening.port));
    mode = 'required';
    await session(await bareSocket(listening.port), V1);
    expect([await addressOf(listening), await addressOf(listening, 1)]).toEqual([LOCAL, '192.0.2.7']);
  });

  test('silence, and a header that does not end, end at the timeout', async () => {
    const listening = await plain({ timeout: 50 });
    const [silent, slow] = [await bareSocket(listening.port), await bareSocket(listening.port)];
    slow.write(V1.subarray(0, 8));
    await Promise.all([silent, slow].map(gone));
    const reasons = (await listening.rejections(2)).map(({ reason }) => reason);
    expect(reasons[0]).toBe('no whole PROXY header within 50 ms: nothing was received');
    expect(reasons[1]).toMatch(/^no whole PROXY header within 50 ms: /);
  });

  test('too many that wait: the oldest gives way', async () => {
    const listening = await plain({ maxWaiting: 2 });
    const first = await bareSocket(listening.port);
    const closed = once(first.resume(), 'close');
    await bareSocket(listening.port);
    await session(await bareSocket(listening.port), V1);
    await closed;
    expect(listening.rejected).toEqual([
      { address: LOCAL, reason: '2 connections wait for their PROXY header: the oldest gives way' },
    ]);
  });

  test('one that waits does not hold up the end of the listener', async () => {
    const listening = await plain();
    const silent = await bareSocket(listening.port);
    const closed = once(silent.resume(), 'close');
    await session(await bareSocket(listening.port), V1);
    await Promise.all([listening.listener.close(closing, 0), closed]);
    expect(listening.rejected).toEqual([]);
  });
});

/** `socket` with `header` in one packet with what is written first. */
const prefixed = (socket: Socket, header: Buffer): Duplex => {
  let before = header;
  const stream = new Duplex({
    read: () => undefined,
    write: (bytes: Buffer, _, written) => {
      socket.write(Buffer.concat([before, bytes]), written);
      before = Buffer.alloc(0);
    },
  });
  socket.on('data', (bytes: Buffer) => stream.push(bytes)).on('end', () => stream.push(null));
  return stream;
};

/** Nothing was said of those before, whose connections are over: the listener speaks of this one alone. */
const whoComesAfter = async (listening: TestListener, words: RegExp): Promise<void> => {
  const other = await bareSocket(listening.port);
  other.resume().write(hex('ffffffffffffffff'));
  await gone(other);
  await listening.listener.close(closing, 0);
  expect(listening.rejected).toMatchObject([{ reason: expect.stringMatching(words) }]);
};

describe('a health check that connects and leaves is not worth a word', () => {
  const LEAVING: readonly (readonly [string, (socket: Socket) => unknown])[] = [
    ['in peace', (socket) => socket.end()],
    ['by a reset', (socket) => socket.resetAndDestroy()],
    ['after LOCAL', (socket) => socket.end(V2_LOCAL)],
  ];
  const cases = LEAVING.flatMap(([how, leave]) => [['plain', how, leave] as const, ['TLS', how, leave] as const]);

  test.each(cases)('%s, %s', async (kind, _, leave) => {
    const proxy = behind();
    const transport = kind === 'TLS' ? accepting(pki, 'NONE', {}, { proxy }) : serveTcpBehind(proxy);
    const listening = await listen({ transport });
    const socket = await bareSocket(listening.port);
    leave(socket.resume());
    await gone(socket);
    await whoComesAfter(listening, /^127\.0\.0\.1 sent no PROXY header/);
  });

  test('by a reset, at a TLS port without a balancer', async () => {
    const listening = await listen({ transport: accepting(pki, 'NONE') });
    const socket = await bareSocket(listening.port);
    socket.resetAndDestroy();
    await gone(socket);
    await whoComesAfter(listening, /^not PeSIT, and this port is for TLS/);
  });
});

describe('TLS behind a balancer', () => {
  test('the handshake follows the header in one packet, and the address is the one told', async () => {
    const listening = await listen({ transport: accepting(pki, 'NONE', {}, { proxy: behind() }) });
    const secured = connectTlsSocket({
      socket: prefixed(await bareSocket(listening.port), V2),
      ca: pki.ca.certificate,
      servername: 'localhost',
      checkServerIdentity: () => undefined,
    });
    await once(secured, 'secureConnect');
    await session(secured);
    const { connection } = await listening.handler();
    expect([connection.remoteAddress, connection.security?.protocol]).toEqual(['2001:db8::7', 'TLSv1.3']);
    expect(listening.rejected).toEqual([]);
  });

  test('a header from elsewhere is refused as on TCP', async () => {
    const proxy = behind({ mode: () => 'optional', ...untrusting });
    const listening = await listen({ transport: accepting(pki, 'NONE', {}, { proxy }) });
    const liar = await bareSocket(listening.port);
    liar.resume().write(V2);
    await gone(liar);
    expect(listening.rejected).toMatchObject([{ reason: expect.stringContaining('is not among trustedProxies') }]);
  });
});

/** What happens at a TLS port beside certificates: dialects, wrong doors, half-open handshakes, resumption. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect as connectTcpSocket, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { connect as connectTlsSocket } from 'node:tls';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { connectTcp } from '../src/tcp-transport.js';
import { articlesOf, bareSocket, closeAtEnd, connect, create, listen, rejectionOf } from './support/harness.js';
import { MemorySource } from './support/memory.js';
import { accepting, createPki, opening } from './support/tls.js';
import type { Pki } from './support/tls.js';
import { BODIES, RawPeer, hex } from './support/wire.js';

const LOCAL = '127.0.0.1';

let pki: Pki;
beforeAll(async () => {
  pki = await createPki();
});

const secured = async (port: number): Promise<Socket> => {
  const socket = closeAtEnd(connectTlsSocket({ host: LOCAL, port, ca: pki.ca.certificate }));
  await once(socket, 'secureConnect');
  return socket;
};

describe('what a partner speaks is recognised as on TCP', () => {
  test.each(['length-prefixed', 'raw'] as const)('a file, %s', async (dialect) => {
    const listening = await listen({ transport: accepting(pki, 'NONE') });
    const requester = await connect(listening.port, { dialect, transport: opening(pki) });
    const articles = articlesOf([1, 30_000, 17, 29_999]);
    await requester.sendFile({ request: create, source: new MemorySource(articles) });
    expect(listening.handlers[0]!.sinks[0]!.bytes.equals(Buffer.concat(articles))).toBe(true);
    await requester.release();
    expect(await listening.handlers[0]!.over).toBeUndefined();
  });

  test.each([
    ['PESIT, bare', 'raw', 'd7c5e2c9e3404040 c1c2c34040404040 e2c5c3d9c5e34040', 'c1c3d2f0'],
    [
      'PESIT, length-prefixed',
      'length-prefixed',
      '0018 d7c5e2c9e3404040 c1c2c34040404040 e2c5c3d9c5e34040',
      '0004c1c3d2f0',
    ],
    ['CFTPSITX, bare', 'raw', 'c3c6e3d7e2c9e3e7 c1c2c34040404040 e2c5c3d9c5e34040 0d25', 'c1c3d2f00d25'],
    [
      'CFTPSITX, length-prefixed',
      'length-prefixed',
      '001c c3c6e3d7e2c9e3e7 c1c2c34040404040 e2c5c3d9c5e34040 0d25 0000',
      '0008c1c3d2f00d250000',
    ],
  ] as const)('a pre-connection, %s', async (_, dialect, sent, answer) => {
    const listening = await listen({ transport: accepting(pki, 'NONE') });
    const peer = new RawPeer(await secured(listening.port), dialect);
    peer.write(sent);
    expect((await peer.bytes(answer.length / 2)).toString('hex')).toBe(answer);
    peer.send('CONNECT', BODIES.CONNECT);
    expect((await peer.next())?.name).toBe('ACONNECT');
    expect((await listening.handler()).connection.security?.protocol).toBe('TLSv1.3');
  });
});

describe('the wrong door is named, counted and closed at once', () => {
  test.each([
    [
      'PeSIT',
      '0018 0006 4020 0007',
      /^the partner speaks PeSIT without TLS \(length-prefixed CONNECT\), and this port is for TLS/,
    ],
    ['raw PeSIT', '0010 4020 0007 0304', /^the partner speaks PeSIT without TLS \(raw CONNECT\)/],
    [
      'a pre-connection',
      '0018 d7c5e2c9e3404040 c1c2c34040404040 e2c5c3d9c5e34040',
      /\(a pre-connection\), and this port is for TLS/,
    ],
    [
      'HTTP',
      Buffer.from('GET / HTTP/1.1\r\n\r\n').toString('hex'),
      /^not PeSIT: the partner speaks HTTP, and this port is for TLS/,
    ],
    ['anything else', 'ffffffffffffffff', /^not PeSIT, and this port is for TLS: .*; first bytes ffffffffffffffff$/],
  ])('%s on a TLS port', async (_, bytes, words) => {
    const listening = await listen({ transport: accepting(pki, 'NONE') });
    const socket = await bareSocket(listening.port);
    socket.resume().write(hex(bytes));
    await once(socket, 'close');
    expect(await listening.rejections(1)).toEqual([
      { address: LOCAL, reason: expect.stringMatching(words), code: 'TLS_NOT_SPOKEN' },
    ]);
  });

  test('TLS on a plain port; the requester is told as well', async () => {
    const listening = await listen();
    const error = await rejectionOf(connect(listening.port, { transport: opening(pki) }));
    expect(error.message).toMatch(/no TLS connection to .*the partner closed the connection during the TLS handshake/);
    expect((await listening.rejections(1))[0]?.reason).toMatch(/^the partner speaks TLS, this port does not/);
  });

  test('a plain requester at a TLS port', async () => {
    const listening = await listen({ transport: accepting(pki, 'NONE') });
    const error = await rejectionOf(connect(listening.port, { transport: connectTcp }));
    expect(error).toMatchObject({ fault: 'transport', diagnostic: '3-310' });
    expect((await listening.rejections(1))[0]?.reason).toMatch(/^the partner speaks PeSIT without TLS/);
  });
});

describe('half-open handshakes', () => {
  test('one that connects and leaves, as health checks do, is not worth a word', async () => {
    const listening = await listen({ transport: accepting(pki, 'NONE') });
    const socket = await bareSocket(listening.port);
    socket.end();
    socket.resume();
    await once(socket, 'close');
    // Who came after it has been served: it was seen, and nothing was said.
    await connect(listening.port, { transport: opening(pki) });
    expect(listening.rejected).toEqual([]);
  });

  test('silence, and a handshake that does not go on, end at the handshake timeout', async () => {
    const listening = await listen({ transport: accepting(pki, 'NONE', {}, { handshakeTimeout: 2000 }) });
    const [silent, slow] = [await bareSocket(listening.port), await bareSocket(listening.port)];
    slow.write(hex('1603010200'));
    await Promise.all([silent, slow].map((socket) => once(socket.resume(), 'close')));
    const reasons = (await listening.rejections(2)).map(({ reason, code }) => [code, reason]);
    expect(reasons.sort()).toEqual([
      ['TLS_HANDSHAKE_TIMEOUT', 'no TLS handshake within 2000 ms: nothing was received'],
      ['TLS_HANDSHAKE_TIMEOUT', 'no TLS handshake within 2000 ms: the handshake was not over'],
    ]);
  });

  test('one whose partner leaves within its first words is over at once', async () => {
    const listening = await listen({ transport: accepting(pki, 'NONE') });
    const socket = await bareSocket(listening.port);
    socket.resume().end(hex('16030102000100'));
    await once(socket, 'close');
    expect(await listening.rejections(1)).toEqual([
      { address: LOCAL, reason: expect.stringMatching(/closed the connection during/), code: 'TLS_CLOSED' },
    ]);
  });

  test('a thousand of them do not stop a partner', async () => {
    const listening = await listen({ transport: accepting(pki, 'NONE', {}, { maxHandshakes: 100 }) });
    const silent = await Promise.all(Array.from({ length: 1000 }, () => bareSocket(listening.port)));
    for (const socket of silent) socket.resume();
    const requester = await connect(listening.port, { transport: opening(pki) });
    expect(requester.usable).toBe(true);
    const rejected = await listening.rejections(900);
    expect(rejected[0]).toMatchObject({
      code: 'TLS_HANDSHAKE_TIMEOUT',
      reason: expect.stringMatching(/^100 TLS handshakes wait/),
    });
  });
});

describe('resumption', () => {
  const cases = (['TLSv1.2', 'TLSv1.3'] as const).map((version) => [version] as const);

  test.each(cases)(
    '%s: the second session resumes the first, and the certificates of both still count',
    async (version) => {
      const listening = await listen({ transport: accepting(pki, 'NEED', { versions: [version] }) });
      const transport = opening(pki, { identity: pki.good, fingerprints: [pki.server.fingerprint] });
      const first = await connect(listening.port, { transport });
      await first.release();
      const second = await connect(listening.port, { transport });
      expect(second.security).toMatchObject({
        resumed: true,
        peerCertificate: { fingerprint: pki.server.fingerprint },
      });
      expect((await listening.handler(1)).connection.security).toMatchObject({
        resumed: true,
        peerCertificate: { fingerprint: pki.good.fingerprint },
      });
    },
  );

  test.each(cases)('%s: not where ssl.session-cache-size is 0', async (version) => {
    const material = { versions: [version], sessionCacheSize: 0 };
    const listening = await listen({ transport: accepting(pki, 'NONE', material) });
    const transport = opening(pki);
    const first = await connect(listening.port, { transport });
    await first.release();
    expect((await connect(listening.port, { transport })).security?.resumed).toBe(false);
  });

  test.each(cases)('%s: a session stays with the key with which it began, and ends with it', async (version) => {
    const [first, second] = [randomBytes(48), randomBytes(48)];
    let keys: [Buffer, ...Buffer[]] = [first];
    const material = { versions: [version], ticketKeys: () => keys };
    const doors: Awaited<ReturnType<typeof listen>>[] = [];
    for (let door = 0; door < 2; door++) doors.push(await listen({ transport: accepting(pki, 'NEED', material) }));
    // Either door in turn, byte by byte: the ticket comes with the last ones.
    let turn = 0;
    const balancer = createServer((near) => {
      const far = connectTcpSocket({ host: LOCAL, port: doors[turn++ % 2]!.port, noDelay: true });
      near.on('data', (bytes: Buffer) => {
        for (const byte of bytes) far.write(Buffer.of(byte));
      });
      near.on('close', () => far.destroy()).on('error', () => undefined);
      far.pipe(near);
      far.on('error', () => undefined);
    });
    balancer.listen(0, LOCAL);
    await once(balancer, 'listening');
    const { port } = balancer.address() as AddressInfo;
    const transport = opening(pki, { identity: pki.good });
    const resumed = async (): Promise<boolean | undefined> => {
      const requester = await connect(port, { transport });
      await requester.release();
      return requester.security?.resumed;
    };
    try {
      expect([await resumed(), await resumed(), await resumed()]).toEqual([false, true, true]);
      keys = [second, first];
      expect([await resumed(), await resumed()]).toEqual([true, true]);
      keys = [second];
      expect([await resumed(), await resumed()]).toEqual([false, true]);
    } finally {
      balancer.close();
    }
  });
});

/** Every implementation of the port `Transport` does the same: plain TCP, and the connections in memory that tests use. */
import { once } from 'node:events';
import { connect as connectSocket, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { expect, test } from '@jest/globals';
import { connectTcp, serveTcp, serveTcpBehind } from '../src/tcp-transport.js';
import { MemoryNetwork, MemoryTransport, describeNetwork, describeTransport } from '../src/testing/index.js';
import type { TransportPeer, TransportUnderTest } from '../src/testing/index.js';
import type { Transport } from '../src/transport.js';
import { articlesOf, atEnd, connect, create, gate, listen } from './support/harness.js';
import { MemorySource } from './support/memory.js';
import { Received, socketPeer } from './support/peers.js';

/** The other end as the other end in memory. */
function memoryPeer(other: MemoryTransport): TransportPeer {
  const received = new Received();
  const over = gate();
  other.allowHalfOpen = true;
  other.attach({
    received: (bytes) => {
      received.add(bytes);
    },
    ended: () => {
      over.open();
    },
    closed: () => {
      over.open();
    },
  });
  other.resume();
  return {
    write: (bytes) => {
      other.write([Buffer.from(bytes)]);
    },
    get unsent() {
      return other.queuedBytes;
    },
    get received() {
      return received.bytes;
    },
    until: (length) => received.until(length),
    over: over.passed,
    pause: () => {
      other.pause();
    },
    resume: () => {
      other.resume();
    },
    end: () => {
      other.end();
    },
    reset: () => {
      other.reset();
    },
  };
}

const LOCAL = '127.0.0.1';
const tcp = { address: LOCAL, security: undefined, readsInto: true, knowsQueue: true };
const never = new AbortController().signal;

async function tcpThatConnected(): Promise<TransportUnderTest> {
  const server = createServer({ allowHalfOpen: true });
  server.listen(0, LOCAL);
  await once(server, 'listening');
  const arrived = once(server, 'connection') as Promise<[Socket]>;
  const { port } = server.address() as AddressInfo;
  const { transport } = await connectTcp({ host: LOCAL, port, signal: never });
  const [socket] = await arrived;
  atEnd(async () => {
    server.close();
    await once(server, 'close');
  });
  return { ...tcp, transport, peer: socketPeer(socket) };
}

async function tcpThatWasAccepted(): Promise<TransportUnderTest> {
  const arrived = gate<Transport>();
  const server = serveTcp({ arrived: arrived.open, failed: () => undefined });
  await server.listen({ host: LOCAL, port: 0 });
  const socket = connectSocket({ host: LOCAL, port: server.port, allowHalfOpen: true });
  const transport = await arrived.passed;
  atEnd(() => server.close());
  return { ...tcp, transport, peer: socketPeer(socket) };
}

async function tcpBehindABalancer(): Promise<TransportUnderTest> {
  const arrived = gate<Transport>();
  const serve = serveTcpBehind({ mode: () => 'required', isTrusted: (address) => address === LOCAL });
  const server = serve({ arrived: arrived.open, failed: () => undefined });
  await server.listen({ host: LOCAL, port: 0 });
  const socket = connectSocket({ host: LOCAL, port: server.port, allowHalfOpen: true });
  socket.write('PROXY TCP4 192.0.2.7 192.0.2.1 40000 6502\r\n');
  const transport = await arrived.passed;
  atEnd(() => server.close());
  return { ...tcp, address: '192.0.2.7', readsInto: false, transport, peer: socketPeer(socket) };
}

describeTransport('TCP behind a balancer', tcpBehindABalancer);
describeTransport('TCP that connected', tcpThatConnected);
describeTransport('TCP that was accepted', tcpThatWasAccepted);
describeNetwork('TCP', () => ({ connect: connectTcp, serve: serveTcp, host: LOCAL }));

describeTransport('memory that reads into given buffers', () => {
  const { connected, accepted } = MemoryTransport.pair();
  return Promise.resolve({ ...tcp, address: '192.0.2.2', transport: connected, peer: memoryPeer(accepted) });
});

describeTransport('memory that hands over its buffers', () => {
  const { connected, accepted } = MemoryTransport.pair(false);
  const peer = memoryPeer(connected);
  return Promise.resolve({ ...tcp, address: '192.0.2.1', readsInto: false, transport: accepted, peer });
});

describeNetwork('memory', () => {
  const { connect: connectMemory, serve } = new MemoryNetwork();
  return { connect: connectMemory, serve, host: 'memory' };
});

test('a session runs on any transport: a file crosses in memory, and no socket is there', async () => {
  const network = new MemoryNetwork();
  const listening = await listen({ transport: network.serve });
  const requester = await connect(listening.port, { transport: network.connect });
  const articles = articlesOf(Array.from({ length: 500 }, (_, index) => 1 + ((index * 7919) % 30_000)));
  await requester.sendFile({ request: create, source: new MemorySource(articles) });
  expect(listening.handlers[0]!.sinks[0]!.bytes.equals(Buffer.concat(articles))).toBe(true);
  expect(listening.handlers[0]!.connection.remoteAddress).toBe('192.0.2.1');
  await requester.release();
  expect(await listening.handlers[0]!.over).toBeUndefined();
});

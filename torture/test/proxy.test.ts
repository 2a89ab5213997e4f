/** The proxy between real sockets: an echo of names and bytes, FPDUs written by hand. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import type { Action, Fault, Moment, Victim } from '../src/faults.js';
import { FaultProxy } from '../src/proxy.js';

/** `length · phase · type · 0109`, and the entity's length before it. */
const entity = (codes: string, body = ''): Buffer => {
  const fpdu = Buffer.from(`0000${codes}0900${body}`, 'hex');
  fpdu.writeUInt16BE(fpdu.length, 0);
  const prefix = Buffer.alloc(2);
  prefix.writeUInt16BE(fpdu.length, 0);
  return Buffer.concat([prefix, fpdu]);
};
const WRITE = entity('c002');
const ACK_WRITE = entity('c036', '0203000000120100');
const DTF = entity('0000', 'aa'.repeat(100));
const SYN = entity('c003', '140101');
const ACK_SYN = entity('c038', '140101');

/** One end of a connection: all that came, and its end. */
class End {
  readonly socket: Socket;
  received = Buffer.alloc(0);
  /** `open`, `fin` or `reset`. */
  state = 'open';
  readonly closed: Promise<unknown>;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (chunk) => (this.received = Buffer.concat([this.received, chunk])));
    socket.on('end', () => (this.state = 'fin'));
    socket.on('error', () => (this.state = 'reset'));
    this.closed = once(socket, 'close').catch(() => undefined);
  }

  async has(length: number): Promise<Buffer> {
    while (this.received.length < length) await once(this.socket, 'data');
    return this.received;
  }

  async ended(): Promise<void> {
    if (this.state === 'open') await Promise.race([once(this.socket, 'end'), this.closed]);
  }
}

let server: Server;
let proxy: FaultProxy;
let accepted: Promise<End>;
const ends: End[] = [];

beforeEach(async () => {
  server = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  accepted = once(server, 'connection').then(([socket]) => new End(socket as Socket));
  proxy = await FaultProxy.listen((server.address() as AddressInfo).port, 'length-prefixed');
});

afterEach(async () => {
  for (const { socket } of ends.splice(0)) socket.destroy();
  await proxy.close();
  server.close();
});

async function connected(): Promise<{ requester: End; responder: End }> {
  const socket = connect({ port: proxy.port, host: '127.0.0.1', allowHalfOpen: true });
  const requester = new End(socket);
  const responder = await accepted;
  ends.push(requester, responder);
  return { requester, responder };
}

const nobody = (): void => undefined;
const arm = (
  moment: Moment,
  action: Action,
  more: readonly Fault[] = [],
  kill: (victim: Victim) => void = nobody,
): void => proxy.arm({ faults: [{ moment, action }, ...more], latencyMs: 0, kill });

test('without a fault everything passes unchanged, in both directions, at any split', async () => {
  arm({ at: 'bytes', direction: 'request', count: 1e9 }, { do: 'cut' });
  const { requester, responder } = await connected();
  const all = Buffer.concat([WRITE, DTF, SYN, DTF]);
  for (const byte of all) requester.socket.write(Buffer.of(byte));
  expect((await responder.has(all.length)).equals(all)).toBe(true);
  responder.socket.write(ACK_WRITE);
  expect((await requester.has(ACK_WRITE.length)).equals(ACK_WRITE)).toBe(true);
  requester.socket.end();
  await responder.ended();
  responder.socket.end();
  await requester.ended();
  expect([requester.state, responder.state]).toEqual(['fin', 'fin']);
  const { struck, dataBytes, attempts, connections, wire } = proxy.disarm();
  expect({ struck, dataBytes, attempts, connections }).toEqual({
    struck: 0,
    dataBytes: { request: 200, answer: 0 },
    attempts: { request: 1, answer: 0 },
    connections: 1,
  });
  expect(wire.map((line) => line.slice(11)).filter((line) => !line.startsWith('***'))).toEqual([
    '--> WRITE to 9',
    '--> data: 1 FPDUs, 100 bytes',
    '--> SYN to 9: PI 20 (sync point number) 1',
    '--> data: 1 FPDUs, 100 bytes',
    expect.stringContaining('<-- ACK(WRITE)'),
  ]);
});

test('a cut at byte n lets n bytes through, also inside an FPDU', async () => {
  arm({ at: 'bytes', direction: 'request', count: WRITE.length + 17 }, { do: 'cut' });
  const { requester, responder } = await connected();
  requester.socket.write(Buffer.concat([WRITE, DTF, DTF]));
  await Promise.all([responder.ended(), requester.ended()]);
  expect(responder.received.equals(Buffer.concat([WRITE, DTF.subarray(0, 17)]))).toBe(true);
  expect(proxy.disarm().struck).toBe(1);
});

test('a reset is a reset on both sides', async () => {
  arm({ at: 'fpdu', direction: 'request', name: 'WRITE', occurrence: 1, side: 'before' }, { do: 'reset' });
  const { requester, responder } = await connected();
  requester.socket.write(WRITE);
  await Promise.all([requester.closed, responder.closed]);
  expect([requester.state, responder.state]).toEqual(['reset', 'reset']);
});

test('one acknowledgement is dropped, the next one passes', async () => {
  arm({ at: 'fpdu', direction: 'answer', name: 'ACK(SYN)', occurrence: 1, side: 'before' }, { do: 'drop', cut: false });
  const { requester, responder } = await connected();
  responder.socket.write(Buffer.concat([ACK_WRITE, ACK_SYN, ACK_WRITE, ACK_SYN]));
  const expected = Buffer.concat([ACK_WRITE, ACK_WRITE, ACK_SYN]);
  expect((await requester.has(expected.length)).equals(expected)).toBe(true);
});

test('an acknowledgement dropped with a cut is the last thing that does not arrive', async () => {
  arm({ at: 'fpdu', direction: 'answer', name: 'ACK(SYN)', occurrence: 2, side: 'before' }, { do: 'drop', cut: true });
  const { requester, responder } = await connected();
  responder.socket.write(Buffer.concat([ACK_SYN, ACK_WRITE, ACK_SYN, ACK_WRITE]));
  await requester.ended();
  expect(requester.received.equals(Buffer.concat([ACK_SYN, ACK_WRITE]))).toBe(true);
});

test('a half-close ends one direction; the other one goes on', async () => {
  arm({ at: 'bytes', direction: 'request', count: WRITE.length }, { do: 'half-close' });
  const { requester, responder } = await connected();
  requester.socket.write(Buffer.concat([WRITE, DTF]));
  await responder.ended();
  expect(responder.received.equals(WRITE)).toBe(true);
  responder.socket.end(ACK_WRITE);
  await requester.ended();
  expect(requester.received.equals(ACK_WRITE)).toBe(true);
  expect([requester.state, responder.state]).toEqual(['fin', 'fin']);
});

test('a stall holds one direction and loses nothing', async () => {
  arm({ at: 'bytes', direction: 'request', count: 3 }, { do: 'stall', ms: 60 });
  const { requester, responder } = await connected();
  const began = performance.now();
  requester.socket.write(Buffer.concat([WRITE, DTF]));
  responder.socket.write(ACK_WRITE);
  await requester.has(ACK_WRITE.length);
  expect((await responder.has(WRITE.length + DTF.length)).equals(Buffer.concat([WRITE, DTF]))).toBe(true);
  // Timers of Node may fire one millisecond early.
  expect(performance.now() - began).toBeGreaterThanOrEqual(59);
});

test('damage is one bit behind the lengths; everything else passes as it is', async () => {
  arm(
    { at: 'fpdu', direction: 'request', name: 'DTF', occurrence: 2, side: 'before' },
    { do: 'damage', at: 8 * 10 + 3 },
  );
  const { requester, responder } = await connected();
  requester.socket.write(Buffer.concat([WRITE, DTF, DTF, SYN]));
  const damaged = Buffer.from(DTF);
  damaged[14] = 0xaa ^ 0x08;
  const expected = Buffer.concat([WRITE, DTF, damaged, SYN]);
  expect((await responder.has(expected.length)).toString('hex')).toBe(expected.toString('hex'));
});

test('in the raw dialect the CONNECT tells that two bytes follow each FPDU, both ways', async () => {
  await proxy.close();
  proxy = await FaultProxy.listen((server.address() as AddressInfo).port, 'raw');
  arm({ at: 'fpdu', direction: 'answer', name: 'ACK(SYN)', occurrence: 1, side: 'before' }, { do: 'drop', cut: false });
  const { requester, responder } = await connected();
  const bare = (whole: Buffer, crc: string): Buffer => Buffer.concat([whole.subarray(2), Buffer.from(crc, 'hex')]);
  const connect = bare(entity('4020', '010101' + '030141'), 'ffff');
  requester.socket.write(Buffer.concat([connect, bare(DTF, '0000'), bare(SYN, '1234')]));
  await responder.has(connect.length + DTF.length + SYN.length);
  responder.socket.write(Buffer.concat([bare(ACK_WRITE, '0001'), bare(ACK_SYN, '0002'), bare(ACK_WRITE, '0003')]));
  const expected = Buffer.concat([bare(ACK_WRITE, '0001'), bare(ACK_WRITE, '0003')]);
  expect((await requester.has(expected.length)).toString('hex')).toBe(expected.toString('hex'));
  expect(proxy.disarm().dataBytes).toEqual({ request: 100, answer: 0 });
});

test('latency delays each direction', async () => {
  proxy.arm({ faults: [], latencyMs: 30, kill: () => undefined });
  const { requester, responder } = await connected();
  const began = performance.now();
  requester.socket.write(WRITE);
  await responder.has(WRITE.length);
  responder.socket.write(ACK_WRITE);
  await requester.has(ACK_WRITE.length);
  expect(performance.now() - began).toBeGreaterThanOrEqual(58);
});

test('faults strike one after the other, each counting from the one before; what is killed is told', async () => {
  const killed: Victim[] = [];
  arm(
    { at: 'fpdu', direction: 'request', name: 'DTF', occurrence: 2, side: 'after' },
    { do: 'kill', victim: 'server', afterMs: 0 },
    [{ moment: { at: 'bytes', direction: 'request', count: 5 }, action: { do: 'cut' } }],
    (victim) => void killed.push(victim),
  );
  const { requester, responder } = await connected();
  requester.socket.write(Buffer.concat([DTF, DTF, SYN, DTF]));
  await responder.ended();
  expect(responder.received.equals(Buffer.concat([DTF, DTF, SYN.subarray(0, 5)]))).toBe(true);
  expect(killed).toEqual(['server']);
  expect(proxy.disarm().struck).toBe(2);
});

test('a fault whose time has come strikes without traffic', async () => {
  const { requester, responder } = await connected();
  arm({ at: 'time', ms: 5 }, { do: 'cut' });
  await Promise.all([requester.ended(), responder.ended()]);
  expect(proxy.disarm().struck).toBe(1);
});

test('a server that is not there refuses through the proxy too', async () => {
  server.close();
  proxy.arm({ faults: [], latencyMs: 0, kill: () => undefined });
  const socket = connect({ port: proxy.port, host: '127.0.0.1' });
  const requester = new End(socket);
  ends.push(requester);
  await requester.closed;
  expect(requester.state).toBe('reset');
});

test('connections go to the hosts in turn', async () => {
  const { port } = server.address() as AddressInfo;
  const other = createServer().listen(port, '127.0.0.2');
  await once(other, 'listening');
  const hosts: string[] = [];
  for (const one of [server, other]) one.on('connection', (socket: Socket) => hosts.push(socket.localAddress ?? ''));
  await proxy.close();
  proxy = await FaultProxy.listen(port, 'length-prefixed', ['127.0.0.1', '127.0.0.2']);
  const targets: number[] = [];
  for (const one of [server, other, server]) {
    const socket = connect(proxy.port, '127.0.0.1');
    const [responder] = (await once(one, 'connection')) as [Socket];
    targets.push(proxy.target);
    responder.destroy();
    socket.destroy();
  }
  expect(hosts).toEqual(['127.0.0.1', '127.0.0.2', '127.0.0.1']);
  expect(targets).toEqual([0, 1, 0]);
  other.close();
});

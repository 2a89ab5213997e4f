/** What a bug of the application does to a session: it ends, and nobody else's. */
import { describe, expect, test } from '@jest/globals';
import { listen, rawPeer } from './support/harness.js';
import type { MemorySink } from './support/memory.js';
import { EndlessSource } from './support/memory.js';
import type { Hooks } from './support/partner.js';
import { BODIES, OK, diagnosticOf } from './support/wire.js';
import type { RawPeer, Seen } from './support/wire.js';
import { session } from './support/serving.js';

describe('a bug', () => {
  const bug = new Error('a bug of the application');
  const throwing = () => {
    throw bug;
  };
  const rejecting = () => Promise.reject(bug);

  describe.each([
    ['thrown', throwing],
    ['rejected', rejecting],
  ])('%s', (_, fault) => {
    test.each([
      ['connect', 'RCONNECT', '3-399'],
      ['create', 'ACK(CREATE)', '2-215'],
      ['select', 'ACK(SELECT)', '2-215'],
      ['write', 'ACK(WRITE)', '2-215'],
      ['read', 'ACK(READ)', '2-215'],
      ['endTransfer', 'ACK(TRANS.END)', '2-215'],
      ['transferFailed', 'ABORT', '3-399'],
      ['deselected', 'ABORT', '3-399'],
    ] as const)('in %s is answered with %s %s, and reported', async (method, answer, diagnostic) => {
      const listening = await listen({}, (handler) => {
        handler.hooks[method] = fault;
        handler.source = () => new EndlessSource(1000);
      });
      const peer = await rawPeer(listening.port);
      const heard = (async (): Promise<Seen> => {
        for (;;) {
          const seen = await peer.next();
          if (seen === undefined) throw new Error('the connection ended without the answer');
          if (seen.name === answer) return seen;
        }
      })();
      peer.send('CONNECT', BODIES.CONNECT);
      const reads = method === 'select' || method === 'read';
      const handler = await listening.handler();
      if (method !== 'connect') {
        const steps: [Parameters<RawPeer['send']>[0], string][] = reads
          ? [
              ['SELECT', BODIES.SELECT],
              ['ORF', ''],
              ['READ', BODIES.READ],
            ]
          : [
              ['CREATE', BODIES.CREATE],
              ['ORF', ''],
              ['WRITE', ''],
              ['DTF.END', OK],
              ['TRANS.END', ''],
              ['CRF', OK],
              ['DESELECT', OK],
            ];
        if (method === 'transferFailed') steps.splice(2, 5, ['CRF', OK], ['DESELECT', OK]);
        // Each request when the one before it is answered: the answers themselves are not looked at.
        let seen = 1;
        for (const [name, body] of steps) {
          await received(peer, seen);
          if (handler.bugs.length > 0) break;
          peer.send(name, body);
          if (name !== 'DTF.END') seen += 1;
        }
      }
      expect(diagnosticOf(await heard)).toBe(diagnostic);
      expect(handler.bugs).toEqual([bug]);
      peer.socket.destroy();
      await handler.over;
      expect(handler.imbalance).toEqual([`bugs: ${String(bug)}`]);
      // The listener lives.
      await (await rawPeer(listening.port)).open().catch(() => undefined);
    });
  });

  /** Waits until the partner has got `count` entities. */
  async function received(peer: RawPeer, count: number): Promise<void> {
    const entities = (): number => {
      let found = 0;
      for (let at = 0; at + 2 <= peer.received.length; found++) at += 2 + peer.received.readUInt16BE(at);
      return found;
    };
    while (entities() < count && !peer.socket.destroyed)
      await new Promise((resolve) => peer.socket.once('data', resolve));
  }

  test.each([
    ['notice', (peer: RawPeer) => peer.write(Buffer.from('00090009c0110800020300', 'hex'))],
    ['learned', (peer: RawPeer) => peer.send('DTF', 'aa', 1)],
  ] as const)('in %s aborts the session, and is reported', async (method, provoke) => {
    const { peer, handler } = await session((handler) => (handler.hooks[method] = throwing));
    await peer.openToWrite();
    if (method === 'notice') {
      // ID.DST is not ours: tolerated, and noted.
      const destination = (peer.otherId % 255) + 1;
      peer.write(Buffer.from([0, 7, 0, 7, 0, 0, destination, 0, 0x41]));
    } else provoke(peer);
    expect(diagnosticOf(await peer.expect('ABORT'))).toBe('3-399');
    await handler.over;
    expect(handler.bugs).toEqual([bug]);
    expect(handler.failures).toHaveLength(1);
  });

  test.each([
    ['write', (sink: MemorySink) => (sink.onWrite = throwing)],
    ['checkpoint', (sink: MemorySink) => (sink.stored = throwing)],
    ['checkpoint, later,', (sink: MemorySink) => (sink.stored = rejecting)],
    [
      'drained',
      (sink: MemorySink) => {
        sink.full = true;
        sink.drained = throwing;
      },
    ],
    ['onFailure', (sink: MemorySink) => (sink.onWrite = () => sink.onFailure?.(bug))],
  ] as const)('in %s of a sink interrupts the transfer, and is reported', async (_, arm) => {
    const { peer, handler } = await session(() => undefined);
    await peer.openToWrite();
    arm(handler.sinks[0]!);
    peer.send('DTF', Buffer.from('abc'));
    peer.send('SYN', '140101');
    expect(diagnosticOf(await peer.expect('IDT'))).toBe('2-213');
    peer.send('ACK(IDT)');
    await peer.closeFile();
    expect(handler.bugs).toEqual([bug]);
    expect(handler.calls.slice(-2)).toEqual(['FAILED 2-213 end 4', 'DESELECTED']);
  });

  test('in a source interrupts the transfer, and is reported', async () => {
    const { peer, handler } = await session((handler) => {
      handler.source = () => ({ fill: throwing });
    });
    await peer.openToRead();
    expect(diagnosticOf(await peer.expect('IDT'))).toBe('2-213');
    peer.send('ACK(IDT)');
    await peer.closeFile();
    expect(handler.bugs).toEqual([bug]);
  });

  test('in a source that says there is more and gives nothing', async () => {
    const { peer, handler } = await session((handler) => {
      handler.source = () => ({ fill: () => Promise.resolve(true) });
    });
    await peer.openToRead();
    await peer.expect('IDT');
    peer.send('ACK(IDT)');
    await peer.closeFile();
    expect(handler.bugs.map(String)).toEqual(['Error: a burst took no article although the window is open']);
  });

  test.each([
    [{ ended: throwing }, 1],
    [{ ended: throwing, failed: throwing }, 1],
    [{ create: rejecting, failed: throwing }, 1],
  ] satisfies [Hooks, number][])('in the telling of the end, or of a bug: %j', async (hooks, bugs) => {
    const listening = await listen({}, (handler) => Object.assign(handler.hooks, hooks));
    const peer = await rawPeer(listening.port);
    await peer.open();
    const ack = await peer.exchange('CREATE', BODIES.CREATE, 'ACK(CREATE)');
    expect(diagnosticOf(ack)).toBe('create' in hooks ? '2-215' : '0-000');
    peer.socket.end();
    await listening.handlers[0]!.over;
    await peer.closed;
    expect(listening.handlers[0]!.bugs).toHaveLength(bugs);
  });

  test('in accept closes the connection, and the listener goes on', async () => {
    let calls = 0;
    const listening = await listen();
    const accept = listening.accept;
    listening.accept = (connection) => {
      if (calls++ === 0) throw bug;
      return accept(connection);
    };
    const peer = await rawPeer(listening.port);
    peer.send('CONNECT', BODIES.CONNECT);
    await peer.closed;
    expect(listening.rejected.map(({ reason }) => reason)).toEqual(['internal error: a bug of the application']);
    await (await rawPeer(listening.port)).open();
  });
});

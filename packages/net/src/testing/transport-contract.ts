import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { RequesterSession } from '@pesit-node/protocol';
import type { SessionEvent } from '@pesit-node/protocol';
import { Connection, now } from '../connection.js';
import type { ReadBuffers, Transport, TransportSecurity } from '../transport.js';
import { Recorder } from './recorder.js';

/** The other end of a transport under test, moved by other means. Reads from the start; its half stays open until `end`. */
export interface TransportPeer {
  write(bytes: Buffer): void;
  /** Bytes written that its system has not taken. */
  readonly unsent: number;
  /** Everything it received. */
  readonly received: Buffer;
  /** Resolves when `received` is that long. */
  until(length: number): Promise<void>;
  /** Resolves when the transport has closed its half, or the connection is gone. */
  readonly over: Promise<void>;
  pause(): void;
  resume(): void;
  end(): void;
  /** Ends the connection with an error at the other end. */
  reset(): void;
}

export interface TransportUnderTest {
  readonly transport: Transport;
  readonly peer: TransportPeer;
  /** Address of the peer, as the transport should see it. */
  readonly address: string;
  readonly security: TransportSecurity | undefined;
  /** Whether it reads into given buffers; otherwise it hands over its own. */
  readonly readsInto: boolean;
  /** Whether `queuedBytes` knows what waits. */
  readonly knowsQueue: boolean;
}

const MB = 1024 * 1024;
/** More than any system takes for a peer that does not read. */
const TOO_MUCH = 64 * MB;

/** Everything that a `Transport` promises. @param open a connection, for one test; its transport was not touched yet */
export const describeTransport = (kind: string, open: () => Promise<TransportUnderTest>): void => {
  describe(`a transport: ${kind}`, () => {
    let under: TransportUnderTest;
    let transport: Transport;
    let peer: TransportPeer;
    let reader: Recorder;

    beforeEach(async () => {
      under = await open();
      ({ transport, peer } = under);
      reader = new Recorder();
    });

    afterEach(async () => {
      transport.destroy();
      peer.reset();
      await transport.closed;
      expect(reader.late).toEqual([]);
    });

    const read = (): void => {
      transport.attach(reader);
      transport.resume();
    };
    const received = (length: number): Promise<void> => reader.until(() => reader.count >= length);
    /** A write, and how often it was said to be taken. */
    const watched = (start: (taken: () => void) => void) => {
      const write = { calls: 0, done: Promise.resolve() };
      write.done = new Promise((resolve) => {
        start(() => {
          write.calls += 1;
          resolve();
        });
      });
      return write;
    };
    /** Twice the other way, since both ends may have their turn in one: what had come before has been read by now. */
    const turnsPass = async (): Promise<void> => {
      for (let turn = 0; turn < 2; turn++) {
        const before = peer.received.length;
        transport.write([Buffer.from('ping')]);
        await peer.until(before + 4);
      }
    };

    test('knows the address of its peer, also when it is over, and its certificate or that it has none', async () => {
      expect(transport.remoteAddress).toBe(under.address);
      expect(transport.security).toEqual(under.security);
      transport.destroy();
      await transport.closed;
      expect(transport.remoteAddress).toBe(under.address);
    });

    describe('reads', () => {
      test('nothing before it is resumed', async () => {
        transport.attach(reader);
        peer.write(Buffer.from('hello'));
        await turnsPass();
        expect(reader.count).toBe(0);
        transport.resume();
        await received(5);
        expect(reader.bytes.toString()).toBe('hello');
      });

      test('what is split anywhere, and overwrites nothing that it has passed on', async () => {
        const bytes = randomBytes(3 * MB);
        read();
        for (let at = 0, turn = 0; at < bytes.length; turn++) {
          const end = at + 1 + ((turn * 104_729) % (turn < 1000 ? 300 : 90_000));
          peer.write(bytes.subarray(at, end));
          if (turn % 50 === 0) await received(Math.min(end, bytes.length));
          at = end;
        }
        await received(bytes.length);
        expect(reader.bytes.equals(bytes)).toBe(true);
      });

      test('into buffers that it is given from the next read on, or hands over its own', async () => {
        const bytes = randomBytes(MB);
        const arena = Buffer.alloc(2 * MB);
        let filled = 0;
        const given: ReadBuffers = {
          next: () => arena.subarray(filled, filled + 64 * 1024),
          take: (length) => arena.subarray(filled, (filled += length)),
        };
        const inArena = (chunk: Buffer | undefined): boolean => chunk?.buffer === arena.buffer;
        read();
        peer.write(bytes.subarray(0, 100));
        await received(100);
        expect(reader.chunks.some(inArena)).toBe(false);
        reader.onReceived = () => {
          transport.readInto(given);
        };
        peer.write(bytes.subarray(100));
        await received(bytes.length);
        expect(inArena(reader.chunks.at(-1))).toBe(under.readsInto);
        reader.onReceived = undefined;
        transport.readInto(undefined);
        // The read that waits already has its buffer.
        for (const turn of [1, 2]) {
          peer.write(Buffer.from('x'));
          await received(bytes.length + turn);
        }
        expect(inArena(reader.chunks.at(-1))).toBe(false);
        expect(reader.bytes.subarray(0, bytes.length).equals(bytes)).toBe(true);
      });

      test('no further when it is paused: the peer waits, then everything comes', async () => {
        const bytes = Buffer.alloc(TOO_MUCH, 'pesit');
        reader.onReceived = () => {
          transport.pause();
        };
        read();
        peer.write(bytes);
        await reader.until(() => reader.count > 0);
        await turnsPass();
        expect(reader.chunks).toHaveLength(1);
        expect(peer.unsent).toBeGreaterThan(TOO_MUCH / 2);
        reader.onReceived = undefined;
        transport.resume();
        await received(bytes.length);
        expect(reader.bytes.equals(bytes)).toBe(true);
      });

      test('in the order in which it came, however often it is paused, before it hears the end', async () => {
        const bytes = randomBytes(3 * MB);
        reader.onReceived = () => {
          transport.pause();
          setImmediate(() => {
            transport.resume();
          });
        };
        read();
        peer.write(bytes);
        peer.end();
        await transport.closed;
        expect(reader.bytes.equals(bytes)).toBe(true);
        expect(reader.ends).toEqual([undefined]);
      });

      test('for one reader at a time, from the moment of the change', async () => {
        const next = new Recorder();
        reader.onReceived = () => {
          transport.attach(next);
        };
        read();
        peer.write(Buffer.from('one'));
        await received(3);
        peer.write(Buffer.from('two'));
        await next.until(() => next.count === 3);
        expect([reader.bytes.toString(), next.bytes.toString()]).toEqual(['one', 'two']);
        peer.end();
        await transport.closed;
        expect([reader.ends.length + reader.closes, next.ends, next.closes]).toEqual([0, [undefined], 1]);
      });

      test('first what was put back', async () => {
        const next = new Recorder();
        reader.onReceived = (bytes) => {
          transport.pause();
          transport.unread(bytes.subarray(2));
          transport.attach(next);
        };
        read();
        peer.write(Buffer.from('abcdef'));
        await received(6);
        peer.write(Buffer.from('ghi'));
        await turnsPass();
        expect(next.count).toBe(0);
        transport.resume();
        await next.until(() => next.count === 7);
        expect(next.bytes.toString()).toBe('cdefghi');
      });
    });

    describe('writes', () => {
      test('in order, and says later, once, that the system has taken it', async () => {
        const parts = Array.from({ length: 300 }, (_, index) => randomBytes(1 + ((index * 7919) % 30_000)));
        const writes = [parts.slice(0, 1), parts.slice(1, 200), parts.slice(200)].map((some) =>
          watched((taken) => {
            transport.write(some, taken);
          }),
        );
        expect(writes.map(({ calls }) => calls)).toEqual([0, 0, 0]);
        await Promise.all(writes.map(({ done }) => done));
        const bytes = Buffer.concat(parts);
        await peer.until(bytes.length);
        expect(peer.received.equals(bytes)).toBe(true);
        await turnsPass();
        expect(writes.map(({ calls }) => calls)).toEqual([1, 1, 1]);
        expect(transport.queuedBytes).toBe(0);
      });

      test('as far as the peer reads: what waits is not taken, and seen to wait', async () => {
        const bytes = Buffer.alloc(TOO_MUCH, 'pesit');
        peer.pause();
        read();
        const write = watched((taken) => {
          transport.write([bytes], taken);
        });
        peer.write(Buffer.from('pong'));
        await received(4);
        expect(write.calls).toBe(0);
        if (under.knowsQueue) expect(transport.queuedBytes).toBeGreaterThan(TOO_MUCH / 2);
        peer.resume();
        await Promise.all([write.done, peer.until(bytes.length)]);
        expect(peer.received.equals(bytes)).toBe(true);
        expect(transport.queuedBytes).toBe(0);
      });

      test('a session whose peer takes nothing ends at its write timeout', async () => {
        const timers = { write: 100, close: 100 };
        const session = new RequesterSession({ dialect: 'raw', now: now(), connectionId: 1, timers }, false);
        const ends: SessionEvent[] = [];
        const connection = new Connection(transport, session, {
          onEvent: (event) => ends.push(event),
          onBytes: () => undefined,
          onBug: (error) => {
            throw error;
          },
        });
        peer.pause();
        session.connect({ requester: 'PART', server: 'SERV', accessType: 2 });
        connection.attend();
        const burst = connection.writeBurst(Buffer.alloc(TOO_MUCH));
        await connection.closed();
        await burst;
        expect(ends).toMatchObject([{ kind: 'ENDED', error: { fault: 'timeout', diagnostic: '3-317' } }]);
      });
    });

    describe('ends', () => {
      test('its own half behind what was written, and reads on until the peer closes', async () => {
        const bytes = randomBytes(MB);
        read();
        transport.write([bytes]);
        transport.end();
        transport.end();
        await peer.over;
        expect(peer.received.equals(bytes)).toBe(true);
        const dropped = watched((taken) => {
          transport.write([Buffer.from('too late')], taken);
        });
        await dropped.done;
        peer.write(Buffer.from('last words'));
        await received(10);
        expect([reader.ends, reader.closes]).toEqual([[], 0]);
        peer.end();
        await transport.closed;
        expect([reader.ends, reader.closes, peer.received.length]).toEqual([[undefined], 1, bytes.length]);
      });

      test('when the peer closes its half: all that it sent first, and all that was written leaves', async () => {
        const [there, back] = [randomBytes(MB), randomBytes(8 * MB)];
        read();
        transport.write([back]);
        peer.write(there);
        peer.end();
        await transport.closed;
        expect(reader.bytes.equals(there)).toBe(true);
        expect([reader.ends, reader.closes, transport.destroyed]).toEqual([[undefined], 1, true]);
        await peer.over;
        expect(peer.received.equals(back)).toBe(true);
      });

      test('with why, when the peer resets', async () => {
        read();
        peer.reset();
        await transport.closed;
        expect(reader.ends).toMatchObject([{ code: 'ECONNRESET' }]);
        expect([reader.closes, transport.destroyed]).toEqual([1, true]);
      });

      test('with why, when the peer resets in the middle of a write, which waits no longer', async () => {
        peer.pause();
        read();
        const write = watched((taken) => {
          transport.write([Buffer.alloc(TOO_MUCH)], taken);
        });
        peer.write(Buffer.from('pong'));
        await received(4);
        expect(write.calls).toBe(0);
        peer.reset();
        await Promise.all([transport.closed, write.done]);
        expect(reader.ends).toMatchObject([{ code: expect.stringMatching(/^(ECONNRESET|EPIPE)$/) }]);
        expect(reader.closes).toBe(1);
      });

      test('at once when it is destroyed: writes wait no longer, and nothing is said but that it is closed', async () => {
        peer.pause();
        read();
        const write = watched((taken) => {
          transport.write([Buffer.alloc(TOO_MUCH)], taken);
        });
        transport.destroy();
        expect([transport.destroyed, reader.closes]).toEqual([true, 0]);
        await Promise.all([transport.closed, write.done]);
        expect([reader.ends, reader.closes]).toEqual([[], 1]);
        peer.resume();
        await peer.over;
      });

      test('and then takes every call without a word', async () => {
        read();
        transport.destroy();
        await transport.closed;
        const write = watched((taken) => {
          transport.write([Buffer.from('a'), Buffer.from('b')], taken);
        });
        expect(write.calls).toBe(0);
        transport.end();
        transport.pause();
        transport.resume();
        transport.readInto(undefined);
        transport.destroy();
        await write.done;
        expect([reader.ends, reader.closes, transport.queuedBytes]).toEqual([[], 1, 0]);
      });

      test('without a reader, and tells the one that comes late', async () => {
        transport.resume();
        peer.reset();
        await transport.closed;
        transport.attach(reader);
        expect([reader.ends.length, reader.closes]).toEqual([0, 0]);
        await reader.until(() => reader.closes === 1);
        expect(reader.ends).toMatchObject([{ code: 'ECONNRESET' }]);
      });
    });
  });
};

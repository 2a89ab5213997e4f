/** A partner that takes our data slowly is not silent; one that takes nothing is, after the write timeout. */
import { Duplex } from 'node:stream';
import type { Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { FILE_TYPE_MESSAGE, RequesterSession } from '@pesit-node/protocol';
import type { SessionEvent } from '@pesit-node/protocol';
import { Connection, now } from '../src/connection.js';
import { create } from './support/harness.js';
import { BODIES, OK, entity, fpdu } from './support/wire.js';
import type { Name } from './support/wire.js';

const TP = 1000;

/** A socket whose kernel takes what the test lets it take. */
class StubSocket extends Duplex {
  readonly _handle = { writeQueueSize: 0 };
  /** Nothing is taken before `accept`. */
  stuck = false;
  #done: (() => void) | undefined;

  override _read(): void {
    // Nothing comes from here: the test feeds the connection itself.
  }
  override _write(bytes: Buffer, _: string, done: () => void): void {
    this._handle.writeQueueSize += bytes.length;
    if (bytes.length < 1000 && !this.stuck) {
      this.#done = done;
      this.accept(bytes.length);
    } else {
      this.#done = done;
    }
  }
  accept(bytes: number): void {
    this._handle.writeQueueSize -= bytes;
    if (this._handle.writeQueueSize > 0) return;
    const done = this.#done;
    this.#done = undefined;
    done?.();
  }
  setNoDelay(): void {
    // As a socket has it.
  }
  setKeepAlive(): void {
    // As a socket has it.
  }
}

beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['setImmediate'] });
});
afterEach(() => {
  jest.useRealTimers();
});

interface Situation {
  readonly socket: StubSocket;
  readonly session: RequesterSession;
  readonly events: SessionEvent[];
  readonly connection: Connection;
  readonly hear: (name: Name, body: string, source?: number) => void;
}

/** A session between two files. */
function idle(write: number): Situation {
  const socket = new StubSocket();
  const session = new RequesterSession(
    { dialect: 'length-prefixed', now: now(), connectionId: 7, timers: { response: TP, write } },
    false,
  );
  const events: SessionEvent[] = [];
  const connection = new Connection(socket as unknown as Socket, session, {
    onEvent: (event) => events.push(event),
    onBytes: () => undefined,
    onBug: (error) => {
      throw error;
    },
  });
  const hear = (name: Name, body: string, source = 0): void => {
    connection.receive(entity('length-prefixed', fpdu(name, 7, source, body)));
  };
  session.connect({ requester: 'PART', server: 'SERV', accessType: 2 });
  hear('ACONNECT', BODIES.ACONNECT, 9);
  return { socket, session, events, connection, hear };
}

/** A session that has a burst of 100 KB on its way, and nothing else. */
function sending(write = TP): Situation {
  const situation = idle(write);
  const { session, connection, hear } = situation;
  session.create({ ...create, maxEntitySize: 60_000, recordLength: 50_000 });
  hear('ACK(CREATE)', `${OK} 1902ea60`);
  session.open();
  hear('ACK(ORF)', OK);
  session.write();
  hear('ACK(WRITE)', BODIES['ACK(WRITE)']);
  session.startSending({ number: 0, dataBytes: 0, articles: 0 });
  const burst = session.beginBurst(Buffer.alloc(512 * 1024));
  burst.reserve(50_000);
  burst.reserve(50_000);
  void connection.writeBurst(session.endBurst());
  return situation;
}

const timedOut = (events: readonly SessionEvent[]): boolean =>
  events.some((event) => event.kind === 'ENDED' && event.error?.diagnostic === '3-317');

describe('while one burst leaves', () => {
  test('a partner that takes a little in each Tp keeps the session', () => {
    const { socket, events } = sending();
    for (let turn = 0; turn < 20; turn++) {
      socket.accept(1000);
      jest.advanceTimersByTime(TP - 1);
    }
    expect(timedOut(events)).toBe(false);
    // Nothing more: Tp after the last that moved.
    jest.advanceTimersByTime(2 * TP + 2);
    expect(timedOut(events)).toBe(true);
  });

  test('TRANS.END waits behind it: its answer is not late before the data have left', () => {
    const { socket, session, events, connection } = sending();
    session.endData();
    session.endTransfer();
    connection.settle();
    expect(session.state).toBe('TDE08A');
    for (let turn = 0; turn < 20; turn++) {
      socket.accept(1000);
      jest.advanceTimersByTime(TP - 1);
    }
    expect(timedOut(events)).toBe(false);
    socket.accept(socket._handle.writeQueueSize);
    jest.advanceTimersByTime(TP - 1);
    expect(timedOut(events)).toBe(false);
    jest.advanceTimersByTime(2);
    expect(timedOut(events)).toBe(true);
  });

  test.each([TP, TP / 4, 4 * TP])(
    'a partner that takes nothing is given up after the write timeout of %d ms',
    (write) => {
      const { events } = sending(write);
      jest.advanceTimersByTime(write - 1);
      expect(timedOut(events)).toBe(false);
      jest.advanceTimersByTime(2);
      expect(timedOut(events)).toBe(true);
    },
  );

  test('what it owes when it has taken everything is due after Tp, however long the write timeout is', async () => {
    const { socket, session, events, connection } = sending(100 * TP);
    session.endData();
    session.endTransfer();
    connection.settle();
    jest.advanceTimersByTime(50 * TP);
    expect(timedOut(events)).toBe(false);
    socket.accept(socket._handle.writeQueueSize);
    // TRANS.END leaves behind the burst.
    await new Promise(setImmediate);
    jest.advanceTimersByTime(TP + 1);
    expect(timedOut(events)).toBe(true);
  });

  test('a message is written as data are: one that nobody takes ends with the write timeout', () => {
    const { socket, session, events, connection } = idle(TP / 4);
    socket.stuck = true;
    session.sendMessage({
      ...{ fileIdentifier: { fileType: FILE_TYPE_MESSAGE, fileName: 'FILE' }, transferId: 1 },
      message: Buffer.alloc(3000),
    });
    connection.settle();
    jest.advanceTimersByTime(TP / 4 + 1);
    expect(timedOut(events)).toBe(true);
  });
});

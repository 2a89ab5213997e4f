/** A partner that takes our data slowly is not silent; one that takes nothing is, after the write timeout. */
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { FILE_TYPE_MESSAGE, RequesterSession } from '@pesit-node/protocol';
import type { SessionEvent } from '@pesit-node/protocol';
import { Connection, now } from '../src/connection.js';
import type { Transport } from '../src/transport.js';
import { create } from './support/harness.js';
import { BODIES, OK, entity, fpdu } from './support/wire.js';
import type { Name } from './support/wire.js';

const TP = 1000;

/** A transport whose system takes what the test lets it take, in order. */
class SlowTransport implements Transport {
  readonly remoteAddress = '127.0.0.1';
  readonly security = undefined;
  readonly closed = new Promise<void>(() => undefined);
  destroyed = false;
  queuedBytes = 0;
  /** Nothing is taken before `accept`. */
  stuck = false;
  #writes: { left: number; readonly taken: () => void }[] = [];

  write(parts: readonly Buffer[], taken: () => void): void {
    const length = parts.reduce((sum, part) => sum + part.length, 0);
    if (length < 1000 && !this.stuck && this.#writes.length === 0) {
      process.nextTick(taken);
      return;
    }
    this.queuedBytes += length;
    this.#writes.push({ left: length, taken });
  }

  accept(bytes: number): void {
    this.queuedBytes -= bytes;
    let more = bytes;
    for (let first = this.#writes[0]; first !== undefined && more >= first.left; first = this.#writes[0]) {
      more -= first.left;
      this.#writes.shift();
      first.taken();
    }
    if (this.#writes[0] !== undefined) this.#writes[0].left -= more;
  }

  // The test feeds the connection itself, and looks at its session alone.
  attach = (): void => undefined;
  readInto = (): void => undefined;
  unread = (): void => undefined;
  pause = (): void => undefined;
  resume = (): void => undefined;
  end = (): void => undefined;
  destroy = (): void => undefined;
}

beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick'] });
});
afterEach(() => {
  jest.useRealTimers();
});

interface Situation {
  readonly transport: SlowTransport;
  readonly session: RequesterSession;
  readonly events: SessionEvent[];
  readonly connection: Connection;
  readonly hear: (name: Name, body: string, source?: number) => void;
}

/** A session between two files. */
function idle(write: number): Situation {
  const transport = new SlowTransport();
  const session = new RequesterSession(
    { dialect: 'length-prefixed', now: now(), connectionId: 7, timers: { response: TP, write } },
    false,
  );
  const events: SessionEvent[] = [];
  const connection = new Connection(transport, session, {
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
  return { transport, session, events, connection, hear };
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
    const { transport, events } = sending();
    for (let turn = 0; turn < 20; turn++) {
      transport.accept(1000);
      jest.advanceTimersByTime(TP - 1);
    }
    expect(timedOut(events)).toBe(false);
    // Nothing more: Tp after the last that moved.
    jest.advanceTimersByTime(2 * TP + 2);
    expect(timedOut(events)).toBe(true);
  });

  test('TRANS.END waits behind it: its answer is not late before the data have left', () => {
    const { transport, session, events, connection } = sending();
    session.endData();
    session.endTransfer();
    connection.attend();
    expect(session.state).toBe('TDE08A');
    for (let turn = 0; turn < 20; turn++) {
      transport.accept(1000);
      jest.advanceTimersByTime(TP - 1);
    }
    expect(timedOut(events)).toBe(false);
    transport.accept(transport.queuedBytes);
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
    const { transport, session, events, connection } = sending(100 * TP);
    session.endData();
    session.endTransfer();
    connection.attend();
    jest.advanceTimersByTime(50 * TP);
    expect(timedOut(events)).toBe(false);
    transport.accept(transport.queuedBytes);
    // TRANS.END leaves behind the burst.
    await new Promise(setImmediate);
    jest.advanceTimersByTime(TP + 1);
    expect(timedOut(events)).toBe(true);
  });

  test('a message is written as data are: one that nobody takes ends with the write timeout', () => {
    const { transport, session, events, connection } = idle(TP / 4);
    transport.stuck = true;
    session.sendMessage({
      ...{ fileIdentifier: { fileType: FILE_TYPE_MESSAGE, fileName: 'FILE' }, transferId: 1 },
      message: Buffer.alloc(3000),
    });
    connection.attend();
    jest.advanceTimersByTime(TP / 4 + 1);
    expect(timedOut(events)).toBe(true);
  });
});

/** Limits of bytes a second, on a clock that goes where the test sets it: no file waits in real time. */
import { describe, expect, test } from '@jest/globals';
import type { Pace, PesitRequester } from '../src/index.js';
import { pacedSyncPoints, Rates } from '../src/index.js';
import { RateLimit } from '../src/rate-limit.js';
import type { RateClock, RateShare } from '../src/rate-limit.js';
import {
  articlesOf,
  closing,
  connect,
  create,
  gate,
  listen,
  rejectionOf,
  select,
  tpHasPassed,
} from './support/harness.js';
import { EndlessSource, MemorySink, MemorySource } from './support/memory.js';
import { START } from './support/partner.js';

const KB = 1024;

class TestClock implements RateClock {
  time = 0;
  /** Most timers that ran at a time. */
  most = 0;
  readonly #timers = new Map<object, { readonly at: number; readonly run: () => void }>();

  readonly now = (): number => this.time;
  readonly after = (ms: number, run: () => void): (() => void) => {
    const timer = {};
    this.#timers.set(timer, { at: this.time + ms, run });
    this.most = Math.max(this.most, this.#timers.size);
    return () => void this.#timers.delete(timer);
  };

  /** Lets time pass to the next timer. @returns false when there is none */
  next(): boolean {
    const [first] = [...this.#timers].sort(([, one], [, other]) => one.at - other.at);
    if (first === undefined) return false;
    this.#timers.delete(first[0]);
    this.time = Math.max(this.time, first[1].at);
    first[1].run();
    return true;
  }
}

/** Passes `piece` bytes again and again, whenever it may; counts them until it is told to stop. */
const passing = (share: RateShare, piece: number) => {
  const figures = { bytes: 0, stopped: false };
  const pass = async (): Promise<void> => {
    while (!figures.stopped) {
      figures.bytes += piece;
      await share.take(piece);
    }
  };
  return { figures, passed: pass() };
};

/** What was promised by now is done. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const runUntil = async (clock: TestClock, time: number): Promise<void> => {
  while (clock.time < time) {
    await settle();
    if (!clock.next()) throw new Error('nobody waits');
  }
};

describe('a limit', () => {
  test('lets so many bytes pass a second, evenly', async () => {
    const clock = new TestClock();
    const limit = new RateLimit(100_000, clock);
    const { figures } = passing(limit.share(), 4000);
    let before = 0;
    for (let second = 1; second <= 20; second++) {
      await runUntil(clock, second * 1000);
      const bytes = figures.bytes - before;
      before = figures.bytes;
      // A tenth of a second, and pieces on either side.
      expect(Math.abs(bytes - 100_000)).toBeLessThanOrEqual(25_000);
    }
    expect(Math.abs(figures.bytes - 2_000_000)).toBeLessThanOrEqual(25_000);
    figures.stopped = true;
  });

  test('is shared evenly by those who wait, whatever the size of their pieces, with one timer', async () => {
    const clock = new TestClock();
    const limit = new RateLimit(100_000, clock);
    const all = [500, 4000, 30_000, 60_000].map((piece) => passing(limit.share(), piece).figures);
    await runUntil(clock, 100_000);
    for (const { bytes } of all) expect(Math.abs(bytes - 2_500_000)).toBeLessThanOrEqual(130_000);
    const late = passing(limit.share(), 4000).figures;
    const before = all.map(({ bytes }) => bytes);
    await runUntil(clock, 200_000);
    // Who comes late gets its part from then on, and makes up for nothing.
    expect(Math.abs(late.bytes - 2_000_000)).toBeLessThanOrEqual(130_000);
    for (const [index, { bytes }] of all.entries())
      expect(Math.abs(bytes - before[index]! - 2_000_000)).toBeLessThanOrEqual(130_000);
    expect(clock.most).toBe(1);
    for (const figures of [...all, late]) figures.stopped = true;
  });

  test('gives what nobody used to nobody: after a rest it lets a tenth of a second pass at once', async () => {
    const clock = new TestClock();
    const share = new RateLimit(100_000, clock).share();
    clock.time = 3_600_000;
    expect(share.take(9999)).toBeUndefined();
    expect(share.take(1)).toBeUndefined();
    expect(share.take(1)).toBeInstanceOf(Promise);
    share.close();
    await settle();
    expect(clock.next()).toBe(false);
  });

  test('counts what has passed also when its transfer is over, and lets go who waits', async () => {
    const clock = new TestClock();
    const limit = new RateLimit(100_000, clock);
    const [short, other] = [limit.share(), limit.share()];
    expect(short.take(10_000)).toBeUndefined();
    const waiting = short.take(90_000);
    short.close();
    await waiting;
    expect(short.take(1)).toBeUndefined();
    const free = other.take(0);
    expect(free).toBeInstanceOf(Promise);
    while (clock.next());
    await free;
    expect(clock.time).toBeGreaterThanOrEqual(900);
  });

  test('that changes counts at once, and one that is taken away lets all go', async () => {
    const clock = new TestClock();
    const limit = new RateLimit(1000, clock);
    const share = limit.share();
    expect(share.take(100)).toBeUndefined();
    const slow = share.take(100_000);
    limit.rate = 100_000;
    clock.next();
    await slow;
    const free = share.take(1);
    limit.rate = undefined;
    await free;
    expect(share.take(1_000_000)).toBeUndefined();
    expect(clock.next()).toBe(false);
  });
});

describe('the limits of a process', () => {
  test('are shared by name; the slower one counts, and none is none', async () => {
    const clock = new TestClock();
    const rates = new Rates(clock);
    expect(rates.pace([{ name: 'partner A', bytesPerSecond: null }])).toBeUndefined();
    const listener = { name: 'listener', bytesPerSecond: 150_000 };
    const paces = ['A', 'B'].map((id) => rates.pace([{ name: `partner ${id}`, bytesPerSecond: 100_000 }, listener]));
    const both = paces.map((pace) => passing(pace!, pace!.quantum).figures);
    await runUntil(clock, 20_000);
    for (const { bytes } of both) expect(Math.abs(bytes - 1_500_000)).toBeLessThanOrEqual(50_000);
    // A file that begins says what the limit is now.
    rates.pace([{ name: 'listener', bytesPerSecond: null }]);
    const before = both.map(({ bytes }) => bytes);
    await runUntil(clock, 40_000);
    for (const [index, { bytes }] of both.entries())
      expect(Math.abs(bytes - before[index]! - 2_000_000)).toBeLessThanOrEqual(50_000);
    for (const figures of both) figures.stopped = true;
  });

  test.each([
    [65_536, 6553],
    [1_000_000, 65_536],
    [10_000, 4096],
  ])('%i bytes a second go in pieces of %i', (bytesPerSecond, quantum) => {
    expect(new Rates().pace([{ name: 'x', bytesPerSecond }])?.quantum).toBe(quantum);
  });

  test.each([
    [[null, null], 256, 4, 256, 4],
    [[65_536, null], 256, 4, 256, 2],
    [[65_536, 1_000_000], 2048, 4, 640, 1],
    [[65_536], 64, 0, 64, 0],
    [[1_000_000_000], 32_767, 3, 32_767, 3],
  ])('%j: of %i KB and a window of %i are offered %i and %i', (rates, intervalKb, window, interval, most) => {
    expect(pacedSyncPoints({ intervalKb, window }, rates)).toEqual({ intervalKb: interval, window: most });
  });
});

describe('a file', () => {
  const articles = articlesOf(Array.from({ length: 500 }, () => 4000));
  const BYTES = 500 * 4000;
  const RATE = 200_000;

  /** A limit on a clock that goes to its next timer by itself. */
  const running = (): { readonly rates: Rates; readonly clock: TestClock } => {
    const clock = new TestClock();
    const after = (ms: number, run: () => void): (() => void) => {
      const callOff = clock.after(ms, run);
      setImmediate(() => clock.next());
      return callOff;
    };
    return { rates: new Rates({ now: clock.now, after }), clock };
  };
  const paced = (rates: Rates): Pace | undefined => rates.pace([{ name: 'x', bytesPerSecond: RATE }]);

  const receiving = async (requester: PesitRequester, pace?: Pace): Promise<Buffer> => {
    const sink = new MemorySink();
    const open = () => Promise.resolve({ from: START, sink });
    await requester.receiveFile({ request: select, open, stored: () => Promise.resolve(), pace });
    return sink.bytes;
  };

  const WAYS: readonly (readonly [string, (rates: Rates) => Promise<Buffer>])[] = [
    [
      'that the server receives',
      async (rates) => {
        const listening = await listen({}, (handler) => (handler.pace = () => paced(rates)));
        await (await connect(listening.port)).sendFile({ request: create, source: new MemorySource(articles) });
        return listening.handlers[0]!.sinks[0]!.bytes;
      },
    ],
    [
      'that the server sends',
      async (rates) => {
        const listening = await listen({}, (handler) => {
          handler.source = () => new MemorySource(articles);
          handler.pace = () => paced(rates);
        });
        return receiving(await connect(listening.port));
      },
    ],
    [
      'that the requester sends',
      async (rates) => {
        const listening = await listen();
        const requester = await connect(listening.port);
        await requester.sendFile({ request: create, source: new MemorySource(articles), pace: paced(rates) });
        return listening.handlers[0]!.sinks[0]!.bytes;
      },
    ],
    [
      'that the requester receives',
      async (rates) => {
        const listening = await listen({}, (handler) => (handler.source = () => new MemorySource(articles)));
        return receiving(await connect(listening.port), paced(rates));
      },
    ],
  ];
  test.each(WAYS)('%s takes its time, and is whole', async (_, transfer) => {
    const { rates, clock } = running();
    expect((await transfer(rates)).equals(Buffer.concat(articles))).toBe(true);
    // The last pieces are not waited for.
    expect(clock.time).toBeGreaterThan((BYTES / RATE) * 1000 * 0.9);
    expect(clock.time).toBeLessThan((BYTES / RATE) * 1000 * 1.2);
  });

  test('small ones, one after the other, are slowed as a large one is', async () => {
    const { rates, clock } = running();
    const listening = await listen({}, (handler) => (handler.pace = () => paced(rates)));
    const requester = await connect(listening.port);
    const small = articlesOf([20_000]);
    for (let file = 0; file < 50; file++)
      await requester.sendFile({ request: { ...create, transferId: file + 1 }, source: new MemorySource(small) });
    expect(clock.time).toBeGreaterThan(((50 * 20_000) / RATE) * 1000 * 0.8);
  });

  test('that waits runs into no timer, holds few bytes, and ends when its limit goes', async () => {
    // A clock that stands still.
    const rates = new Rates(new TestClock());
    const sink = new MemorySink();
    const written = gate();
    sink.keep = false;
    sink.onWrite = () => {
      written.open();
    };
    const listening = await listen({ timers: { response: 400 } }, (handler) => {
      handler.newSink = () => sink;
      handler.pace = () => paced(rates);
    });
    const requester = await connect(listening.port, { timers: { response: 60_000 } });
    const sending = requester.sendFile({ request: create, source: new MemorySource(articles) });
    await written.passed;
    await tpHasPassed(listening.port);
    await tpHasPassed(listening.port);
    // A tenth of a second, and what was read at once.
    expect(sink.taken).toBeLessThan(RATE / 10 + 128 * KB);
    rates.pace([{ name: 'x', bytesPerSecond: null }]);
    await sending;
    expect(sink.taken).toBe(BYTES);
  });

  test('that waits does not hold up the end of its listener, in either direction', async () => {
    for (const way of ['send', 'receive'] as const) {
      const rates = new Rates(new TestClock());
      const begun = gate();
      const listening = await listen({}, (handler) => {
        handler.pace = () => paced(rates);
        handler.source = () => {
          begun.open();
          return new EndlessSource(4000);
        };
        handler.newSink = () => {
          begun.open();
          return new MemorySink();
        };
      });
      const requester = await connect(listening.port);
      const over = rejectionOf(
        way === 'send'
          ? requester.sendFile({ request: create, source: new EndlessSource(4000) })
          : receiving(requester),
      );
      await begun.passed;
      const closed = listening.listener.close(closing, 1);
      expect((await over).diagnostic).toBe('3-316');
      await requester.release();
      await closed;
    }
  });
});

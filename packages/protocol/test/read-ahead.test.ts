/** A burst that is laid out before the window lets it go: what of it is on the wire, and what the peer may say of it. */
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { burstBufferSize } from '../src/index.js';
import type { CompressionMode, Dialect } from '../src/index.js';
import { CompressingBurst } from '../src/compressing.js';
import { ArticleSender } from '../src/sending.js';
import { START, articlesOf, difference, fill, dissect, fpdu, num, pi, valueOf, Chance } from '../src/testing/index.js';
import { expectedPoints } from './support/points.js';
import { Pair, errorOf, refusal } from './support/pair.js';

const X = 5;
const WINDOWS = [1, 2, 3, 255] as const;
/** One article between two points. */
const LENGTH = 700;
const ARTICLES = articlesOf(Array<number>(300).fill(LENGTH));
const reason = refusal('1-100', 'the line', 'bad line');

const numberOf = (body: Buffer, code: number): number => {
  const value = valueOf(body, code)!;
  return value.readUIntBE(0, value.length);
};
const sync = (code: number, point: number): Buffer => pi(code, num(point, point < 256 ? 1 : 2));
const synsOf = (pair: Pair): number[] =>
  pair.fpdus('requester').flatMap(({ name, body }) => (name === 'SYN' ? [numberOf(body, 20)] : []));
const upTo = (last: number): number[] => Array.from({ length: last }, (_, i) => i + 1);

/** A requester that has sent all that the window allows, and has laid out the burst behind it. */
function laidOut(window: number, timers = {}): Pair {
  const pair = new Pair({ timers });
  const syncPoints = { intervalKb: 1, window };
  pair.behaviour.answer = { syncPoints, resynchronisation: true };
  pair.behaviour.acknowledge = false;
  pair.connect({ syncPoints, resynchronisation: true });
  pair.openForWriting();
  pair.requester.startSending(START);
  expect(pair.send(ARTICLES)).toBe(window);
  expect([pair.requester.windowFull, pair.requester.burstIsVoid]).toEqual([true, false]);
  return pair;
}

/** The rest of the file. */
function finish(pair: Pair, next: number): void {
  pair.behaviour.acknowledge = true;
  expect(pair.send(ARTICLES, next)).toBe(ARTICLES.length);
  pair.requester.endData();
  pair.settle();
  expect(pair.closeFile()).toMatchObject({ dataBytes: LENGTH * ARTICLES.length, articles: ARTICLES.length });
  expect(difference(pair.lastReceived, ARTICLES)).toBeUndefined();
}

describe.each(WINDOWS)('a window of %i', (window) => {
  test('is never exceeded on the wire, whatever the articles and whenever the receiver acknowledges', () => {
    const options = fc.record({
      // A window of 255 fills only with more points than that.
      count: fc.integer({ min: 1, max: window < 255 ? 60 : 700 }),
      longest: fc.constantFrom(100, 1024, 1500, 9000),
      dialect: fc.constantFrom<Dialect>('length-prefixed', 'raw'),
      crc: fc.boolean(),
      mode: fc.constantFrom<CompressionMode | 0>(0, 0, 1, 3),
      bufferSize: fc.constantFrom(0, 600_000),
      seed: fc.nat(),
    });
    fc.assert(
      fc.property(options, ({ count, longest, dialect, crc, mode, bufferSize, seed }) => {
        const chance = new Chance(seed);
        const lengths = Array.from({ length: count }, () => 1 + chance.below(longest));
        const articles = lengths.map((length) => Buffer.alloc(length, length));
        const prefix = dialect === 'raw' ? 0 : 2;
        const base = { entitySize: 4096, prefix, crc, destination: 3, from: START };
        const sender = new ArticleSender({ ...base, interval: 1024, window });
        const burst = mode === 0 ? sender : new CompressingBurst(sender, mode);
        const buffer = Buffer.alloc(burstBufferSize(4096, bufferSize));
        const points = mode === 0 ? expectedPoints(lengths, 1024, START) : undefined;
        let [sent, acknowledged, next] = [0, 0, 0];
        const acknowledge = (): void => {
          acknowledged += 1 + chance.below(sent - acknowledged);
          expect(sender.acknowledge(acknowledged)).toMatchObject(
            points?.[acknowledged - 1] ?? { number: acknowledged },
          );
        };
        while (next < articles.length) {
          burst.begin(buffer);
          const at = fill(burst, articles, next);
          // At least a point.
          expect(at > next || sender.lastPoint > sent).toBe(true);
          next = at;
          // What is laid out is none of the receiver's business yet.
          expect(sender.acknowledge(sent + 1)).toBeUndefined();
          if (sender.blocked) {
            expect(sent - acknowledged).toBe(window);
            // Laid out are the articles up to the next point, with it, and none behind it.
            expect([sent, sent + 1]).toContain(sender.lastPoint);
            acknowledge();
            expect(sender.blocked).toBe(false);
          }
          for (const { name, body } of dissect(Buffer.from(burst.end()), dialect, crc)) {
            if (name === 'SYN') expect(numberOf(body, 20)).toBe(++sent);
            // At its bound the window suspends the data (§3.7 f).
            else expect(sent - acknowledged).toBeLessThan(window);
          }
          expect(sent - acknowledged).toBeLessThanOrEqual(window);
          if (sent > acknowledged && chance.below(3) === 0) acknowledge();
        }
        expect(sender).toMatchObject({ articles: count, lastPoint: points?.length ?? sent });
      }),
      { numRuns: 60, seed: 20_261_121 },
    );
  });

  test('holds the burst back until ACK(SYN), then lets just one more point go', () => {
    const pair = laidOut(window);
    expect(synsOf(pair)).toEqual(upTo(window));
    expect(pair.send(ARTICLES, window)).toBe(window);
    expect(synsOf(pair)).toEqual(upTo(window));
    pair.server.acknowledgeSyn(1);
    pair.settle();
    expect(pair.requester.windowFull).toBe(false);
    expect(pair.send(ARTICLES, window)).toBe(window + 1);
    expect(synsOf(pair)).toEqual(upTo(window + 1));
    expect(pair.unacknowledged).toEqual(upTo(window + 1));
    pair.server.acknowledgeSyn(window + 1);
    pair.settle();
    finish(pair, window + 1);
  });

  test('an ACK(SYN) of the point that is laid out and not sent is one of the future: 3-311', () => {
    const pair = laidOut(window);
    const out = pair.alone('requester', fpdu('ACK(SYN)', X, 0, sync(20, window + 1)));
    expect(out.map(({ name, body }) => [name, valueOf(body, 2)?.toString('hex')])).toEqual([['ABORT', '030137']]);
    expect(errorOf(pair.requesterEvents, 'ENDED')).toMatchObject({
      diagnostic: '3-311',
      expected: `at most ACK(SYN) ${window}`,
      got: `ACK(SYN) ${window + 1}`,
    });
    expect([pair.requester.sending, pair.requester.endBurst().length]).toEqual([false, 0]);
  });

  test('nor can either side go back to it', () => {
    expect(() => laidOut(window).requester.resynchronise(reason, window + 1)).toThrow(`sync point ${window + 1}`);
    const pair = laidOut(window);
    const out = pair.alone('requester', fpdu('RESYN', X, 0, '0203 010064', sync(18, window + 1)));
    expect(out.map(({ name, body }) => [name, valueOf(body, 2)?.toString('hex')])).toEqual([['ABORT', '030132']]);
  });

  test.each(['server', 'requester'] as const)('a RESYN of the %s voids the burst that is laid out', (side) => {
    const pair = laidOut(window);
    expect(pair[side].resynchronise(reason, 1)).toBe(true);
    // The one that asks holds its burst until the answer; nothing of it leaves.
    pair.settle();
    expect(pair.requester).toMatchObject({ sending: true, burstIsVoid: true, windowFull: false });
    expect(pair.requester.endBurst()).toHaveLength(0);
    expect(synsOf(pair)).toEqual(upTo(window));
    expect(pair.requester.totals).toEqual({ dataBytes: LENGTH, articles: 1 });
    const next = pair.resumeAt()!;
    expect(next).toBe(1);
    finish(pair, next);
    // Point 1 counts as acknowledged: the numbers go on behind it, without a gap.
    expect(synsOf(pair)).toEqual([...upTo(window), ...upTo(ARTICLES.length - 1).slice(1)]);
  });
});

test('the partner has its whole time from the moment we begin to wait, and none runs once it has acknowledged', () => {
  const pair = laidOut(2, { response: 10_000 });
  // So long took the reading of the burst.
  pair.now += 60_000;
  pair.requester.touch(pair.now);
  expect(pair.requester.deadline).toBe(pair.now + 10_000);
  pair.requester.handleTimeout(pair.now + 9_999);
  expect(pair.requester.phase).toBe('open');
  pair.alone('requester', fpdu('ACK(SYN)', X, 0, sync(20, 1)));
  expect(pair.requester).toMatchObject({ windowFull: false, deadline: undefined });
  const bytes = pair.requester.endBurst();
  expect(dissect(Buffer.from(bytes), 'length-prefixed').map(({ name }) => name)).toEqual(['DTF', 'SYN']);
});

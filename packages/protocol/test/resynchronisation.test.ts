/** RESYN and ACK(RESYN) (§3.6.3 p, §4.4.24, §4.8.3): both roles, both directions, damage on the line, collisions. */
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { MAX_RESYNCHRONISATIONS, RequesterSession } from '../src/index.js';
import type { CompressionMode, ConnectAnswer, ConnectRequest } from '../src/index.js';
import {
  START,
  articlesOf,
  difference,
  entity,
  fpdu,
  minimal,
  pi,
  text,
  valueOf,
  withCrc,
  Chance,
} from '../src/testing/index.js';
import type { Dissected } from '../src/testing/index.js';
import { CREATE, Pair, SELECT, errorOf, notices, refusal } from './support/pair.js';
import type { PairOptions } from './support/pair.js';

const X = 5;
const Y = 9;
const SYNC = { intervalKb: 1, window: 3 };
const reason = refusal('1-100', 'the line', 'bad line');
const ARTICLES = articlesOf(Array<number>(40).fill(500));

/** Two articles between two points. */
function pairOf(options: PairOptions = {}, sync = SYNC): Pair {
  const pair = new Pair(options);
  pair.behaviour.answer = { syncPoints: sync, resynchronisation: true };
  pair.connect({ syncPoints: sync, resynchronisation: true });
  return pair;
}

const shape = (fpdus: readonly Dissected[]): string[] =>
  fpdus.map(({ name, body }) => {
    const number = name.includes('SYN') ? (valueOf(body, 18) ?? valueOf(body, 20)) : undefined;
    return number === undefined ? name : `${name} ${number.readUIntBE(0, number.length)}`;
  });
const diagnostics = (fpdus: readonly Dissected[]): string[] =>
  fpdus.map(({ name, body }) => `${name} ${valueOf(body, 2)?.toString('hex') ?? ''}`);
const points = (pair: Pair, side: 'requesterEvents' | 'serverEvents', kind: 'RESYN' | 'ACK(RESYN)'): unknown[] =>
  pair[side].flatMap((event) => (event.kind === kind ? [event.point] : []));
/** After `n` points: two articles of 500 bytes each. */
const at = (n: number) => ({ number: n, dataBytes: 1000 * n, articles: 2 * n });

describe('PI 23', () => {
  const yes = { syncPoints: SYNC, resynchronisation: true };
  test.each<[Partial<ConnectRequest>, ConnectAnswer, string | undefined, string | undefined, boolean]>([
    [{ syncPoints: SYNC }, yes, undefined, undefined, false],
    [yes, { syncPoints: SYNC }, '01', '00', false],
    [yes, yes, '01', '01', true],
    [yes, { resynchronisation: true }, '01', '00', false],
    [{ resynchronisation: true }, yes, undefined, undefined, false],
    [{ ...yes, resynchronisation: false }, yes, undefined, undefined, false],
  ])('asked %j, allowed %j', (request, answer, asked, answered, used) => {
    const pair = new Pair();
    pair.behaviour.answer = answer;
    pair.connect(request);
    expect(valueOf(pair.fpdus('requester')[0]!.body, 23)?.toString('hex')).toBe(asked);
    expect(valueOf(pair.fpdus('server')[0]!.body, 23)?.toString('hex')).toBe(answered);
    expect([pair.requester.terms!.resynchronisation, pair.server.terms!.resynchronisation]).toEqual([used, used]);
    pair.openForWriting();
    expect([pair.requester.resynchronise(reason), pair.server.resynchronise(reason)]).toEqual([false, used]);
  });

  test('without it a RESYN is a protocol error', () => {
    const pair = new Pair();
    pair.connect();
    pair.openForWriting();
    expect(diagnostics(pair.alone('server', minimal('RESYN', Y, 0)))).toEqual(['ABORT 030137']);
  });
});

/** A server that has received `count` articles and acknowledged `stored` points; the requester has sent them. */
function writing(count: number, stored: number, options: PairOptions = {}): Pair {
  const pair = pairOf(options);
  pair.behaviour.acknowledge = false;
  pair.openForWriting();
  pair.requester.startSending(START);
  pair.send(ARTICLES.slice(0, count));
  pair.server.acknowledgeSyn(stored);
  pair.settle();
  pair.behaviour.acknowledge = true;
  return pair;
}

/** The rest of the file, from where the requester stands. */
function finish(pair: Pair, from: number): void {
  pair.send(ARTICLES, pair.resumeAt() ?? from);
  pair.requester.endData();
  pair.settle();
  expect(pair.closeFile()).toMatchObject({ dataBytes: 20_000, articles: 40 });
  expect(difference(pair.lastReceived, ARTICLES)).toBeUndefined();
}

describe('writing', () => {
  test('asked by the receiver: from the last stored point, bytes as the specification has them', () => {
    const pair = writing(7, 2);
    expect(pair.server.resynchronise(reason)).toBe(true);
    expect(pair.server.state).toBe('TDE03');
    pair.settle();
    const resyn = Buffer.concat([pi(2, '010064'), pi(18, '02'), pi(29, text('bad line'))]);
    expect(pair.fpdus('server').at(-1)).toEqual({ name: 'RESYN', destination: X, source: 0, body: resyn });
    expect(pair.fpdus('requester').at(-1)).toEqual({
      name: 'ACK(RESYN)',
      destination: Y,
      source: 0,
      body: pi(18, '02'),
    });
    expect(points(pair, 'requesterEvents', 'RESYN')).toEqual([at(2)]);
    expect(points(pair, 'serverEvents', 'ACK(RESYN)')).toEqual([at(2)]);
    expect([pair.requester.totals, pair.server.totals]).toEqual([
      { dataBytes: 2000, articles: 4 },
      { dataBytes: 2000, articles: 4 },
    ]);
    finish(pair, 7);
    // The numbers go on behind the point.
    const syns = shape(pair.fpdus('requester')).filter((one) => /^SYN|^ACK\(RES/.test(one));
    expect(syns.slice(0, 6)).toEqual(['SYN 1', 'SYN 2', 'SYN 3', 'ACK(RESYN) 2', 'SYN 3', 'SYN 4']);
  });

  test.each([[0], [1], [2], [3]])('asked by the receiver from point %i', (from) => {
    const pair = writing(7, 1);
    expect(pair.server.resynchronise(reason, from)).toBe(true);
    pair.settle();
    expect(points(pair, 'serverEvents', 'ACK(RESYN)')).toEqual([from === 0 ? START : at(from)]);
    finish(pair, 7);
  });

  test.each([[0], [1], [2], [3]])('asked by the sender from point %i', (from) => {
    const pair = writing(7, 1);
    expect(pair.requester.resynchronise(reason, from)).toBe(true);
    pair.settle();
    expect(points(pair, 'requesterEvents', 'ACK(RESYN)')).toEqual([from === 0 ? START : at(from)]);
    finish(pair, 7);
  });

  test('a point that one side does not keep is a mistake of the program', () => {
    const pair = writing(7, 2);
    expect(() => pair.server.resynchronise(reason, 1)).toThrow('sync point 1');
    expect(() => pair.server.resynchronise(reason, 4)).toThrow('sync point 4');
    expect(() => pair.requester.resynchronise(reason, 1)).toThrow('sync point 1');
    finish(pair, 7);
  });

  test('the sender may answer with the start of the file', () => {
    const pair = writing(7, 2);
    pair.behaviour.resynchronise = false;
    pair.server.resynchronise(reason);
    pair.settle();
    expect([pair.requester.state, pair.requester.sending]).toEqual(['TDE04', false]);
    expect(pair.requester.acceptResyn(true)).toBe(true);
    pair.settle();
    expect(points(pair, 'serverEvents', 'ACK(RESYN)')).toEqual([START]);
    finish(pair, 0);
  });

  test('after DTF.END, and while TRANS.END waits for its answer', () => {
    for (const upTo of ['DTF.END', 'TRANS.END']) {
      const pair = writing(7, 2);
      pair.requester.endData();
      pair.settle();
      if (upTo === 'TRANS.END') {
        // It crosses the RESYN: the receiver drops it.
        expect(pair.server.resynchronise(reason)).toBe(true);
        pair.requester.endTransfer();
        expect(pair.requester.resynchronise(reason)).toBe(false);
      } else {
        expect(pair.server.resynchronise(reason)).toBe(true);
      }
      pair.settle();
      expect([pair.requester.state, pair.server.state]).toEqual(['TDE02A', 'TDE02B']);
      finish(pair, 7);
    }
  });

  test('a burst that was open when the peer went back is void', () => {
    const pair = writing(5, 1);
    const burst = pair.requester.beginBurst(Buffer.alloc(100_000));
    expect(burst.reserve(500)).toBe(true);
    pair.server.resynchronise(reason);
    pair.settle();
    expect(burst.reserve(500)).toBe(false);
    expect(pair.requester.endBurst()).toHaveLength(0);
    finish(pair, 5);
  });

  test('a point that counts as acknowledged no longer fills the window', () => {
    const pair = writing(9, 0);
    expect(pair.requester.windowFull).toBe(true);
    pair.requester.resynchronise(reason, 3);
    pair.settle();
    expect(pair.requester.windowFull).toBe(false);
    pair.server.acknowledgeSyn(3);
    expect(pair.output('server')).toEqual([]);
    finish(pair, 6);
  });
});

describe('reading', () => {
  function reading(window = 3): Pair {
    const pair = pairOf({}, { intervalKb: 1, window });
    pair.behaviour.acknowledge = false;
    pair.behaviour.articles = ARTICLES;
    pair.openForReading();
    return pair;
  }

  test('asked by the receiver', () => {
    const pair = reading();
    pair.requester.acknowledgeSyn(2);
    pair.behaviour.acknowledge = true;
    pair.requester.resynchronise(reason);
    pair.settle();
    expect(points(pair, 'serverEvents', 'RESYN')).toEqual([at(2)]);
    expect(points(pair, 'requesterEvents', 'ACK(RESYN)')).toEqual([at(2)]);
    expect(pair.closeFile()).toMatchObject({ dataBytes: 20_000, articles: 40 });
    expect(difference(pair.read.articles, ARTICLES)).toBeUndefined();
  });

  test('asked by the sender; the receiver answers with a later point when it has stored one', () => {
    const pair = reading();
    pair.requester.acknowledgeSyn(2);
    pair.requester.takeOutput();
    pair.behaviour.acknowledge = true;
    pair.server.resynchronise(reason, 1);
    pair.settle();
    expect(points(pair, 'requesterEvents', 'RESYN')).toEqual([at(2)]);
    expect(points(pair, 'serverEvents', 'ACK(RESYN)')).toEqual([at(2)]);
    expect(pair.closeFile()).toMatchObject({ dataBytes: 20_000, articles: 40 });
    expect(difference(pair.read.articles, ARTICLES)).toBeUndefined();
  });

  test('without a window nothing is acknowledged, and what is stored counts', () => {
    const pair = reading(0);
    expect(pair.requester.state).toBe('TDL07');
    pair.requester.acknowledgeSyn(5);
    expect(pair.output('requester')).toEqual([]);
    pair.requester.resynchronise(reason);
    pair.settle();
    expect(points(pair, 'requesterEvents', 'ACK(RESYN)')).toEqual([at(5)]);
    expect(pair.closeFile()).toMatchObject({ dataBytes: 20_000, articles: 40 });
    expect(difference(pair.read.articles, ARTICLES)).toBeUndefined();
  });
});

describe('collisions (§4.8.3)', () => {
  test('two RESYNs: the requester’s goes first', () => {
    const pair = writing(7, 1);
    pair.requester.resynchronise(reason, 3);
    pair.server.resynchronise(reason, 2);
    pair.settle();
    expect(shape(pair.fpdus('requester')).at(-1)).toBe('RESYN 3');
    expect(shape(pair.fpdus('server')).slice(-2)).toEqual(['RESYN 2', 'ACK(RESYN) 3']);
    expect([points(pair, 'requesterEvents', 'RESYN'), points(pair, 'serverEvents', 'ACK(RESYN)')]).toEqual([[], []]);
    expect(points(pair, 'requesterEvents', 'ACK(RESYN)')).toEqual([at(3)]);
    finish(pair, 7);
  });

  test('the requester names a point that our RESYN made us drop: from the start', () => {
    const pair = writing(7, 2);
    pair.server.resynchronise(reason);
    const out = pair.alone('server', fpdu('SYN', Y, 0, '140104'), fpdu('RESYN', Y, 0, '0203010064 120104'));
    expect(shape(out)).toEqual(['RESYN 2', 'ACK(RESYN) 0']);
    expect(pair.server.totals).toEqual({ dataBytes: 0, articles: 0 });
  });

  test('RESYN and IDT: the IDT goes first, and there is nothing left to answer', () => {
    const pair = writing(7, 2);
    pair.behaviour.resynchronise = false;
    pair.server.resynchronise(reason);
    pair.requester.interrupt(16, refusal('2-216', 'stopped'));
    pair.settle();
    expect([pair.requester.state, pair.server.state]).toEqual(['OF02ab', 'OF02ab']);
    const other = writing(7, 2);
    other.behaviour.resynchronise = false;
    other.server.resynchronise(reason);
    other.settle();
    other.server.interrupt(12, refusal('2-216', 'stopped'));
    other.settle();
    expect([other.requester.acceptResyn(), other.requester.state]).toEqual([false, 'OF02ab']);
    other.leaveFile();
    expect(other.writeFile(ARTICLES).articles).toBe(40);
  });

  test('what is in flight is dropped: data, SYN, DTF.END, TRANS.END; ACK(SYN)', () => {
    const pair = writing(7, 2);
    pair.server.resynchronise(reason);
    pair.output('server');
    const flight = (['DTF', 'DTFDA', 'SYN', 'DTF.END', 'TRANS.END'] as const).map((name) => minimal(name, Y, 0));
    expect(pair.alone('server', ...flight)).toEqual([]);
    expect(pair.alone('server', fpdu('ACK(RESYN)', Y, 0, '120102'), fpdu('DTF', Y, 0, text('x')))).toEqual([]);
    expect(pair.server.totals).toEqual({ dataBytes: 2001, articles: 5 });
    const sender = writing(7, 2);
    sender.requester.resynchronise(reason);
    sender.output('requester');
    expect(sender.alone('requester', fpdu('ACK(SYN)', X, 0, '140103'))).toEqual([]);
    expect(shape(sender.alone('requester', fpdu('ACK(RESYN)', X, 0, '120103')))).toEqual([]);
    expect(sender.requester.totals).toEqual({ dataBytes: 3000, articles: 6 });
  });
});

describe('what partners do wrong', () => {
  test.each([['120101'], ['120103'], ['120109']])('the sender answers %s to RESYN 2: 3-306', (answer) => {
    const pair = writing(7, 2);
    pair.server.resynchronise(reason);
    expect(diagnostics(pair.alone('server', fpdu('ACK(RESYN)', Y, 0, answer))).slice(-1)).toEqual(['ABORT 030132']);
  });

  test.each([['120101'], ['120109']])('the receiver answers %s to RESYN 2: 3-306', (answer) => {
    const pair = writing(7, 1);
    pair.requester.resynchronise(reason, 2);
    expect(diagnostics(pair.alone('requester', fpdu('ACK(RESYN)', X, 0, answer))).slice(-1)).toEqual(['ABORT 030132']);
  });

  test('a RESYN to a point that was never placed: 3-306; to one that is forgotten: the start', () => {
    const never = writing(7, 2).alone('requester', fpdu('RESYN', X, 0, '0203010064 120104'));
    expect(diagnostics(never)).toEqual(['ABORT 030132']);
    const forgotten = writing(7, 2).alone('requester', fpdu('RESYN', X, 0, '0203010064 120101'));
    expect(shape(forgotten)).toEqual(['ACK(RESYN) 0']);
  });

  test('too many: 3-320, whoever asks', () => {
    const asked = writing(7, 2);
    const one = fpdu('RESYN', X, 0, '0203010064 120102');
    for (let i = 0; i < MAX_RESYNCHRONISATIONS; i++)
      expect(shape(asked.alone('requester', one))).toEqual(['ACK(RESYN) 2']);
    expect(diagnostics(asked.alone('requester', one))).toEqual(['ABORT 030140']);
    const ours = writing(7, 2);
    for (let i = 0; i < MAX_RESYNCHRONISATIONS; i++) {
      ours.server.resynchronise(reason);
      ours.settle();
    }
    expect([ours.server.resynchronise(reason), ours.server.phase]).toEqual([true, 'closing']);
    ours.settle();
    expect(errorOf(ours.serverEvents, 'ENDED')!.diagnostic).toBe('3-320');
  });

  test('silence after our RESYN: 3-317', () => {
    const pair = writing(7, 2);
    pair.server.resynchronise(reason);
    pair.output('server');
    pair.pass(30_000);
    expect(errorOf(pair.serverEvents, 'ENDED')!.diagnostic).toBe('3-317');
  });
});

/** Flips one bit of the entity that begins at `offset`, behind its prefix. */
const flip = (bytes: Buffer, at: number): Buffer => {
  bytes[at]! ^= 1;
  return bytes;
};

describe('a wrong CRC', () => {
  const damaged = withCrc(fpdu('DTF', Y, 0, text('article')));
  damaged[8]! ^= 1;

  test('in data, with PI 23: RESYN 1-100, and the file arrives', () => {
    const pair = writing(7, 2, { crc: true });
    pair.server.receive(entity(damaged), pair.now);
    pair.settle();
    const resyn = pair.fpdus('server', true).at(-1)!;
    expect([resyn.name, valueOf(resyn.body, 2)!.toString('hex')]).toEqual(['RESYN', '010064']);
    expect(valueOf(resyn.body, 29)!.toString()).toMatch(/^DTF: expected CRC 0x/);
    expect(notices(pair.serverEvents)).toEqual([expect.stringContaining('asked to send again')]);
    finish(pair, 7);
  });

  test('in data, without PI 23, and outside data: ABORT 3-310', () => {
    const pair = new Pair({ crc: true });
    pair.connect();
    pair.openForWriting();
    pair.server.receive(entity(damaged), pair.now);
    pair.settle();
    expect(diagnostics(pair.fpdus('server', true)).at(-1)).toBe('ABORT 030136');
    const idle = pairOf({ crc: true });
    idle.server.receive(entity(damaged), idle.now);
    idle.settle();
    expect(diagnostics(idle.fpdus('server', true)).at(-1)).toBe('ABORT 030136');
  });

  test.each([...Array(15).keys()].map((i) => [i + 2]))('byte %i of an entity: the rest is read on', (offset) => {
    const pair = writing(7, 2, { crc: true });
    const bytes = entity(withCrc(fpdu('DTF', Y, 0, text('article'))));
    // What follows in the same read is in flight, and dropped.
    pair.server.receive(Buffer.concat([flip(bytes, offset), entity(withCrc(minimal('DTF', Y, 0)))]), pair.now);
    pair.settle();
    expect(shape(pair.fpdus('server', true)).at(-1)).toBe('RESYN 2');
    finish(pair, 7);
  });

  test('a header that the peer really meant is its mistake, not the line’s', () => {
    const pair = writing(7, 2, { crc: true });
    const meant = fpdu('DTF', Y, 0, text('article'));
    meant[3] = 0x7f;
    pair.server.receive(entity(withCrc(meant)), pair.now);
    pair.settle();
    expect(diagnostics(pair.fpdus('server', true)).at(-1)).toBe('ABORT 030137');
  });
});

describe('PI 1 that the server ignores', () => {
  const answer = fpdu('ACONNECT', X, Y, '060102 0703000000');
  test.each(['length-prefixed', 'raw'] as const)('%s: said plainly', (dialect) => {
    const session = new RequesterSession({ dialect, now: 0, connectionId: X }, true);
    session.connect({ requester: 'A', server: 'B', accessType: 2 });
    session.receive(dialect === 'raw' ? answer : entity(answer), 1);
    session.handleTimeout(30_001);
    const event = session.nextEvent();
    expect(event).toMatchObject({
      kind: 'ENDED',
      error: { message: expect.stringMatching(/without .* CRC .*PI 1 asked/) },
    });
  });
});

test('any file, whatever is damaged, whoever goes back', () => {
  const terms = fc.record({
    seed: fc.nat(1e9),
    window: fc.constantFrom(0, 1, 2, 5),
    reading: fc.boolean(),
    mode: fc.constantFrom<CompressionMode | 0>(0, 3),
    longest: fc.constantFrom(100, 5000, 1 << 20),
  });
  fc.assert(
    fc.property(terms, ({ seed, window, reading, mode, longest }) => {
      const chance = new Chance(seed);
      const articles = Array.from({ length: chance.below(60) }, (_, i) =>
        i % 3 === 0 ? chance.bytes(1 + chance.below(2000)) : Buffer.alloc(1 + chance.below(2000), i),
      );
      const pair = pairOf({ crc: true, longest, seed }, { intervalKb: 2, window });
      pair.compression = { used: mode !== 0, mode };
      pair.behaviour.compression = { used: true, mode: 3 };
      pair.behaviour.articles = articles;
      let left = MAX_RESYNCHRONISATIONS;
      const receiver = reading ? 'requester' : 'server';
      pair.damage = (bytes, from) => {
        // Only data of the sender, in an entity of its own, and only where the receiver expects them.
        const receiving = /02[AB]/.test(pair[receiver].state);
        if (from === receiver || !receiving || bytes.readUInt8(4) !== 0 || left === 0 || chance.below(4) > 0)
          return bytes;
        left -= 1;
        return flip(bytes, 2 + chance.below(bytes.readUInt16BE(0)));
      };
      const shake = (): void => {
        if (left === 0 || chance.below(4) > 0) return;
        const side = chance.pick(['requester', 'server'] as const);
        if (pair[side].resynchronise(reason)) left -= 1;
      };
      if (reading) {
        pair.step('ACK(SELECT)', () => pair.requester.select({ ...SELECT, maxEntitySize: 1000 }));
        pair.step('ACK(ORF)', () => pair.requester.open(pair.compression));
        pair.requester.read(START);
        pair.settle();
      } else {
        pair.openForWriting({ ...CREATE, maxEntitySize: 1000 });
        pair.requester.startSending(START);
      }
      for (let at = 0, turns = 0; ; turns++) {
        if (turns > 500) throw new Error(`no end in ${pair.requester.state} ${pair.server.state}`);
        shake();
        pair.settle();
        if (!reading) at = pair.resumeAt() ?? at;
        if (!reading && pair.requester.sending) at = pair.send(articles, at);
        if (!reading && at === articles.length && pair.requester.sending) pair.requester.endData();
        pair.settle();
        if (!reading) at = pair.resumeAt() ?? at;
        if (pair.requester.state.endsWith('07') && pair.server.state.endsWith('07')) break;
      }
      const ended = pair.closeFile();
      expect(ended.articles).toBe(articles.length);
      expect(pair.requester.totals).toEqual(pair.server.totals);
      expect(difference(reading ? pair.read.articles : pair.lastReceived, articles)).toBeUndefined();
    }),
    { numRuns: 100 },
  );
});

/** What holds for all input: round trips, articles through every packing, and garbage that never does harm. */
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  FPDU_NAMES,
  FpduReader,
  MAX_FPDU_LENGTH,
  PesitError,
  burstBufferSize,
  decodeBody,
  encodeFpdu,
  isDataFpdu,
} from '../src/index.js';
import type { Dialect, Role, SessionEvent } from '../src/index.js';
import { ArticleReceiver } from '../src/receiving.js';
import { ArticleSender } from '../src/sending.js';
import { parametersOf } from './support/arbitraries.js';
import {
  Collector,
  START,
  difference,
  fill,
  MINIMAL,
  NAMES,
  entity,
  fpdu,
  minimal,
  Chance,
} from '../src/testing/index.js';
import type { Name } from '../src/testing/index.js';
import { Pair } from './support/pair.js';
import { RECORDINGS } from './support/recordings.js';
import { wholeRecording } from './support/replay.js';
import { WAYS, inStates, stateOf } from './support/states.js';

const CONTROL = FPDU_NAMES.filter((name) => !isDataFpdu(name));
const RUNS = { numRuns: 30, seed: 20_261_120 };

/** Runs `action`; a PesitError is its normal failure, any other error is a bug. */
function onlyPesitErrors(action: () => void): PesitError | undefined {
  try {
    action();
  } catch (error) {
    if (!(error instanceof PesitError)) throw error;
    return error;
  }
  return undefined;
}

describe.each(CONTROL)('%s', (name) => {
  test('decodes what it encodes, and encodes what it decodes', () => {
    fc.assert(
      fc.property(parametersOf(name), fc.nat(255), fc.nat(255), (parameters, destination, source) => {
        const bytes = encodeFpdu(name, destination, source, parameters);
        expect(bytes.readUInt16BE(0)).toBe(bytes.length);
        const decoded = decodeBody(name, destination, source, bytes.subarray(6));
        expect(decoded).toEqual({ name, destination, source, parameters, notices: [] });
        expect(encodeFpdu(name, destination, source, decoded.parameters).equals(bytes)).toBe(true);
      }),
      RUNS,
    );
  });

  test('garbage is a PesitError of the peer, or read', () => {
    const check = (body: Buffer): void => {
      const error = onlyPesitErrors(() => {
        expect(decodeBody(name, 1, 2, body).notices.length).toBeLessThanOrEqual(8);
      });
      if (error === undefined) return;
      expect(error).toMatchObject({ fault: 'remote', diagnostic: '3-318' });
      expect(error.message.startsWith(name)).toBe(true);
      expect(typeof error.expected).toBe('string');
      expect(typeof error.got).toBe('string');
    };
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => check(Buffer.from(bytes))),
      RUNS,
    );
    // Bytes that are nearly right reach further than noise.
    const chance = new Chance(7);
    const good = Buffer.from(MINIMAL[name].replace(/ /g, ''), 'hex');
    for (let i = 0; i < 200 && good.length > 0; i++) {
      const body = Buffer.from(good);
      for (let k = 0; k <= chance.below(3); k++) body[chance.below(body.length)] = chance.below(256);
      check(body.subarray(0, 1 + chance.below(body.length)));
    }
  });
});

test('garbage for a reader is a PesitError of the peer, or FPDUs, or a wait for more', () => {
  for (const dialect of ['length-prefixed', 'raw'] as const) {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 30 }), fc.boolean(), (chunks, crc) => {
        const reader = new FpduReader(dialect, crc);
        const error = onlyPesitErrors(() => {
          for (const chunk of chunks) {
            reader.push(Buffer.from(chunk));
            while (reader.next() !== undefined);
            expect(reader.pending).toBeLessThanOrEqual(MAX_FPDU_LENGTH + 4);
          }
        });
        if (error !== undefined) expect(error.fault).toBe('remote');
      }),
      { ...RUNS, numRuns: 150 },
    );
  }
});

test('any articles, in any packing and any pieces, arrive as they were', () => {
  const lengths = fc.array(fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 9000 })), {
    maxLength: 60,
  });
  const options = fc.record({
    dialect: fc.constantFrom<Dialect>('length-prefixed', 'raw'),
    crc: fc.boolean(),
    entitySize: fc.oneof(fc.integer({ min: 64, max: 300 }), fc.integer({ min: 64, max: 65_535 })),
    interval: fc.constantFrom(0, 1024, 4096),
    window: fc.nat(3),
    longest: fc.constantFrom(13, 600, 5000, 1 << 20),
    seed: fc.nat(),
  });
  fc.assert(
    fc.property(lengths, options, (sizes, { dialect, crc, entitySize, interval, window, longest, seed }) => {
      const chance = new Chance(seed);
      const articles = sizes.map((size) => chance.bytes(size));
      const prefix = dialect === 'raw' ? 0 : 2;
      const sender = new ArticleSender({ entitySize, prefix, crc, destination: 3, interval, window, from: START });
      const receiver = new ArticleReceiver('unknown');
      receiver.start(65_535, 0, 0);
      const reader = new FpduReader(dialect, crc);
      const collector = new Collector();
      const buffer = Buffer.alloc(burstBufferSize(entitySize, 0));
      let points = 0;
      for (let next = 0; next < articles.length;) {
        const sent = sender.lastPoint;
        sender.begin(buffer);
        const at = fill(sender, articles, next);
        expect(at).toBeGreaterThan(next);
        if (sender.blocked) sender.acknowledge(sent);
        const bytes = Buffer.from(sender.end());
        for (const piece of chance.split(bytes, longest)) {
          reader.push(Buffer.from(piece));
          for (let raw = reader.next(); raw !== undefined; raw = reader.next()) {
            expect(raw.length + (crc ? 2 : 0)).toBeLessThanOrEqual(entitySize);
            if (raw.name === 'SYN') points += 1;
            else receiver.receive(raw);
          }
          const batch = receiver.take();
          if (batch !== undefined) collector.add(batch);
        }
        next = at;
      }
      expect(difference(collector.articles, articles)).toBeUndefined();
      expect(collector.open).toBe(0);
      const counts = { dataBytes: sizes.reduce((a, b) => a + b, 0), articles: sizes.length };
      expect(receiver).toMatchObject(counts);
      expect(sender).toMatchObject({ ...counts, lastPoint: points });
    }),
    { ...RUNS, numRuns: 100 },
  );
});

/** Feeds bytes to one side of a pair; whatever comes, only events, output and typed errors come out. */
function survives(pair: Pair, role: Role, pieces: Iterable<Buffer>): void {
  const session = pair[role];
  let events = 0;
  for (const piece of pieces) {
    session.receive(Buffer.from(piece), ++pair.now);
    for (let event: SessionEvent | undefined = session.nextEvent(); event !== undefined; event = session.nextEvent()) {
      events += 1;
      if (event.kind === 'ENDED' || event.kind === 'INTERRUPTED') {
        expect(event.error === undefined || event.error instanceof PesitError).toBe(true);
      }
      if (event.kind === 'FPDU' && role === 'server') pair.answerAlone(event);
    }
  }
  expect(events).toBeLessThan(20_000);
  // All that it says is whole FPDUs.
  for (const { name } of pair.output(role)) expect(NAMES).toContain(name);
  if (session.phase === 'open') session.handleTimeout(pair.now + 10_000_000);
}

describe('sessions and bytes that no one should send', () => {
  const ROLES: readonly Role[] = ['requester', 'server'];

  test.each(ROLES)('noise into a %s in every state', (role) => {
    const chance = new Chance(11);
    for (const states of Object.keys(WAYS)) {
      for (let i = 0; i < 8; i++) {
        const noise = chance.bytes(1 + chance.below(400));
        survives(inStates(states), role, chance.split(noise, 60));
      }
    }
  });

  test.each(ROLES)('every FPDU, whole and damaged, into a %s in every state', (role) => {
    const chance = new Chance(12);
    const id = role === 'server' ? 9 : 5;
    for (const states of Object.keys(WAYS)) {
      for (const name of NAMES) {
        const bytes = entity(minimal(name, id, 0));
        survives(inStates(states), role, [bytes, bytes, bytes]);
        const damaged = Buffer.from(bytes);
        damaged[2 + chance.below(bytes.length - 2)] = chance.below(256);
        survives(inStates(states), role, chance.split(damaged, 9));
      }
    }
  });

  test.each(RECORDINGS)('%s, damaged in a few places', (name) => {
    const chance = new Chance(name.length);
    const recorded = wholeRecording(name);
    // The long recordings repeat themselves; their first part and their end are enough.
    const entities = recorded.length > 60 ? [...recorded.slice(0, 40), ...recorded.slice(-12)] : recorded;
    for (let round = 0; round < 12; round++) {
      for (const role of ROLES) {
        const bytes = Buffer.concat(entities.filter(({ from }) => from !== role).map((one) => entity(one.bytes)));
        for (let hit = 0; hit <= chance.below(3); hit++) {
          const at = chance.below(Math.min(bytes.length, 600));
          bytes[at] = chance.below(256);
        }
        const pair = new Pair();
        if (role === 'requester') pair.requester.connect({ requester: 'A', server: 'B', accessType: 2 });
        survives(pair, role, chance.split(bytes, 3000));
      }
    }
  });
});

describe('random walks', () => {
  test.each([1, 2, 3, 4, 5, 6, 7, 8])('walk %i: a requester made by hand against our server', (seed) => {
    const chance = new Chance(seed);
    const pair = new Pair({ seed, longest: 50 });
    pair.behaviour.answer = { syncPoints: { intervalKb: 1, window: 0 } };
    pair.alone('server', fpdu('CONNECT', 0, 5, '030141 040142 060102 0703000100 160102'));
    let point = 0;
    let transfer = 0;
    let bytes = 0;
    let articles = 0;
    const send = (name: Name, body: Buffer | string = MINIMAL[name as keyof typeof MINIMAL]): string[] =>
      pair.alone('server', fpdu(name, 9, 0, body)).map((one) => one.name);
    for (let step = 0; step < 400; step++) {
      const { state } = pair.server;
      switch (state) {
        case 'CN03':
          if (chance.below(2) === 0)
            expect(
              send(
                'CREATE',
                MINIMAL.CREATE.replace('0d0101', `0d01${(1 + (transfer++ % 250)).toString(16).padStart(2, '0')}`),
              ),
            ).toEqual(['ACK(CREATE)']);
          else expect(send('SELECT')).toEqual(['ACK(SELECT)']);
          break;
        case 'SF03':
          if (chance.below(4) === 0) expect(send('DESELECT')).toEqual(['ACK(DESELECT)']);
          else expect(send('ORF')).toEqual(['ACK(ORF)']);
          break;
        case 'SF03ab':
          expect(send('DESELECT')).toEqual(['ACK(DESELECT)']);
          break;
        case 'OF02':
        case 'OF02ab': {
          const read = pair.serverEvents.findLast(
            (event) => event.kind === 'FPDU' && /^(CREATE|SELECT)$/.test(event.name),
          );
          if (state === 'OF02ab' || chance.below(3) === 0) expect(send('CRF')).toEqual(['ACK(CRF)']);
          else if (read?.kind === 'FPDU' && read.name === 'SELECT') {
            expect(send('READ')).toEqual(['ACK(READ)', 'DTF.END']);
          } else {
            [point, bytes, articles] = [0, 0, 0];
            expect(send('WRITE')).toEqual(['ACK(WRITE)']);
          }
          break;
        }
        case 'TDE02B': {
          const choice = chance.below(6);
          if (choice === 0 && point < 255) expect(send('SYN', Buffer.from([20, 1, ++point]))).toEqual([]);
          else if (choice === 1) expect(send('DTF.END')).toEqual([]);
          else if (choice === 2) expect(send('IDT')).toEqual(['ACK(IDT)']);
          else {
            const article = chance.bytes(1 + chance.below(900));
            expect(send('DTF', article)).toEqual([]);
            bytes += article.length;
            articles += 1;
          }
          break;
        }
        case 'TDE07': {
          const counts = Buffer.alloc(12);
          counts.writeUInt16BE(0x1b04, 0);
          counts.writeUInt32BE(bytes, 2);
          counts.writeUInt16BE(0x1c04, 6);
          counts.writeUInt32BE(articles, 8);
          expect(send('TRANS.END', counts)).toEqual(['ACK(TRANS.END)']);
          break;
        }
        case 'TDL07':
          expect(send('TRANS.END')).toEqual(['ACK(TRANS.END)']);
          break;
        default:
          throw new Error(`the walk stands in ${state}`);
      }
      expect(pair.server.phase).toBe('open');
    }
  });

  /** By hand, for each state: what the peer may send then. Everything else is ABORT 3-311. */
  const LEGAL: Readonly<Record<string, string>> = {
    CN03: 'CREATE SELECT MSG MSGDM RELEASE',
    SF03: 'ORF DESELECT',
    SF03ab: 'DESELECT',
    OF02: 'WRITE CRF',
    OF02ab: 'CRF',
    TDE02B: 'DTF DTFDA SYN DTF.END IDT',
    TDE07: 'TRANS.END IDT',
    TDE08B: 'IDT',
    TDL02B: 'IDT',
    TDL07: 'TRANS.END IDT',
    TDL08B: 'IDT',
  };
  const LEGAL_ANSWERS: Readonly<Record<string, string>> = {
    CN04A: 'RELCONF',
    SF01A: 'ACK(CREATE)',
    SF02A: 'ACK(SELECT)',
    SF04A: 'ACK(DESELECT)',
    OF01A: 'ACK(ORF)',
    OF03A: 'ACK(CRF)',
    OF03Aab: 'ACK(CRF)',
    TDE01A: 'ACK(WRITE)',
    TDE02A: 'IDT',
    TDE07: 'IDT',
    TDE08A: 'ACK(TRANS.END) IDT',
    TDL01A: 'ACK(READ)',
    TDL02A: 'DTF DTFDA SYN DTF.END IDT',
    TDL07: 'IDT',
    TDL08A: 'ACK(TRANS.END) IDT',
  };

  test.each(
    Object.keys(WAYS).flatMap((states) => [
      ['server', states, LEGAL[stateOf(states, 'server')] ?? ''] as const,
      ['requester', states, LEGAL_ANSWERS[stateOf(states, 'requester')] ?? ''] as const,
    ]),
  )('our %s in %s takes "%s" and refuses the rest with 3-311', (role, states, legal) => {
    for (const name of NAMES.filter((one) => one !== 'ABORT')) {
      const pair = inStates(states);
      const answers = pair.alone(role, minimal(name, role === 'server' ? 9 : 5, 0));
      const aborted = answers.some((one) => one.name === 'ABORT' && one.body.toString('hex').startsWith('0203030137'));
      expect([name, aborted]).toEqual([name, !legal.split(' ').includes(name)]);
    }
  });
});

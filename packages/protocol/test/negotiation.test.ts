/** CONNECT and its answers: every negotiated parameter lower, higher, absent and undefined on each side (pesit-e.md §3). */
import { describe, expect, test } from '@jest/globals';
import type { SyncPointOptions } from '../src/index.js';
import { entity, fpdu, valueOf, withCrc } from '../src/testing/index.js';
import { Pair, errorOf, notices, refusal } from './support/pair.js';

const UNDEFINED = 0xffff;
const kb = (intervalKb: number, window: number): SyncPointOptions => ({ intervalKb, window });

describe('PI 7', () => {
  /** Asked, ours, what ACONNECT says, and the terms in bytes and points. */
  const cases: readonly [
    asked: SyncPointOptions | undefined,
    ours: SyncPointOptions | undefined,
    answer: string,
    interval: number,
    window: number,
  ][] = [
    [kb(32, 2), kb(32, 2), '002002', 32_768, 2],
    [kb(32, 2), kb(64, 4), '002002', 32_768, 2],
    [kb(64, 4), kb(32, 2), '002002', 32_768, 2],
    [kb(64, 2), kb(32, 4), '002002', 32_768, 2],
    [kb(32, 4), kb(64, 2), '002002', 32_768, 2],
    [kb(32_767, 3), kb(1, 255), '000103', 1024, 3],
    [kb(65_534, 255), kb(65_534, 255), 'fffeff', 67_106_816, 255],
    [kb(UNDEFINED, 4), kb(100, 2), '006402', 102_400, 2],
    [kb(100, 4), kb(UNDEFINED, 2), '006402', 102_400, 2],
    [kb(UNDEFINED, 4), kb(UNDEFINED, 2), 'ffff02', 262_144, 2],
    [kb(32, 0), kb(32, 2), '002000', 32_768, 0],
    [kb(32, 2), kb(32, 0), '002000', 32_768, 0],
    [kb(32, 1), kb(32, 255), '002001', 32_768, 1],
    [undefined, kb(32, 2), '000000', 0, 0],
    [kb(32, 2), undefined, '000000', 0, 0],
    [undefined, undefined, '000000', 0, 0],
    [kb(0, 2), kb(32, 2), '000000', 0, 0],
    [kb(32, 2), kb(0, 2), '000000', 0, 0],
  ];

  test.each(cases)('asked %j, ours %j: %s', (asked, ours, answer, interval, window) => {
    const pair = new Pair();
    pair.behaviour.answer = { syncPoints: ours };
    pair.connect({ syncPoints: asked });
    expect(valueOf(pair.fpdus('server')[0]!.body, 7)!.toString('hex')).toBe(answer);
    for (const session of [pair.requester, pair.server]) {
      expect(session.terms).toMatchObject({ syncInterval: interval, syncWindow: window });
    }
    const sent = valueOf(pair.fpdus('requester')[0]!.body, 7);
    expect(sent === undefined).toBe(asked === undefined || asked.intervalKb === 0);
  });

  test('undefined on both sides: each sender has its own default', () => {
    const pair = new Pair();
    pair.behaviour.answer = { syncPoints: kb(UNDEFINED, 2), defaultIntervalKb: 10 };
    pair.connect({ syncPoints: kb(UNDEFINED, 2), defaultIntervalKb: 20 });
    expect([pair.requester.terms?.syncInterval, pair.server.terms?.syncInterval]).toEqual([20_480, 10_240]);
  });

  /** Answers that a server of the field gives: the requester keeps to what it asked. */
  test.each([
    [kb(32, 2), '000000', 0, 0, 0],
    [kb(32, 2), undefined, 0, 0, 0],
    [kb(32, 2), '001001', 16_384, 1, 0],
    [kb(32, 2), '004004', 32_768, 2, 1],
    [kb(32, 1), '002002', 32_768, 1, 1],
    [kb(32, 2), 'ffff02', 32_768, 2, 1],
    [undefined, '000002', 0, 0, 1],
    [undefined, '002002', 0, 0, 1],
    [kb(32, 0), '002002', 32_768, 0, 1],
  ])('asked %j, answered %s', (asked, answer, interval, window, noticed) => {
    const pair = new Pair();
    pair.requester.connect({ requester: 'A', server: 'B', accessType: 2, syncPoints: asked });
    const parameters = answer === undefined ? '060102' : `060102 0703${answer}`;
    pair.requester.receive(entity(fpdu('ACONNECT', 5, 9, parameters)), 0);
    expect(pair.requester.terms).toMatchObject({ syncInterval: interval, syncWindow: window });
    const events = [];
    for (let event = pair.requester.nextEvent(); event !== undefined; event = pair.requester.nextEvent())
      events.push(event);
    expect(notices(events)).toHaveLength(noticed);
  });
});

describe('PI 6', () => {
  /** PI 6 of CONNECT, and what the answer carries; `undefined` is RCONNECT 3-308. */
  test.each([
    ['060102', '02'],
    ['060101', '01'],
    ['', '02'],
    ['060100', '02'],
    ['0601c2', '02'],
    ['060181', '01'],
    ['06020002', '02'],
    ['060103', undefined],
    ['06013f', undefined],
    ['06020102', undefined],
  ])('CONNECT with %s', (version, answer) => {
    const pair = new Pair();
    pair.inject('server', entity(fpdu('CONNECT', 0, 5, '030141 040142', version, '160102')));
    const [reply] = pair.fpdus('server');
    if (answer === undefined) {
      expect(reply).toMatchObject({ name: 'RCONNECT', destination: 5, source: 0 });
      expect(valueOf(reply!.body, 2)!.toString('hex')).toBe('030134');
      expect(valueOf(reply!.body, 29)!.toString()).toContain('version');
      expect(pair.serverEvents.some((event) => event.kind === 'FPDU')).toBe(false);
      expect(pair.server.phase).not.toBe('open');
    } else {
      expect(reply).toMatchObject({ name: 'ACONNECT', destination: 5, source: 9 });
      expect(valueOf(reply!.body, 6)!.toString('hex')).toBe(answer);
    }
  });

  test('plain 2 is sent', () => {
    const pair = new Pair();
    pair.connect();
    expect(valueOf(pair.fpdus('requester')[0]!.body, 6)!.toString('hex')).toBe('02');
  });

  test('an ACONNECT of an unknown version is 3-308', () => {
    const pair = new Pair();
    pair.requester.connect({ requester: 'A', server: 'B', accessType: 2 });
    pair.requester.receive(entity(fpdu('ACONNECT', 5, 9, '060104')), 0);
    pair.settle();
    expect(errorOf(pair.requesterEvents, 'ENDED')).toMatchObject({ fault: 'remote', diagnostic: '3-308' });
  });
});

describe('PI 1', () => {
  test.each([
    ['length-prefixed', false],
    ['length-prefixed', true],
    ['raw', false],
    ['raw', true],
  ] as const)('%s, CRC %s: the choice of the requester rules', (dialect, crc) => {
    const pair = new Pair({ dialect, crc, longest: 3 });
    pair.connect();
    expect([pair.requester.terms?.crc, pair.server.terms?.crc]).toEqual([crc, crc]);
    expect(pair.fpdus('requester', crc)[0]!.name).toBe('CONNECT');
    expect(pair.fpdus('server', crc)[0]!.name).toBe('ACONNECT');
    expect(valueOf(pair.fpdus('requester', crc)[0]!.body, 1)?.toString('hex')).toBe(crc ? '01' : undefined);
  });
});

describe('PI 23', () => {
  /** Resynchronisation is not offered yet: asked or not, it is not allowed, and nothing is answered to no question. */
  test.each([
    ['170101', '00'],
    ['170100', '00'],
    ['', undefined],
  ])('asked %s', (asked, answer) => {
    const pair = new Pair();
    pair.inject('server', entity(fpdu('CONNECT', 0, 5, '030141 040142 060102 160102', asked)));
    expect(valueOf(pair.fpdus('server')[0]!.body, 23)?.toString('hex')).toBe(answer);
    expect(pair.server.terms?.resynchronisation).toBe(false);
  });

  test('an unasked 1 in ACONNECT allows nothing', () => {
    const pair = new Pair();
    pair.requester.connect({ requester: 'A', server: 'B', accessType: 2 });
    pair.requester.receive(entity(fpdu('ACONNECT', 5, 9, '060102 0703000000 170101')), 0);
    expect(pair.requester.terms?.resynchronisation).toBe(false);
  });
});

describe('PI 22', () => {
  test.each([
    [0, true, false],
    [1, false, true],
    [2, true, true],
  ] as const)('access %i: CREATE %s, SELECT %s', (accessType, create, select) => {
    const pair = new Pair();
    pair.connect({ accessType });
    for (const [name, request, allowed] of [
      ['ACK(CREATE)', () => pair.openForWriting(), create],
      ['ACK(SELECT)', () => pair.openForReading(), select],
    ] as const) {
      if (allowed) {
        request();
        if (name === 'ACK(CREATE)') {
          pair.requester.startSending({ number: 0, dataBytes: 0, articles: 0 });
          pair.requester.endData();
        }
        pair.closeFile();
        continue;
      }
      const parameters = pair.step(name, () => {
        if (name === 'ACK(CREATE)') pair.requester.create({ ...CREATE_REQUEST });
        else pair.requester.select(SELECT_REQUEST);
      });
      expect(parameters.diagnostic).toBe('3-305');
      expect(parameters.diagnosticComplement?.toString()).toContain('PI 22');
      expect([pair.requester.state, pair.server.state]).toEqual(['CN03', 'CN03']);
    }
  });

  const SELECT_REQUEST = { fileIdentifier: { fileType: 0, fileName: 'F' }, transferId: 0, maxEntitySize: 4096 };
  const CREATE_REQUEST = {
    ...SELECT_REQUEST,
    transferId: 1,
    recordFormat: 0x80,
    recordLength: 80,
    maxReservationKb: 1,
  };
});

describe('PI 25', () => {
  test.each([
    [4096, 65_535, 4096],
    [65_535, 4096, 4096],
    [800, 800, 800],
    [64, 65_535, 64],
  ])('proposed %i, ours %i: %i in both directions', (proposed, ours, negotiated) => {
    const pair = new Pair();
    pair.behaviour.maxEntitySize = ours;
    pair.behaviour.articles = [Buffer.alloc(5000, 1)];
    pair.connect();
    pair.writeFile([Buffer.alloc(5000, 2)], { maxEntitySize: proposed });
    expect([pair.requester.entitySize, pair.server.entitySize]).toEqual([negotiated, negotiated]);
    pair.readFile({ maxEntitySize: proposed });
    expect([pair.requester.entitySize, pair.server.entitySize]).toEqual([negotiated, negotiated]);
    for (const side of ['requester', 'server'] as const) {
      const data = pair.fpdus(side).filter(({ name }) => name.startsWith('DTF') && name !== 'DTF.END');
      const longest = Math.max(...data.map(({ body }) => body.length + 6));
      expect(longest).toBe(Math.min(negotiated, 5006));
    }
    expect(pair.lastReceived[0]!.equals(Buffer.alloc(5000, 2))).toBe(true);
    expect(pair.read.articles[0]!.equals(Buffer.alloc(5000, 1))).toBe(true);
  });

  test('a server that answers more than was proposed gets what was proposed', () => {
    const pair = new Pair();
    pair.connect();
    pair.behaviour.ignore = ['CREATE'];
    pair.requester.create({
      fileIdentifier: { fileType: 0, fileName: 'F' },
      transferId: 1,
      maxEntitySize: 2048,
      recordFormat: 0x80,
      recordLength: 80,
      maxReservationKb: 1,
    });
    pair.settle();
    pair.inject('requester', entity(fpdu('ACK(CREATE)', 5, 0, '0203000000 1902ffff')));
    expect(pair.requester.entitySize).toBe(2048);
  });

  test.each(['CREATE', 'SELECT'] as const)('too small for data in %s: 3-318', (name) => {
    const pair = new Pair();
    pair.connect();
    const rest = name === 'CREATE' ? '1e07 1f0180 20020400 2803 2a0101' : '';
    pair.inject('server', entity(fpdu(name, 9, 0, '0906 0b0100 0c0146 0d0101 110100 1901 3f', rest)));
    expect(errorOf(pair.serverEvents, 'ENDED')).toMatchObject({ fault: 'remote', diagnostic: '3-318' });
    expect(valueOf(pair.fpdus('server').at(-1)!.body, 2)!.toString('hex')).toBe('03013e');
  });

  test.each(['create', 'select'] as const)('too small for data in the answer to %s: 3-318', (verb) => {
    const pair = new Pair();
    pair.connect();
    pair.behaviour.ignore = ['CREATE', 'SELECT'];
    const request = {
      fileIdentifier: { fileType: 0, fileName: 'F' },
      transferId: 1,
      maxEntitySize: 2048,
      recordFormat: 0x80,
      recordLength: 80,
      maxReservationKb: 1,
    };
    pair.requester[verb](request);
    pair.settle();
    const answer =
      verb === 'create'
        ? fpdu('ACK(CREATE)', 5, 0, '0203000000 19013f')
        : fpdu('ACK(SELECT)', 5, 0, '0203000000 0906 0b0100 0c0146 0d0101 19013f 1e07 1f0180 20020400 2803 2a0101');
    pair.inject('requester', entity(answer));
    expect(errorOf(pair.requesterEvents, 'ENDED')).toMatchObject({ fault: 'remote', diagnostic: '3-318' });
  });
});

describe('refusals of the connection', () => {
  test('RCONNECT carries diagnostic and text for the peer; both sides end', () => {
    const pair = new Pair({ longest: 2 });
    pair.behaviour.refuse = { CONNECT: refusal('3-304', 'partner X: wrong password', 'ask your administrator') };
    pair.requester.connect({ requester: 'X', server: 'S', accessType: 2, password: 'secret' });
    pair.settle();
    expect(errorOf(pair.requesterEvents, 'ENDED')).toMatchObject({ fault: 'refused', diagnostic: '3-304' });
    expect(errorOf(pair.requesterEvents, 'ENDED')!.message).toContain('ask your administrator');
    expect(errorOf(pair.serverEvents, 'ENDED')).toMatchObject({ fault: 'local', diagnostic: '3-304' });
    const [rconnect] = pair.fpdus('server');
    expect(rconnect).toMatchObject({ name: 'RCONNECT', destination: 5, source: 0 });
    expect(rconnect!.body.toString('latin1')).not.toContain('wrong password');
    expect([pair.requester.phase, pair.server.phase]).toEqual(['closed', 'closed']);
  });

  test('the text of a local error never leaves; the words of its diagnostic do', () => {
    const pair = new Pair();
    pair.behaviour.refuse = { CONNECT: refusal('3-309', 'ENOSPC: /var/lib/pesit/inbox') };
    pair.requester.connect({ requester: 'X', server: 'S', accessType: 2 });
    pair.settle();
    expect(pair.fpdus('server')[0]!.body.toString('latin1')).not.toContain('/var');
    expect(valueOf(pair.fpdus('server')[0]!.body, 29)!.toString()).toBe('too many connections');
  });

  test('RCONNECT with an ID.SRC and a text in PI 99 is understood (PeSIT Wizard)', () => {
    const pair = new Pair();
    pair.requester.connect({ requester: 'X', server: 'S', accessType: 2 });
    pair.inject('requester', entity(fpdu('RCONNECT', 5, 0xe0, '0203 03012d 6303 6e6f21')));
    expect(errorOf(pair.requesterEvents, 'ENDED')).toMatchObject({ fault: 'refused', diagnostic: '3-301' });
    expect(errorOf(pair.requesterEvents, 'ENDED')!.message).toContain('no!');
  });
});

test.each([
  ['asks for a CRC (PI 1) and came without one', '010101', false],
  ['asks for no CRC (PI 1) and came with one', '', true],
])('a CONNECT that %s is noted', (words, crc, withOne) => {
  const pair = new Pair();
  const connect = fpdu('CONNECT', 0, 5, crc, '030141 040142 060102 160102');
  pair.server.receive(entity(withOne ? withCrc(connect) : connect), pair.now);
  pair.settle();
  expect(notices(pair.serverEvents)).toEqual([expect.stringContaining(words)]);
  expect(pair.server.terms!.crc).toBe(withOne);
});

describe('the secured profile (PI 71 to 83)', () => {
  const file = '0906 0b0100 0c0146 0d0101 110100 19021000';
  const attributes = '1e07 1f0180 20020400 2803 2a0101';

  test.each([
    [71, 'CREATE', '4703010000'],
    [73, 'CREATE', '490401010101'],
    [75, 'CREATE', '4b0401010101'],
    [77, 'CREATE', '4d0401000101'],
    [75, 'SELECT', '4b0401010101'],
  ] as const)('PI %i of a %s that asks for it: refused with 2-226, and the session goes on', (code, name, asked) => {
    const pair = new Pair();
    pair.connect();
    const [answer] = pair.alone('server', fpdu(name, 9, 0, file, name === 'CREATE' ? attributes : '', asked));
    expect([answer!.name, valueOf(answer!.body, 2)!.toString('hex')]).toEqual([`ACK(${name})`, '0200e2']);
    expect(valueOf(answer!.body, 29)!.toString()).toContain(`PI ${code}`);
    expect(pair.server.state).toBe('CN03');
  });

  test('asked for by nobody (first byte 0), and its elements alone, are passed over', () => {
    const pair = new Pair();
    pair.connect();
    const nothing = '4703000000 4808 0102030405060708 490400000000 4b0400000000 4d0400000000';
    const [answer] = pair.alone('server', fpdu('CREATE', 9, 0, file, attributes, nothing));
    expect(valueOf(answer!.body, 2)!.toString('hex')).toBe('000000');
  });
});

/**
 * What products of the field do on the wire (pesit-e.md, marked [field]), a named test each. Others have their place beside
 * the rule that they bend: versions with flags, 512-byte texts and empty groups in codec-rules and negotiation, ABORT without
 * parameters, a window that was not asked for and counts that differ in failures, whole sessions in recordings,
 * pre-connections in net.
 */
import { describe, expect, test } from '@jest/globals';
import { RequesterSession, ServerSession, burstBufferSize } from '../src/index.js';
import type { CreateAnswer, Parameters, SelectAnswer, SessionEvent, SyncPointOptions } from '../src/index.js';
import { diagnosticOf, dissect, entity, fpdu, hex, num, pi, text, valueOf, START, fill } from '../src/testing/index.js';
import type { Dissected, Name } from '../src/testing/index.js';
import { CREATE, SELECT, refusal } from './support/pair.js';

const X = 5;
const Y = 9;
const SELECTED: SelectAnswer = {
  maxEntitySize: 65_535,
  fileName: 'F',
  transferId: 77,
  recordFormat: 128,
  recordLength: 1000,
  maxReservationKb: 1,
};
const CREATED: CreateAnswer = { maxEntitySize: 65_535 };

/** One of our sessions and its peer, who is the test. */
class Peer<S extends RequesterSession | ServerSession> {
  readonly session: S;
  readonly events: SessionEvent[] = [];

  constructor(session: S) {
    this.session = session;
  }

  exchange(name: Name, source: number, ...body: (string | Buffer)[]): Dissected[] {
    const own = this.session instanceof ServerSession ? Y : X;
    return this.sayTogether(fpdu(name, name === 'CONNECT' ? 0 : own, source, ...body));
  }

  /** FPDUs in one entity. */
  sayTogether(...fpdus: readonly Buffer[]): Dissected[] {
    this.session.receive(entity(...fpdus), 0);
    for (let event = this.session.nextEvent(); event !== undefined; event = this.session.nextEvent())
      this.events.push(event);
    return this.heard();
  }

  heard(): Dissected[] {
    return dissect(Buffer.concat(this.session.takeOutput()), 'length-prefixed');
  }

  /** The parameters of the last FPDU that the application was shown. */
  get shown(): Parameters {
    const event = this.events.findLast((one) => one.kind === 'FPDU');
    return event?.kind === 'FPDU' ? event.parameters : {};
  }

  get notices(): string[] {
    return this.events.flatMap((event) => (event.kind === 'NOTICE' ? [event.text] : []));
  }
}

const options = { dialect: 'length-prefixed', now: 0, timers: {} } as const;
const server = (): Peer<ServerSession> => new Peer(new ServerSession({ ...options, connectionId: Y }));
const requester = (): Peer<RequesterSession> => new Peer(new RequesterSession({ ...options, connectionId: X }));

const CONNECT = '030141 040142';
const OURS: SyncPointOptions = { intervalKb: 1024, window: 16 };

/** A partner that is connected to our server. */
function connected(more = '0703 0020 02'): Peer<ServerSession> {
  const peer = server();
  peer.exchange('CONNECT', X, CONNECT, '060102', more, '160102');
  peer.session.acceptConnection({ syncPoints: OURS });
  peer.heard();
  return peer;
}

/** The same, up to the data of a file. */
function writing(): Peer<ServerSession> {
  const peer = connected();
  peer.exchange('CREATE', 0, '0906 0b0100 0c0146 0d0101 110100 1902ffff 1e07 1f0180 20020400 2803 2a0101');
  peer.session.acceptCreate({ maxEntitySize: 4096 });
  peer.exchange('ORF', 0);
  peer.session.acceptOpen();
  peer.exchange('WRITE', 0);
  peer.session.acceptWrite(START);
  peer.heard();
  return peer;
}

describe('what products propose, and what our server makes of it', () => {
  test.each([
    ['Transfer CFT', 32_767, 3, 32_750, { syncInterval: 1024 * 1024, syncWindow: 3 }, 32_750],
    ['Axway Gateway', 100, 4, 4000, { syncInterval: 100 * 1024, syncWindow: 4 }, 4000],
    ['Connect:Express', 32, 2, 65_535, { syncInterval: 32 * 1024, syncWindow: 2 }, 65_535],
    ['Waarp Gateway', 64, 2, 65_535, { syncInterval: 64 * 1024, syncWindow: 2 }, 65_535],
    ['Stonebranch UDMG', 1024, 3, 2048, { syncInterval: 1024 * 1024, syncWindow: 3 }, 2048],
    ['PeSIT Wizard', 100, 1, 65_535, { syncInterval: 100 * 1024, syncWindow: 1 }, 65_535],
    ['PeSIT Wizard without points', 0, 1, 65_535, { syncInterval: 0, syncWindow: 0 }, 65_535],
    [
      'SecureTransport, undefined interval, no acknowledgement',
      0xffff,
      0,
      800,
      { syncInterval: 1024 * 1024, syncWindow: 0 },
      800,
    ],
  ])('%s: %i KB × %i, entity %i', (_, interval, window, size, terms, agreed) => {
    const peer = server();
    peer.exchange('CONNECT', X, CONNECT, '060102', pi(7, num(interval, 2), num(window, 1)), '160102');
    peer.session.acceptConnection({ syncPoints: OURS });
    expect(peer.session.terms).toMatchObject(terms);
    peer.heard();
    peer.exchange(
      'CREATE',
      0,
      '0906 0b0100 0c0146 0d0101 110100',
      pi(25, num(size, 2)),
      '1e07 1f0180 20020400 2803 2a0101',
    );
    peer.session.acceptCreate(CREATED);
    expect(valueOf(peer.heard()[0]!.body, 25)!.readUInt16BE(0)).toBe(agreed);
  });

  test('Connect:Express answers 4,096 to any PI 25, and 32 KB × 2: kept to', () => {
    const peer = requester();
    peer.session.connect({ requester: 'A', server: 'B', accessType: 2, syncPoints: { intervalKb: 256, window: 8 } });
    peer.exchange('ACONNECT', Y, '060102 0703 0020 02');
    expect(peer.session.terms).toMatchObject({ syncInterval: 32 * 1024, syncWindow: 2 });
    peer.session.select(SELECT);
    peer.exchange('ACK(SELECT)', 0, '0203000000 0906 0b0100 0c0146 0d0101 19021000 1e07 1f0180 20020400 2803 2a0101');
    expect(peer.session.fileTerms?.maxEntitySize).toBe(4096);
  });

  test('a server without PI 7 in ACONNECT: no points', () => {
    const peer = requester();
    peer.session.connect({ requester: 'A', server: 'B', accessType: 2, syncPoints: { intervalKb: 256, window: 8 } });
    peer.exchange('ACONNECT', Y, '060102');
    expect(peer.session.terms).toMatchObject({ syncInterval: 0, syncWindow: 0 });
  });
});

describe('Connect:Express', () => {
  test('a SELECT with its own PI 13 and E0 in PI 14: the number is echoed, all attributes come', () => {
    const peer = connected();
    peer.exchange('SELECT', 0, '0906 0b0100 0c0146 0d0107 0e01e0 110100 19021000');
    peer.session.acceptSelect(SELECTED);
    const [answer] = peer.heard();
    expect(valueOf(answer!.body, 13)!.toString('hex')).toBe('07');
    for (const code of [30, 40]) expect(valueOf(answer!.body, code)).toBeDefined();
  });

  test('PI 99 of 254 blanks in SELECT is shown as it is', () => {
    const peer = connected();
    peer.exchange('SELECT', 0, '0906 0b0100 0c0146 0d0100 0e01e0 110100 19021000', pi(99, Buffer.alloc(254, ' ')));
    expect(peer.shown.freeMessage?.equals(Buffer.alloc(254, ' '))).toBe(true);
    expect(peer.notices).toEqual([]);
  });

  test('a single article with ID.SRC = 1 and no prefix', () => {
    const peer = writing();
    expect(peer.exchange('DTF', 1, text('Hello'))).toEqual([]);
    expect(peer.session.totals).toEqual({ dataBytes: 5, articles: 1 });
    expect(peer.events).toContainEqual({ kind: 'STYLE', style: 'plain' });
  });

  test('an article that is cut to fill an entity: DTF of three and DTFDA in one, DTFFA in the next', () => {
    const peer = writing();
    const filled = fpdu('DTF', Y, 3, '0001 61 0001 62 0001 63');
    expect(peer.sayTogether(filled, fpdu('DTFDA', Y, 0, text('de')))).toEqual([]);
    expect(peer.sayTogether(fpdu('DTFFA', Y, 0, text('f')), filled)).toEqual([]);
    expect(peer.session.totals).toEqual({ dataBytes: 9, articles: 7 });
    const parts = peer.events.flatMap((event) => (event.kind === 'ARTICLES' ? event.batch.parts : []));
    expect(Buffer.concat(parts).toString()).toBe('abcdefabc');
  });

  test('what we send is in canonical order: codes ascend, the file identifier first', () => {
    const peer = requester();
    peer.session.connect({
      requester: 'A',
      server: 'B',
      password: 'P',
      accessType: 2,
      syncPoints: OURS,
      resynchronisation: true,
      freeMessage: text('x'),
    });
    const codes = ({ body }: Dissected): number[] => {
      const found: number[] = [];
      for (let at = 0; at < body.length; at += 2 + body[at + 1]!) found.push(body[at]!);
      return found;
    };
    expect(codes(peer.heard()[0]!)).toEqual([3, 4, 5, 6, 7, 22, 23, 99]);
    peer.exchange('ACONNECT', Y, '060102 0703 000000');
    peer.session.create({
      fileIdentifier: { requester: 'APP', server: 'USER', fileType: 0, fileName: 'F' },
      transferId: 1,
      restarted: true,
      dataCode: 2,
      maxEntitySize: 4096,
      recordFormat: 128,
      recordLength: 80,
      maxReservationKb: 1,
      creationDate: '260102030405',
      originalSender: 'S',
      finalReceiver: 'R',
      freeMessage: text('x'),
    });
    expect(codes(peer.heard()[0]!)).toEqual([9, 13, 15, 16, 17, 25, 30, 40, 50, 61, 62, 99]);
  });
});

describe('PeSIT Wizard', () => {
  test('PI 14 = 07, its low bits, asks for all attributes', () => {
    const peer = connected();
    peer.exchange('SELECT', 0, '0906 0b0100 0c0146 0d0100 0e0107 110100 19021000');
    peer.session.acceptSelect(SELECTED);
    const [answer] = peer.heard();
    for (const code of [30, 40]) expect(valueOf(answer!.body, code)).toBeDefined();
  });

  test('DTFs of 32,006 bytes after 4,096 was answered: taken, and said once', () => {
    const peer = writing();
    const articles = Buffer.concat(
      Array.from({ length: 40 }, () => Buffer.concat([hex('031e'), Buffer.alloc(798, 'a')])),
    );
    for (let count = 0; count < 2; count += 1) expect(peer.exchange('DTF', 40, articles)).toEqual([]);
    expect(peer.session.totals).toEqual({ dataBytes: 2 * 40 * 798, articles: 80 });
    expect(peer.notices).toEqual(['data in an entity of 32006 bytes, PI 25 allows 4096: taken']);
  });

  test('its server sends by its own size, whatever PI 25 was agreed: taken, and said once', () => {
    const peer = requester();
    peer.session.connect({ requester: 'A', server: 'B', accessType: 2 });
    peer.exchange('ACONNECT', Y, '060102 0703 000000');
    peer.session.select({ ...SELECT, maxEntitySize: 1000 });
    peer.exchange('ACK(SELECT)', 0, '0203000000 0906 0b0100 0c0146 0d0101 190203e8 1e07 1f0180 20020400 2803 2a0101');
    peer.session.open();
    peer.exchange('ACK(ORF)', 0, '0203000000');
    peer.session.read(START);
    peer.exchange('ACK(READ)', 0, '0203000000');
    const dtf = fpdu('DTF', X, 0, Buffer.alloc(600));
    for (let count = 0; count < 2; count += 1) expect(peer.sayTogether(dtf, dtf)).toEqual([]);
    expect(peer.session.totals).toEqual({ dataBytes: 2400, articles: 4 });
    expect(peer.notices).toEqual(['data in an entity of 1212 bytes, PI 25 allows 1000: taken']);
  });

  test('its server acknowledges every point although window 0 was asked for: taken, and said once', () => {
    const peer = requester();
    const asked = { intervalKb: 1, window: 0 };
    peer.session.connect({ requester: 'A', server: 'B', accessType: 2, syncPoints: asked });
    peer.exchange('ACONNECT', Y, '060102 0703 000102');
    peer.session.create(CREATE);
    peer.exchange('ACK(CREATE)', 0, '0203000000 19021000');
    peer.session.open();
    peer.exchange('ACK(ORF)', 0, '0203000000');
    peer.session.write();
    peer.exchange('ACK(WRITE)', 0, '0203000000 120100');
    peer.session.startSending(START);
    for (let count = 0; count < 4; count += 1) {
      fill(peer.session.beginBurst(Buffer.alloc(burstBufferSize(4096, 0))), [Buffer.alloc(1000)], 0);
      peer.session.endBurst();
    }
    for (const number of ['01', '02', '03']) expect(peer.exchange('ACK(SYN)', 0, `1401${number}`)).toEqual([]);
    expect(peer.notices).toEqual([
      'ACONNECT: PI 7 is larger than what was asked: 1 KB, window 0 stay',
      'ACK(SYN): not asked for, as the window is 0 (PI 7): passed over',
    ]);
  });

  test('it leaves instead of ACK(IDT): the transfer ends by the reason of our IDT, the connection by its loss', () => {
    const peer = writing();
    peer.exchange('DTF', 0, text('abc'));
    peer.session.interrupt(4, refusal('2-211', 'disk full'));
    peer.session.connectionLost(0);
    for (let event = peer.session.nextEvent(); event !== undefined; event = peer.session.nextEvent())
      peer.events.push(event);
    expect(peer.events.slice(-2)).toMatchObject([
      { kind: 'INTERRUPTED', by: 'us', endCode: 4, error: { diagnostic: '2-211', message: 'disk full' } },
      { kind: 'ENDED', error: { diagnostic: '3-310' } },
    ]);
  });

  test('its server answers ORF without PI 21: no compression, and said', () => {
    const peer = requester();
    peer.session.connect({ requester: 'A', server: 'B', accessType: 2 });
    peer.exchange('ACONNECT', Y, '060102 0703 000000');
    peer.session.create({ ...CREATE, compression: 3 });
    peer.exchange('ACK(CREATE)', 0, '0203000000 19021000');
    peer.session.open();
    peer.exchange('ACK(ORF)', 0, '0203000000');
    expect(peer.session.compression).toBe(0);
    expect(peer.notices).toEqual([
      'ACK(ORF): compression was asked for (PI 21), the partner agrees to none: it goes without',
    ]);
  });
});

describe('Transfer CFT and Axway Gateway', () => {
  test('capability flags in PI 6 are masked, and never sent', () => {
    const peer = server();
    peer.exchange('CONNECT', X, CONNECT, '0601c2 0703 7fff03 160102');
    peer.session.acceptConnection({ syncPoints: OURS });
    expect(valueOf(peer.heard()[0]!.body, 6)!.toString('hex')).toBe('02');
  });

  test('a MSG without PI 3 in PGI 9, the acknowledgement of a file: shown with what names the file', () => {
    const peer = connected();
    const body = [
      '0906 0b0100 0c0146 0d0107',
      pi(50, pi(51, text('260102030405'))),
      pi(61, text('R')),
      pi(62, text('S')),
    ];
    peer.exchange('MSG', 0, ...body, pi(91, text('done')));
    expect(peer.shown).toEqual({
      fileIdentifier: { fileType: 0, fileName: 'F' },
      transferId: 7,
      historicalAttributes: { creationDate: '260102030405' },
      originalSender: 'R',
      finalReceiver: 'S',
      message: text('done'),
    });
    peer.session.acceptMessage();
    expect(peer.heard().map(({ name }) => name)).toEqual(['ACK(MSG)']);
  });

  test.each(['fe', 'ff'])(
    'a negative acknowledgement (PI 14 = %s in MSG) is a message that asks for no reply',
    (flag) => {
      const peer = connected();
      peer.exchange('MSG', 0, `0906 0b0100 0c0146 0d0107 0e01${flag}`, pi(91, text('no')));
      expect(peer.shown.attributesWanted).toBe(Number.parseInt(flag, 16));
      peer.session.acceptMessage();
      expect(peer.heard()[0]!.body.toString('hex')).toBe('0203000000');
    },
  );

  test('a SELECT that would change the direction (PI 14 = FF) is refused like any other file', () => {
    const peer = connected();
    peer.exchange('SELECT', 0, '0906 0b0100 0c0146 0d0100 0e01ff 110100 19021000');
    expect(peer.shown.attributesWanted).toBe(0xff);
    peer.session.refuse(refusal('2-205', 'no such file'));
    const [answer] = peer.heard();
    // PI 33 = FF would accept it.
    expect([answer!.name, diagnosticOf(answer), valueOf(answer!.body, 30)]).toEqual([
      'ACK(SELECT)',
      '2-205',
      undefined,
    ]);
    expect(peer.session.state).toBe('CN03');
  });

  test('a structured PI 99 and a PI 94 (profile CFT): one is opaque, the other is passed over and noted', () => {
    const peer = server();
    peer.exchange('CONNECT', X, CONNECT, '060102 160102', pi(94, text('PARM')), pi(99, hex('00ff0102')));
    expect(peer.shown.freeMessage?.toString('hex')).toBe('00ff0102');
    expect(peer.notices.join()).toContain('94');
  });
});

test('any product: CREATE names application and user in PGI 9, and the connection keeps its own partner', () => {
  const peer = connected();
  peer.exchange(
    'CREATE',
    0,
    pi(9, pi(3, text('SALES')), pi(4, text('PAUL')), '0b0100 0c0146'),
    '0d0101 110100 19021000 1e07 1f0180 20020400 2803 2a0101',
  );
  expect(peer.shown.fileIdentifier).toEqual({ requester: 'SALES', server: 'PAUL', fileType: 0, fileName: 'F' });
});

test('ETEBAC 5: the supervision timer (PI 26) in CONNECT is taken, and changes nothing', () => {
  const peer = server();
  peer.exchange('CONNECT', X, CONNECT, '060102 0703 0020 02 160102 170100 1a020384');
  expect(peer.shown.supervisionTimer).toBe(900);
  peer.session.acceptConnection({ syncPoints: OURS });
  expect(peer.heard()[0]!.body.toString('hex')).toBe('060102' + '0703002002' + '170100');
  expect(peer.notices).toEqual([]);
});

test('Waarp, PeSIT Wizard: points farther apart than PI 7 says, and more data than PI 42 announced, are taken', () => {
  const peer = writing();
  for (let count = 0; count < 64; count += 1) peer.exchange('DTF', 0, Buffer.alloc(1024));
  peer.exchange('SYN', 0, '140101');
  expect(peer.events.at(-1)).toEqual({ kind: 'SYN', point: { number: 1, dataBytes: 65_536, articles: 64 } });
  expect([peer.session.phase, peer.notices]).toEqual(['open', []]);
});

test('any product: numbers wider than they need to be', () => {
  const peer = connected();
  peer.exchange('CREATE', 0, '0907 0b020000 0c0146 0d03000001 110100 19021000 1e07 1f0180 20020400 2806 2a0400000001');
  expect(peer.shown).toMatchObject({ transferId: 1, physicalAttributes: { maxReservation: 1 } });
});

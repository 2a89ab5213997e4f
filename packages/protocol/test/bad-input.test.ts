/** What a peer can do wrong, one row each, and the diagnostic that it gets (pesit-e.md §9). */
import { describe, expect, test } from '@jest/globals';
import { ServerSession } from '../src/index.js';
import type { Role, State } from '../src/index.js';
import {
  diagnosticOf,
  dissect,
  entity,
  fpdu,
  hex,
  minimal,
  num,
  pi,
  prefixed,
  text,
  valueOf,
  withCrc,
} from './support/builder.js';
import type { Dissected, Name } from './support/builder.js';
import { OWN, PEER, solo } from './support/solo.js';
import type { SoloState } from './support/solo.js';

/** A FPDU of the peer. */
const f = (name: Name, ...body: (string | Buffer)[]): Buffer => fpdu(name, name === 'CONNECT' ? 0 : OWN, 0, ...body);
const from = (name: Name, source: number, ...body: (string | Buffer)[]): Buffer => fpdu(name, OWN, source, ...body);
const connect = (...body: (string | Buffer)[]): Buffer => fpdu('CONNECT', 0, PEER, ...body);
/** A body without the top-level parameter `code`. */
const without = (name: Name, code: number): Buffer => {
  const { body } = dissect(minimal(name, OWN, 0), 'raw')[0]!;
  const kept: Buffer[] = [];
  for (let at = 0; at < body.length;) {
    const end = at + 2 + body[at + 1]!;
    if (body[at] !== code) kept.push(body.subarray(at, end));
    at = end;
  }
  return Buffer.concat(kept);
};
const FILE = '0906 0b0100 0c0146';
const CREATE_TAIL = '1e07 1f0180 20020400 2803 2a0101';
const OK = '0203 000000';

const said = (fpdus: readonly Dissected[]): string =>
  fpdus
    .map((one) => {
      const end = valueOf(one.body, 19);
      const diagnostic = valueOf(one.body, 2) === undefined ? '' : ` ${diagnosticOf(one)}`;
      return `${one.name}${diagnostic}${end === undefined ? '' : ` end ${end[0]}`}`;
    })
    .join(', ');

type Case = readonly [what: string, role: Role, state: SoloState, sent: readonly Buffer[], answer: string];

/** Each in an entity of its own. */
const CASES: readonly Case[] = [
  // 3-311: not the FPDU that was expected, or one that cannot be.
  ['a second CONNECT', 'server', 'CN03', [connect('030141 040142 060102 160102')], 'ABORT 3-311'],
  ['data before WRITE was answered', 'server', 'TDE01B', [f('DTF', text('a'))], 'ABORT 3-311'],
  ['data behind DTF.END', 'server', 'TDE07', [f('DTF', text('a'))], 'ABORT 3-311'],
  ['an FPDU of a server from a requester', 'server', 'CN03', [f('ACK(CREATE)', OK, '19021000')], 'ABORT 3-311'],
  ['an answer that nobody waits for', 'requester', 'CN03', [f('ACK(CRF)', OK)], 'ABORT 3-311'],
  ['an empty DTF', 'server', 'TDE02B', [f('DTF')], 'ABORT 3-311'],
  [
    'fewer articles than ID.SRC says',
    'server',
    'TDE02B',
    [from('DTF', 3, prefixed(text('a'), text('b')))],
    'ABORT 3-311',
  ],
  [
    'more articles than ID.SRC says',
    'server',
    'TDE02B',
    [from('DTF', 2, prefixed(text('a'), text('b'), text('c')))],
    'ABORT 3-311',
  ],
  ['an article that ends behind its FPDU', 'server', 'TDE02B', [from('DTF', 2, '0001 61 0009 62')], 'ABORT 3-311'],
  ['a segment without a start', 'server', 'TDE02B', [f('DTFMA', text('a'))], 'ABORT 3-311'],
  ['an end without a start', 'requester', 'TDL02A', [f('DTFFA', text('a'))], 'ABORT 3-311'],
  ['a start within an article', 'server', 'TDE02B', [f('DTFDA', text('a')), f('DTFDA', text('b'))], 'ABORT 3-311'],
  ['a point within an article', 'server', 'TDE02B', [f('DTFDA', text('a')), f('SYN', '140101')], 'ABORT 3-311'],
  [
    'the end of the data within an article',
    'server',
    'TDE02B',
    [f('DTFDA', text('a')), f('DTF.END', OK)],
    'ABORT 3-311',
  ],
  ['point 0', 'server', 'TDE02B', [f('SYN', '140100')], 'ABORT 3-311'],
  ['point 2 before point 1', 'server', 'TDE02B', [f('SYN', '140102')], 'ABORT 3-311'],
  ['point 1 twice', 'server', 'TDE02B', [f('SYN', '140101'), f('SYN', '140101')], 'ABORT 3-311'],
  ['an acknowledgement of a point that was not sent', 'requester', 'TDE02A', [f('ACK(SYN)', '140103')], 'ABORT 3-311'],
  ['the same, of a server that sends', 'server', 'TDL02B', [f('ACK(SYN)', '140109')], 'ABORT 3-311'],
  ['MSGMM without MSGDM', 'server', 'CN03', [f('MSGMM', pi(91, text('a')))], 'ABORT 3-311'],
  ['a file within a message', 'server', 'MG02B', [minimal('CREATE', OWN, 0)], 'ABORT 3-311'],
  ['an interruption where nothing runs', 'server', 'OF02', [minimal('IDT', OWN, 0)], 'ABORT 3-311'],
  [
    'a resynchronisation of a file that is delivered',
    'server',
    'OF02 ended',
    [f('RESYN', '0203010064 120100')],
    'ABORT 3-311',
  ],
  // 3-318: a parameter that is missing or illegal.
  ...([3, 4, 6, 22] as const).map((code): Case => [
    `CONNECT without PI ${code}`,
    'server',
    'CN01',
    [connect(without('CONNECT', code))],
    code === 6 ? '' : 'ABORT 3-318',
  ]),
  ...([9, 13, 17, 25, 30, 40] as const).map((code): Case => [
    `CREATE without PI ${code}`,
    'server',
    'CN03',
    [f('CREATE', without('CREATE', code))],
    'ABORT 3-318',
  ]),
  [
    'CREATE without PI 12',
    'server',
    'CN03',
    [f('CREATE', '0903 0b0100 0d0101 110100 19021000', CREATE_TAIL)],
    'ABORT 3-318',
  ],
  [
    'PI 12 of 77 bytes',
    'server',
    'CN03',
    [f('CREATE', pi(9, '0b0100', pi(12, text('x'.repeat(77)))), '0d0101 110100 19021000', CREATE_TAIL)],
    'ABORT 3-318',
  ],
  ['a parameter that ends behind its FPDU', 'server', 'SF03', [f('ORF', '1509 01')], 'ABORT 3-318'],
  [
    'a parameter that ends behind its group',
    'server',
    'CN03',
    [f('SELECT', '0904 0b0100 0c', '0d0100 110100 19021000')],
    'ABORT 3-318',
  ],
  ['SYN without PI 20', 'server', 'TDE02B', [f('SYN')], 'ABORT 3-318'],
  ['IDT without PI 19', 'server', 'TDE02B', [f('IDT', '0203 0200d8')], 'ABORT 3-318'],
  [
    'an entity too small for data',
    'server',
    'CN03',
    [f('CREATE', FILE, '0d0101 110100 19023f', CREATE_TAIL)],
    'ABORT 3-318',
  ],
  ['the same, answered', 'requester', 'SF01A', [f('ACK(CREATE)', OK, '19013f')], 'ABORT 3-318'],
  ['ACK(CREATE) without PI 25', 'requester', 'SF01A', [f('ACK(CREATE)', OK)], 'ABORT 3-318'],
  [
    'ACK(SELECT) without PI 13',
    'requester',
    'SF02A',
    [f('ACK(SELECT)', OK, FILE, '19021000', CREATE_TAIL)],
    'ABORT 3-318',
  ],
  ['an answer without PI 2', 'requester', 'OF01A', [f('ACK(ORF)')], 'ABORT 3-318'],
  ['compression that was not asked for', 'requester', 'OF01A', [f('ACK(ORF)', OK, '15020103')], 'ABORT 3-318'],
  [
    'transfer identifier 0 in CREATE',
    'server',
    'CN03',
    [f('CREATE', FILE, '0d0100 110100 19021000', CREATE_TAIL)],
    'ACK(CREATE) 3-318',
  ],
  // The other diagnostics.
  [
    'record length 0',
    'server',
    'CN03',
    [f('CREATE', FILE, '0d0101 110100 19021000 1e06 1f0180 200100 2803 2a0101')],
    'ACK(CREATE) 2-200',
  ],
  ['version 3', 'server', 'CN01', [connect('030141 040142 060103 160102')], 'RCONNECT 3-308'],
  ['version 3, answered', 'requester', 'CN02A', [fpdu('ACONNECT', OWN, PEER, '060103 0703000000')], 'ABORT 3-308'],
  ['a RESYN to a point that was never placed', 'requester', 'TDE02A', [f('RESYN', '0203010064 120109')], 'ABORT 3-306'],
  ['an answer to RESYN 0 with another point', 'server', 'TDE03', [f('ACK(RESYN)', '120101')], 'ABORT 3-306'],
  [
    'more points than the window of 8',
    'server',
    'TDE02B',
    [1, 2, 3, 4, 5, 6, 7, 8, 9].map((n) => f('SYN', pi(20, num(n, 1)))),
    'IDT 2-217 end 4',
  ],
  ['an article longer than PI 32', 'server', 'TDE02B', [f('DTF', Buffer.alloc(1025))], 'IDT 2-220 end 12'],
  [
    'the same in segments',
    'server',
    'TDE02B',
    [f('DTFDA', Buffer.alloc(1000)), f('DTFFA', Buffer.alloc(25))],
    'IDT 2-220 end 12',
  ],
  ['the same when we read', 'requester', 'TDL02A', [f('DTF', Buffer.alloc(1025))], 'IDT 2-220 end 16'],
  [
    'a single article that contradicts its style',
    'server',
    'TDE02B',
    [from('DTF', 1, '0001 61'), from('DTF', 1, text('abc'))],
    'IDT 1-100 end 4',
  ],
  ['wrong bytes (PI 27)', 'server', 'TDE07', [f('TRANS.END', '1b0101')], 'ABORT 3-319'],
  ['wrong articles (PI 28)', 'server', 'TDE07', [f('TRANS.END', '1c0101')], 'ABORT 3-319'],
  ['wrong bytes in the answer', 'requester', 'TDE08A', [f('ACK(TRANS.END)', OK, '1b0101')], 'ABORT 3-319'],
];

describe('FPDUs', () => {
  test.each(CASES)('%s (%s in %s)', (_, role, state, sent, answer) => {
    const it = solo(role, state);
    const out = it.hear(...sent).filter(({ name }) => name !== 'ACK(SYN)');
    expect(said(out)).toBe(answer);
    // What is not an ABORT leaves the session usable for the next file.
    expect(it.session.phase).toBe(/ABORT|RCONNECT/.test(answer) ? 'closing' : 'open');
  });
});

/** Straight bytes, for a server in CN03 that speaks length-prefixed. */
const FRAMES: readonly (readonly [string, string, string])[] = [
  ['an entity too short for an FPDU', '0005 0006c0140500', 'ABORT 3-311'],
  ['an entity of nothing', '0000', 'ABORT 3-311'],
  ['an FPDU that is shorter than its header', '0006 0005c0140500', 'ABORT 3-311'],
  ['an FPDU that is longer than its entity', '0006 0007c014050000', 'ABORT 3-311'],
  ['bytes behind the last FPDU of an entity', '0009 0006c0230500 000000', 'ABORT 3-311'],
  ['an unknown type', '0006 0006c07f0500', 'ABORT 3-311'],
  ['an unknown phase', '0006 000680110500', 'ABORT 3-311'],
  ['HTTP', Buffer.from('GET / HTTP/1.1').toString('hex'), 'ABORT 3-311'],
];

describe('frames', () => {
  test.each(FRAMES)('%s', (_, bytes, answer) => {
    const it = solo('server', 'CN03');
    it.server.receive(hex(bytes.replaceAll(' ', '')), 0);
    expect(said(it.sent())).toBe(answer);
  });
});

describe('a CRC that is wrong (PI 1)', () => {
  test.each([
    ['in data', ['CREATE', 'ORF', 'WRITE'], f('DTF', text('abc'))],
    ['elsewhere', [], f('RELEASE', OK)],
  ] as const)('%s, without PI 23: ABORT 3-310', (_, way, victim) => {
    const server = new ServerSession({ dialect: 'length-prefixed', now: 0, connectionId: OWN });
    const hear = (bytes: Buffer): Dissected[] => {
      server.receive(entity(bytes), 0);
      while (server.nextEvent() !== undefined);
      return dissect(Buffer.concat(server.takeOutput()), 'length-prefixed', true);
    };
    hear(withCrc(connect('010101 030141 040142 060102 160102')));
    server.acceptConnection({});
    for (const name of way) {
      hear(withCrc(minimal(name, OWN, 0)));
      if (name === 'CREATE') server.acceptCreate({ maxEntitySize: 4096 });
      if (name === 'ORF') server.acceptOpen();
      if (name === 'WRITE') server.acceptWrite({ number: 0, dataBytes: 0, articles: 0 });
    }
    server.takeOutput();
    const damaged = withCrc(victim);
    damaged[damaged.length - 1]! ^= 1;
    expect(said(hear(damaged))).toBe('ABORT 3-310');
  });
});

describe('silence', () => {
  test.each<[Role, State, number, string]>([
    ['requester', 'SF01A', 30_000, 'ABORT 3-317'],
    ['requester', 'TDE08A', 30_000, 'ABORT 3-317'],
    ['requester', 'TDL02A', 30_000, 'ABORT 3-317'],
    ['server', 'SF03', 30_000, 'ABORT 3-317'],
    ['server', 'TDE02B', 30_000, 'ABORT 3-317'],
    ['server', 'CN03', 300_000, 'ABORT 3-313'],
    // There is nobody yet to whom an ABORT could be sent.
    ['server', 'CN01', 30_000, ''],
  ])('the %s in %s after %i ms', (role, state, time, answer) => {
    const it = solo(role, state);
    it.session.handleTimeout(time - 1);
    expect(said(it.sent())).toBe('');
    it.session.handleTimeout(time);
    expect(said(it.sent())).toBe(answer);
    expect(it.session.phase).toBe(answer === '' ? 'closed' : 'closing');
  });
});

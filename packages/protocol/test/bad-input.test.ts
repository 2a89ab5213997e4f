/** What a peer can do wrong, one row each, and the diagnostic that it gets (pesit-e.md §9). */
import { describe, expect, test } from '@jest/globals';
import { DIAGNOSTICS } from '../src/index.js';
import type { Dialect, Role } from '../src/index.js';
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
} from '../src/testing/index.js';
import type { Dissected, Name } from '../src/testing/index.js';
import { OWN, PEER, solo } from './support/solo.js';
import type { Solo, SoloState, SoloTerms } from './support/solo.js';

/** A FPDU of the peer. */
const f = (name: Name, ...body: (string | Buffer)[]): Buffer => fpdu(name, OWN, 0, ...body);
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
const [A, B] = [text('a'), text('b')];
const SYN_1 = f('SYN', '140101');
/** Two of these are more than a message may have, eighteen are a message without end. */
const PIECE = pi(91, Buffer.alloc(60_000));

/** Our application goes back as the RESYN before it asked. */
const goBack = (side: Solo): boolean => side.session.acceptResyn();
const RESYN_0 = [f('RESYN', '0203010064 120100'), goBack];

type Sent = Buffer | typeof goBack;
type Place = `${Role} ${SoloState}`;
type Row = readonly [what: string, where: Place, sent: Buffer | readonly Sent[], terms?: SoloTerms];

/** By what is answered; FPDUs travel in an entity each. */
const ROWS: Readonly<Record<string, readonly Row[]>> = {
  // Not the FPDU that was expected, or one that cannot be.
  'ABORT 3-311': [
    ['a file before CONNECT', 'server CN01', minimal('CREATE', OWN, 0)],
    ['a second CONNECT', 'server CN03', connect('030141 040142 060102 160102')],
    ['data before WRITE was answered', 'server TDE01B', f('DTF', A)],
    ['data behind DTF.END', 'server TDE07', f('DTF', A)],
    ['data where this side sends them', 'server TDL02B', f('DTF', A)],
    ['an FPDU of a server from a requester', 'server CN03', f('ACK(CREATE)', OK, '19021000')],
    ['an answer that nobody waits for', 'requester CN03', f('ACK(CRF)', OK)],
    ['READ of a file that was created', 'server OF02', f('READ', '120100')],
    ['WRITE behind an interruption', 'server OF02ab', f('WRITE')],
    ['RELEASE with a file selected', 'server SF03', minimal('RELEASE', OWN, PEER)],
    ['an empty DTF', 'server TDE02B', f('DTF')],
    ['an empty segment', 'server TDE02B', f('DTFDA')],
    ['fewer articles than ID.SRC says', 'server TDE02B', from('DTF', 3, prefixed(A, B))],
    ['more articles than ID.SRC says', 'server TDE02B', from('DTF', 2, prefixed(A, B, A))],
    ['an article that ends behind its FPDU', 'server TDE02B', from('DTF', 2, '0001 61 0009 62')],
    ['a segment without a start', 'server TDE02B', f('DTFMA', A)],
    ['an end without a start', 'requester TDL02A', f('DTFFA', A)],
    ['a start within an article', 'server TDE02B', [f('DTFDA', A), f('DTFDA', B)]],
    ['a point within an article', 'server TDE02B', [f('DTFDA', A), SYN_1]],
    ['the end of the data within an article', 'server TDE02B', [f('DTFDA', A), f('DTF.END', OK)]],
    ['point 0', 'server TDE02B', f('SYN', '140100')],
    ['point 2 before point 1', 'server TDE02B', f('SYN', '140102')],
    ['point 1 twice', 'server TDE02B', [SYN_1, SYN_1]],
    ['a point without PI 7', 'server TDE02B', SYN_1, { points: false }],
    ['an acknowledgement of a point that was not sent', 'requester TDE02A', f('ACK(SYN)', '140103')],
    ['the same, of a server that sends', 'server TDL02B', f('ACK(SYN)', '140109')],
    ['MSGMM without MSGDM', 'server CN03', f('MSGMM', pi(91, A))],
    ['a file within a message', 'server MG02B', minimal('CREATE', OWN, 0)],
    ['a message within a file', 'server SF03', minimal('MSG', OWN, 0)],
    ['an interruption where nothing runs', 'server OF02', minimal('IDT', OWN, 0)],
    ['a resynchronisation of a file that is delivered', 'server OF02 ended', RESYN_0],
    ['a resynchronisation without PI 23', 'server TDE02B', RESYN_0, { resynchronisation: false }],
    ['the same, of what we send', 'requester TDE02A', RESYN_0, { resynchronisation: false }],
  ],
  // A parameter that is missing or illegal.
  'ABORT 3-318': [
    ...([3, 4, 22] as const).map((code): Row => {
      return [`CONNECT without PI ${code}`, 'server CN01', connect(without('CONNECT', code))];
    }),
    ...([9, 13, 17, 25, 30, 40] as const).map((code): Row => {
      return [`CREATE without PI ${code}`, 'server CN03', f('CREATE', without('CREATE', code))];
    }),
    ['CREATE without PI 12', 'server CN03', f('CREATE', '0903 0b0100 0d0101 110100 19021000', CREATE_TAIL)],
    ['MSG without PI 13', 'server CN03', f('MSG', FILE, '5b0141')],
    ['RELEASE without PI 2', 'server CN03', fpdu('RELEASE', OWN, PEER)],
    ['SYN without PI 20', 'server TDE02B', f('SYN')],
    ['RESYN without PI 18', 'server TDE02B', f('RESYN', '0203 010064')],
    ['IDT without PI 19', 'server TDE02B', f('IDT', '0203 0200d8')],
    ['DTF.END without PI 2', 'server TDE02B', f('DTF.END')],
    ['ACK(CREATE) without PI 25', 'requester SF01A', f('ACK(CREATE)', OK)],
    ['ACK(SELECT) without PI 13', 'requester SF02A', f('ACK(SELECT)', OK, FILE, '19021000', CREATE_TAIL)],
    ['ACK(WRITE) without PI 18', 'requester TDE01A', f('ACK(WRITE)', OK)],
    ['an answer without PI 2', 'requester OF01A', f('ACK(ORF)')],
    ['PI 13 that is there and empty', 'server CN03', f('CREATE', FILE, '0d00 110100 19021000', CREATE_TAIL)],
    ['PGI 9 that is there and empty', 'server CN03', f('SELECT', '0900 0d0100 110100 19021000')],
    ['PI 1 = 2', 'server CN01', connect('010102 030141 040142 060102 160102')],
    ['PI 2 of type 4', 'server OF02', f('CRF', '0203 040000')],
    ['PI 5 of 17 bytes', 'server CN01', connect('030141 040142', pi(5, Buffer.alloc(17, 'x')), '060102 160102')],
    ['PI 7 of 2 bytes', 'server CN01', connect('030141 040142 060102 07020020 160102')],
    ['PI 12 of 77 bytes', 'server CN03', f('SELECT', pi(9, pi(12, Buffer.alloc(77, 'x'))), '0d0100 110100 19021000')],
    ['PI 15 = 2', 'server CN03', f('CREATE', FILE, '0d0101 0f0102 110100 19021000', CREATE_TAIL)],
    ['PI 16 = 3', 'server CN03', f('CREATE', FILE, '0d0101 100103 110100 19021000', CREATE_TAIL)],
    ['PI 22 = 3', 'server CN01', connect('030141 040142 060102 160103')],
    ['PI 23 = 2', 'server CN01', connect('030141 040142 060102 160102 170102')],
    ['PI 25 too small for data', 'server CN03', f('CREATE', FILE, '0d0101 110100 19013f', CREATE_TAIL)],
    ['the same, answered', 'requester SF01A', f('ACK(CREATE)', OK, '19013f')],
    ['PI 27 beyond 2^53', 'server TDE07', f('TRANS.END', '1b08 0020000000000001')],
    ['a parameter that ends behind its FPDU', 'server SF03', f('ORF', '1509 01')],
    ['a parameter that ends behind its group', 'server CN03', f('SELECT', '0904 0b0100 0c', '0d0100 110100 19021000')],
    ['129 parameters', 'server SF03', f('ORF', 'c80141'.repeat(129))],
    ['compression that was not asked for', 'requester OF01A', f('ACK(ORF)', OK, '15020103')],
    ['more compression than was asked for', 'requester OF01A', f('ACK(ORF)', OK, '15020103'), { compression: 1 }],
    ['a compressed string of kind 40', 'server TDE02B', f('DTF', '4161'), { compression: 3 }],
    ['a compressed string of no bytes', 'server TDE02B', f('DTF', '00'), { compression: 3 }],
    ['a literal string that ends early', 'server TDE02B', f('DTF', '0361'), { compression: 3 }],
    ['the same in segments', 'server TDE02B', [f('DTFDA', '03'), f('DTFFA', '61')], { compression: 3 }],
    ['the same behind another article', 'server TDE02B', from('DTF', 2, '0002 0161 0002 0361'), { compression: 3 }],
    ['the same when we read', 'requester TDL02A', f('DTF', '0361'), { compression: 3 }],
    ['a repetition without its byte', 'server TDE02B', f('DTF', '85'), { compression: 3 }],
    ['a vertical string in the first article', 'server TDE02B', f('DTF', 'c1'), { compression: 3 }],
    ['the same behind a point', 'server TDE02B', [f('DTF', '0161'), SYN_1, f('DTF', 'c1')], { compression: 3 }],
    [
      'a vertical string in horizontal compression',
      'server TDE02B',
      from('DTF', 2, '0002 0161 0001 c1'),
      { compression: 1 },
    ],
    ['a horizontal string in vertical compression', 'server TDE02B', f('DTF', '8361'), { compression: 2 }],
    [
      'a message without end',
      'server CN03',
      [f('MSGDM', FILE, '0d0101', PIECE), ...Array<Buffer>(17).fill(f('MSGMM', PIECE))],
    ],
  ],
  'ACK(CREATE) 3-318': [['PI 13 = 0', 'server CN03', f('CREATE', FILE, '0d0100 110100 19021000', CREATE_TAIL)]],
  'ACK(CREATE) 3-305': [['CREATE in a connection to read', 'server CN03', minimal('CREATE', OWN, 0), { access: 1 }]],
  'ACK(SELECT) 3-305': [['SELECT in a connection to write', 'server CN03', minimal('SELECT', OWN, 0), { access: 0 }]],
  'ACK(CREATE) 2-200': [
    ['PI 32 = 0', 'server CN03', f('CREATE', FILE, '0d0101 110100 19021000 1e06 1f0180 200100 2803 2a0101')],
  ],
  'ACK(MSG) 2-209': [
    ['a message of more than 64 KB', 'server CN03', [f('MSGDM', FILE, '0d0101', PIECE), f('MSGFM', PIECE)]],
  ],
  'RCONNECT 3-308': [['version 3', 'server CN01', connect('030141 040142 060103 160102')]],
  'ABORT 3-308': [['version 3, answered', 'requester CN02A', fpdu('ACONNECT', OWN, PEER, '060103 0703000000')]],
  'ABORT 3-306': [
    ['a RESYN to a point that was never placed', 'requester TDE02A', f('RESYN', '0203010064 120109')],
    ['the same, of a server that sends', 'server TDL02B', f('RESYN', '0203010064 120109')],
    ['an answer to RESYN 0 with another point', 'server TDE03', f('ACK(RESYN)', '120101')],
  ],
  'IDT 2-217 end 4': [
    [
      'more points than the window',
      'server TDE02B',
      [1, 2, 3, 4, 5, 6, 7, 8, 9].map((n) => f('SYN', pi(20, num(n, 1)))),
    ],
  ],
  'IDT 2-220 end 12': [
    ['an article longer than PI 32', 'server TDE02B', f('DTF', Buffer.alloc(1025))],
    ['the same in segments', 'server TDE02B', [f('DTFDA', Buffer.alloc(1000)), f('DTFFA', Buffer.alloc(25))]],
    ['the same beside another', 'server TDE02B', from('DTF', 2, prefixed(A, Buffer.alloc(1025)))],
    ['the same once it is decompressed', 'server TDE02B', f('DTF', 'bf61'.repeat(17)), { compression: 1 }],
  ],
  'IDT 2-220 end 16': [['the same when we read', 'requester TDL02A', f('DTF', Buffer.alloc(1025))]],
  'IDT 1-100 end 4': [
    [
      'a single article that contradicts its style',
      'server TDE02B',
      [from('DTF', 1, '0001 61'), from('DTF', 1, '616263')],
    ],
  ],
  'ABORT 3-319': [
    ['wrong bytes (PI 27)', 'server TDE07', f('TRANS.END', '1b0101')],
    ['wrong articles (PI 28)', 'server TDE07', f('TRANS.END', '1c0101')],
    ['wrong bytes in the answer', 'requester TDE08A', f('ACK(TRANS.END)', OK, '1b0101')],
  ],
  'ABORT 3-320': [
    ['a resynchronisation too many', 'server TDE02B', Array.from({ length: 17 }, () => RESYN_0).flat()],
    ['the same, of what we send', 'requester TDE02A', Array.from({ length: 17 }, () => RESYN_0).flat()],
  ],
};

const said = (fpdus: readonly Dissected[]): string =>
  fpdus
    .map((one) => {
      const end = valueOf(one.body, 19);
      const diagnostic = valueOf(one.body, 2) === undefined ? '' : ` ${diagnosticOf(one)}`;
      return `${one.name}${diagnostic}${end === undefined ? '' : ` end ${end[0]}`}`;
    })
    .join(', ');

const at = (where: Place, terms?: SoloTerms): Solo => {
  const [role] = where.split(' ') as [Role];
  return solo(role, where.slice(role.length + 1) as SoloState, terms);
};

const CASES = Object.entries(ROWS).flatMap(([answer, rows]) =>
  rows.map(([what, where, sent, terms]) => [what, where, answer, [sent].flat(), terms] as const),
);

describe('FPDUs', () => {
  test.each(CASES)('%s (%s): %s', (_, where, answer, sent, terms) => {
    const side = at(where, terms);
    const out: Dissected[] = [];
    for (const one of sent) {
      if (typeof one === 'function') one(side);
      out.push(...(typeof one === 'function' ? side.sent() : side.hear(one)));
    }
    expect(said(out.filter(({ name }) => name !== 'ACK(SYN)' && name !== 'ACK(RESYN)'))).toBe(answer);
    // What is not an ABORT leaves the session usable for the next file.
    expect(side.session.phase).toBe(/ABORT|RCONNECT/.test(answer) ? 'closing' : 'open');
  });
});

/** Straight bytes, for a server in CN03. */
const FRAMES: readonly (readonly [what: string, Dialect, digits: string])[] = [
  ['an entity too short for an FPDU', 'length-prefixed', '0005 0006c0140500'],
  ['an entity of nothing', 'length-prefixed', '0000'],
  ['an FPDU that is shorter than its header', 'length-prefixed', '0006 0005c0140500'],
  ['an FPDU that is shorter than its header', 'raw', '0005c0140500'],
  ['an FPDU that is longer than its entity', 'length-prefixed', '0006 0007c014050000'],
  ['bytes behind the last FPDU of an entity', 'length-prefixed', '0009 0006c0230500 000000'],
  ['an unknown type', 'length-prefixed', '0006 0006c07f0500'],
  ['an unknown type', 'raw', '0006c07f0500'],
  ['an unknown phase', 'length-prefixed', '0006 000680110500'],
  ['an unknown phase', 'raw', '000680110500'],
  ['HTTP', 'length-prefixed', text('GET / HTTP/1.1').toString('hex')],
  ['HTTP', 'raw', text('GET / HTTP/1.1').toString('hex')],
];

describe('frames', () => {
  test.each(FRAMES)('%s (%s): ABORT 3-311', (_, dialect, digits) => {
    const side = at('server CN03', { dialect });
    expect(said(side.hearBytes(hex(digits)))).toBe('ABORT 3-311');
  });
});

/** The FPDU with its CRC, and the last bit of that changed. */
const damaged = (bytes: Buffer): Buffer => {
  const sealed = withCrc(bytes);
  sealed[sealed.length - 1]! ^= 1;
  return sealed;
};
const DATA = f('DTF', text('abc'));

/** PI 1 = 1; `resync`: PI 23 = 1. */
const CHECKSUMS: readonly (readonly [what: string, Place, bytes: Buffer, resync: boolean, answer: string])[] = [
  ['in data', 'server TDE02B', damaged(DATA), true, 'RESYN 1-100'],
  ['in data that we read', 'requester TDL02A', damaged(DATA), true, 'RESYN 1-100'],
  ['in a point', 'server TDE02B', damaged(SYN_1), true, 'RESYN 1-100'],
  ['in the acknowledgement of a point', 'requester TDE02A', damaged(f('ACK(SYN)', '140101')), true, 'RESYN 1-100'],
  ['in TRANS.END', 'server TDE07', damaged(f('TRANS.END')), true, 'RESYN 1-100'],
  ['in data that are sent again', 'server TDE03', damaged(DATA), true, ''],
  ['in data', 'server TDE02B', damaged(DATA), false, 'ABORT 3-310'],
  ['in data that we read', 'requester TDL02A', damaged(DATA), false, 'ABORT 3-310'],
  ['outside a transfer', 'server CN03', damaged(minimal('RELEASE', OWN, PEER)), true, 'ABORT 3-310'],
  ['in CONNECT', 'server CN01', damaged(connect('010101 030141 040142 060102 160102')), true, 'ABORT 3-310'],
  ['that is not there', 'server CN03', minimal('RELEASE', OWN, PEER), true, 'ABORT 3-310'],
  ['that was never there', 'requester CN02A', minimal('ACONNECT', OWN, PEER), true, 'ABORT 3-315'],
];

describe('a CRC that is wrong (PI 1)', () => {
  test.each(CHECKSUMS)('%s (%s)', (_, where, bytes, resynchronisation, answer) => {
    const side = at(where, { crc: true, resynchronisation });
    expect(said(side.hearBytes(entity(bytes)))).toBe(answer);
  });

  test('in data, without a length before the entity: RESYN 1-100', () => {
    expect(said(at('server TDE02B', { crc: true, dialect: 'raw' }).hearBytes(damaged(DATA)))).toBe('RESYN 1-100');
  });
});

const SILENCES: readonly (readonly [Place, milliseconds: number, answer: string])[] = [
  ['requester SF01A', 30_000, 'ABORT 3-317'],
  ['requester TDE08A', 30_000, 'ABORT 3-317'],
  ['requester TDL02A', 30_000, 'ABORT 3-317'],
  ['server SF03', 30_000, 'ABORT 3-317'],
  ['server TDE02B', 30_000, 'ABORT 3-317'],
  ['server CN03', 300_000, 'ABORT 3-313'],
  // There is nobody yet to whom an ABORT could be sent.
  ['server CN01', 30_000, ''],
];

describe('silence', () => {
  test.each(SILENCES)('the %s after %i ms', (where, time, answer) => {
    const side = at(where);
    side.session.handleTimeout(time - 1);
    expect(said(side.sent())).toBe('');
    side.session.handleTimeout(time);
    expect(said(side.sent())).toBe(answer);
    expect(side.session.phase).toBe(answer === '' ? 'closed' : 'closing');
  });
});

test('every diagnostic of §9 has a row here, or its reason to have none', () => {
  const elsewhere = [
    // What the application decides of requests that are well formed: apps/server/test/refusals.test.ts.
    '2-204 2-205 2-206 2-207 2-211 2-214 2-226 3-301 3-304 3-309 3-314',
    // RESYN while the file is being delivered: packages/net/test/resynchronisation.test.ts.
    '2-218',
    // Trouble of this side, whatever the peer does: disk, database, administrator, drain, a mistake of ours.
    '2-201 2-213 2-215 2-216 2-219 2-299 3-312 3-322 3-399',
    // Said by other products only. What 2-222 and 2-224 are about is readable, and taken: points that are farther apart than
    // PI 7 says, and more data than PI 42 announced.
    '2-202 2-203 2-208 2-210 2-212 2-221 2-222 2-223 2-224 2-225 2-233 2-250 3-300 3-302 3-303 3-307 3-316 3-321',
  ].flatMap((codes) => codes.split(' '));
  const answers = [...Object.keys(ROWS), ...CHECKSUMS.map((row) => row[4]), ...SILENCES.map((row) => row[2])];
  const here = answers.flatMap((answer) => /\d-\d{3}/.exec(answer) ?? []);
  expect(here.filter((code) => elsewhere.includes(code))).toEqual([]);
  expect([...new Set(['0-000', ...here, ...elsewhere])].sort()).toEqual(Object.keys(DIAGNOSTICS).sort());
});

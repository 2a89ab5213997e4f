/**
 * Every FPDU in every state of both roles, on sessions: pesit-e.md §4, written down by hand a second time. What a state does
 * not list is a protocol error: ABORT 3-311. ABORT itself ends every state.
 */
import { describe, expect, test } from '@jest/globals';
import { STATES } from '../src/index.js';
import type { Role, State } from '../src/index.js';
import { MINIMAL, entity, fpdu, minimal, valueOf } from '../src/testing/index.js';
import type { Name } from '../src/testing/index.js';
import { OWN, PEER, SOLO_WAYS, solo } from './support/solo.js';
import type { SoloState } from './support/solo.js';

const NEGATIVE = '0203 0200e2';
/** Everything that may come: each FPDU with its mandatory parameters alone, and the five answers whose sign matters refused. */
const ARRIVALS: Readonly<Record<string, Buffer>> = Object.fromEntries([
  ...[...Object.keys(MINIMAL), 'DTF', 'DTFDA', 'DTFMA', 'DTFFA'].map((name) => {
    const named = ['CONNECT', 'ACONNECT', 'RCONNECT', 'RELEASE', 'RELCONF', 'ABORT'].includes(name);
    return [name, minimal(name as Name, name === 'CONNECT' ? 0 : OWN, named ? PEER : 0)] as const;
  }),
  ...(['ACK(CREATE)', 'ACK(SELECT)', 'ACK(ORF)', 'ACK(READ)', 'ACK(WRITE)'] as const).map(
    (name) => [`${name}-`, fpdu(name, OWN, 0, NEGATIVE)] as const,
  ),
]);

/** `drop`: overtaken by a RESYN or an IDT, nothing happens. A state: where it leads, and what is answered at once. */
type Outcome = 'drop' | State | readonly [State, 'ACK(IDT)'];
type Row = Readonly<Record<string, Outcome>>;

const IDT: Row = { IDT: ['OF02ab', 'ACK(IDT)'] };
const dropping = (...names: readonly Name[]): Row => Object.fromEntries(names.map((name) => [name, 'drop']));
const DATA = ['DTF', 'DTFDA', 'DTFMA', 'DTFFA', 'SYN', 'DTF.END'] as const;

const REQUESTER: Readonly<Record<string, Row>> = {
  CN02A: { ACONNECT: 'CN03', RCONNECT: 'CN01' },
  CN03: {},
  CN04A: { RELCONF: 'CN01' },
  MG01A: { 'ACK(MSG)': 'CN03' },
  SF01A: { 'ACK(CREATE)': 'SF03', 'ACK(CREATE)-': 'CN03' },
  SF02A: { 'ACK(SELECT)': 'SF03', 'ACK(SELECT)-': 'CN03' },
  SF03: {},
  SF03ab: {},
  SF04A: { 'ACK(DESELECT)': 'CN03' },
  OF01A: { 'ACK(ORF)': 'OF02', 'ACK(ORF)-': 'SF03' },
  OF02: {},
  OF02ab: {},
  OF03A: { 'ACK(CRF)': 'SF03' },
  OF03Aab: { 'ACK(CRF)': 'SF03ab' },
  TDE01A: { 'ACK(WRITE)': 'TDE02A', 'ACK(WRITE)-': 'OF02' },
  TDE02A: { 'ACK(SYN)': 'TDE02A', RESYN: 'TDE04', ...IDT },
  TDE03: { 'ACK(RESYN)': 'TDE02A', ...dropping('ACK(SYN)', 'ACK(TRANS.END)', 'RESYN'), ...IDT },
  TDE04: { ...dropping('ACK(SYN)', 'ACK(TRANS.END)'), ...IDT },
  TDE05: { 'ACK(IDT)': 'OF02ab', ...dropping('ACK(SYN)', 'ACK(TRANS.END)', 'RESYN', 'ACK(RESYN)', 'IDT') },
  TDE07: { 'ACK(SYN)': 'TDE07', RESYN: 'TDE04', ...IDT },
  TDE08A: { 'ACK(SYN)': 'TDE08A', 'ACK(TRANS.END)': 'OF02', RESYN: 'TDE04', ...IDT },
  TDL01A: { 'ACK(READ)': 'TDL02A', 'ACK(READ)-': 'OF02' },
  TDL02A: { DTF: 'TDL02A', DTFDA: 'TDL02A', SYN: 'TDL02A', 'DTF.END': 'TDL07', RESYN: 'TDL04', ...IDT },
  TDL03: { 'ACK(RESYN)': 'TDL02A', ...dropping(...DATA, 'ACK(TRANS.END)', 'RESYN'), ...IDT },
  TDL04: { ...dropping(...DATA, 'ACK(TRANS.END)'), ...IDT },
  TDL05: { 'ACK(IDT)': 'OF02ab', ...dropping(...DATA, 'ACK(TRANS.END)', 'RESYN', 'ACK(RESYN)', 'IDT') },
  TDL07: { RESYN: 'TDL04', ...IDT },
  TDL08A: { 'ACK(TRANS.END)': 'OF02', RESYN: 'TDL04', ...IDT },
};

const SERVER: Readonly<Record<string, Row>> = {
  CN01: { CONNECT: 'CN02B' },
  CN02B: {},
  CN03: { CREATE: 'SF01B', SELECT: 'SF02B', MSG: 'MG01B', MSGDM: 'MG02B', RELEASE: 'CN04B' },
  CN04B: {},
  MG01B: {},
  MG02B: { MSGMM: 'MG02B', MSGFM: 'MG01B' },
  SF01B: {},
  SF02B: {},
  SF03: { ORF: 'OF01B', DESELECT: 'SF04B' },
  SF03ab: { DESELECT: 'SF04B' },
  SF04B: {},
  OF01B: {},
  OF02: { WRITE: 'TDE01B', CRF: 'OF03B' },
  'OF02 ended': { WRITE: 'TDE01B', CRF: 'OF03B', ...IDT },
  'OF02 served': { READ: 'TDL01B', CRF: 'OF03B', RESYN: 'TDL04', ...IDT },
  OF02ab: { CRF: 'OF03Bab' },
  OF03B: {},
  OF03Bab: {},
  TDE01B: {},
  TDE02B: { DTF: 'TDE02B', DTFDA: 'TDE02B', SYN: 'TDE02B', 'DTF.END': 'TDE07', RESYN: 'TDE04', ...IDT },
  TDE03: { 'ACK(RESYN)': 'TDE02B', RESYN: 'TDE04', ...dropping(...DATA, 'TRANS.END'), ...IDT },
  TDE04: { ...dropping(...DATA, 'TRANS.END'), ...IDT },
  TDE05: { 'ACK(IDT)': 'OF02ab', ...dropping(...DATA, 'TRANS.END', 'RESYN', 'ACK(RESYN)'), ...IDT },
  TDE07: { 'TRANS.END': 'TDE08B', RESYN: 'TDE04', ...IDT },
  TDE08B: { RESYN: 'TDE04', ...IDT },
  TDL01B: {},
  TDL02B: { 'ACK(SYN)': 'TDL02B', RESYN: 'TDL04', ...IDT },
  TDL03: { 'ACK(RESYN)': 'TDL02B', RESYN: 'TDL04', ...dropping('ACK(SYN)', 'TRANS.END'), ...IDT },
  TDL04: { ...dropping('ACK(SYN)', 'TRANS.END'), ...IDT },
  TDL05: { 'ACK(IDT)': 'OF02ab', ...dropping('ACK(SYN)', 'TRANS.END', 'RESYN', 'ACK(RESYN)'), ...IDT },
  TDL07: { 'ACK(SYN)': 'TDL07', 'TRANS.END': 'TDL08B', RESYN: 'TDL04', ...IDT },
  TDL08B: { 'ACK(SYN)': 'TDL08B', RESYN: 'TDL04', ...IDT },
};

const TABLES: Readonly<Record<Role, Readonly<Record<string, Row>>>> = { requester: REQUESTER, server: SERVER };
const ROLES: readonly Role[] = ['requester', 'server'];

/** What happens when `arrival` comes in `state`, in one line. */
function happens(role: Role, state: string, arrival: string): string {
  const side = solo(role, state as SoloState);
  const out = side.hear(ARRIVALS[arrival]!);
  const said = out.map(({ name, body }) => (name === 'ABORT' ? `ABORT ${valueOf(body, 2)!.readUInt16BE(1)}` : name));
  return [side.session.state, ...said].join(' ');
}

function expected(role: Role, state: string, arrival: string): string {
  if (arrival === 'ABORT') return 'CN01';
  const outcome = TABLES[role][state]![arrival];
  if (outcome === undefined) return 'CN01 ABORT 311';
  if (outcome === 'drop') return state;
  return typeof outcome === 'string' ? outcome : outcome.join(' ');
}

describe.each(ROLES)('the %s', (role) => {
  test('every state is in the table', () => {
    const other = role === 'requester' ? /^[A-Z]+\d+B/ : /^[A-Z]+\d+A/;
    // Left at once: TDE06 and TDL06, as the session answers an IDT itself; MG02A, as a message leaves whole. A requester that
    // is not connected has no one to hear.
    const passing = role === 'requester' ? /^(TD[EL]06|MG02A|CN01)$/ : /^TD[EL]06$/;
    const wanted = Object.keys(STATES).filter((state) => !other.test(state) && !passing.test(state));
    expect(
      Object.keys(TABLES[role])
        .filter((state) => !state.includes(' '))
        .sort(),
    ).toEqual(wanted.sort());
    expect(Object.keys(SOLO_WAYS[role]).sort()).toEqual(Object.keys(TABLES[role]).sort());
  });

  test.each(Object.keys(TABLES[role]))('in %s', (state) => {
    const arrivals = Object.keys(ARRIVALS);
    const got = Object.fromEntries(arrivals.map((arrival) => [arrival, happens(role, state, arrival)]));
    expect(got).toEqual(Object.fromEntries(arrivals.map((arrival) => [arrival, expected(role, state, arrival)])));
  });
});

describe('what depends on more than the state', () => {
  test.each([
    ['TDE02B', 'server', ['DTFDA', 'DTFMA', 'DTFFA'], 'TDE02B'],
    ['TDL02A', 'requester', ['DTFDA', 'DTFMA', 'DTFFA', 'DTF'], 'TDL02A'],
    ['TDE02B', 'server', ['DTFDA', 'DTF'], 'CN01 ABORT 311'],
    ['TDE02B', 'server', ['DTFDA', 'SYN'], 'CN01 ABORT 311'],
    ['TDE02B', 'server', ['DTFDA', 'DTF.END'], 'CN01 ABORT 311'],
    ['TDE02B', 'server', ['DTFDA', 'DTFDA'], 'CN01 ABORT 311'],
    ['TDL02A', 'requester', ['DTFDA', 'DTFMA', 'DTF.END'], 'CN01 ABORT 311'],
    ['OF02', 'server', ['READ'], 'CN01 ABORT 311'],
  ] as const)('%s of the %s: %j → %s', (state, role, names, outcome) => {
    const side = solo(role, state);
    const out = side.hear(...names.map((name) => ARRIVALS[name]!));
    const said = out.map(({ name, body }) => `${name} ${valueOf(body, 2)?.readUInt16BE(1) ?? ''}`);
    expect([side.session.state, ...said].join(' ')).toBe(outcome);
  });

  test.each([
    ['SF01A', 'ACK(CREATE)', '0203 010064 19021000', 'SF03'],
    ['SF02A', 'ACK(SELECT)', '0203 010064 0906 0b0100 0c0146 0d0101 19021000 1e07 1f0180 20020400 2803 2a0101', 'SF03'],
    ['OF01A', 'ACK(ORF)', '0203 010064', 'OF02'],
    ['TDE01A', 'ACK(WRITE)', '0203 010064 120100', 'TDE02A'],
    ['TDL01A', 'ACK(READ)', '0203 010064', 'TDL02A'],
  ] as const)('in %s %s with a warning, PI 2 of type 1, is a yes (§4.8.1.3)', (state, name, body, next) => {
    const side = solo('requester', state);
    side.session.receive(entity(fpdu(name, OWN, 0, body)), 0);
    expect([side.session.state, side.sent()]).toEqual([next, []]);
    expect(side.session.nextEvent()).toEqual({ kind: 'NOTICE', text: expect.stringContaining('1-100') });
    expect(side.session.nextEvent()).toMatchObject({ kind: 'FPDU', name });
  });

  test.each([
    ['server', 'CN01', fpdu('CONNECT', 0, PEER, '030141 040142 060102')],
    ['requester', 'CN02A', fpdu('ACONNECT', OWN, PEER, '0602')],
  ] as const)('the ABORT of a %s in %s names the peer that has said its identifier (§4.7.1)', (role, state, first) => {
    const side = solo(role, state);
    expect(side.hear(first)).toMatchObject([{ name: 'ABORT', destination: PEER, source: OWN }]);
  });

  test('READ belongs to a file that was selected', () => {
    const side = solo('server', 'SF02B');
    side.server.acceptSelect({
      maxEntitySize: 4096,
      fileName: 'F',
      transferId: 1,
      recordFormat: 128,
      recordLength: 1000,
      maxReservationKb: 1,
    });
    side.hearMinimal('ORF');
    side.server.acceptOpen();
    side.sent();
    expect([side.hearMinimal('READ'), side.session.state]).toEqual([[], 'TDL01B']);
  });

  test.each([
    ['requester', 'TDE02A'],
    ['server', 'TDE02B'],
    ['server', 'OF02 served'],
  ] as const)('without PI 23 a RESYN is unknown to the %s', (role, state) => {
    const side = solo(role, state);
    side.session.terms = { ...side.session.terms!, resynchronisation: false };
    const out = side.hearMinimal('RESYN');
    expect(out.map(({ name, body }) => `${name} ${valueOf(body, 2)!.readUInt16BE(1)}`)).toEqual(['ABORT 311']);
  });
});

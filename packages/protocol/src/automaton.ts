/**
 * The automata of §4.8.4, both roles: one table `[role][state][event] → state`.
 *
 * Theory of operation. Everything that decides whether an FPDU may be sent or received stands in this table and
 * nowhere else; the sessions only look events up. An event is `>NAME` (we send) or `<NAME` (we receive); a CREATE,
 * SELECT, ORF, READ or WRITE answer ends in `+` or `-`. A missing entry is an event that the state does not know: from the
 * peer it is ABORT 3-311, from our own application a programming error. `DROP` is the "pas de traitement" of the
 * tables: what was in flight when a RESYN or an IDT overtook it. ABORT leads to CN01 from everywhere and is not listed.
 *
 * States are the specification's (`states.ts`). Added here, so that the
 * conditions "ab" and "dr" need no flags beside the table: `OF02ab` and `SF03ab` (after an interruption the file can only
 * be closed and deselected), and the W and R halves of SF03…OF03 are told apart by the condition `writing` | `reading`.
 * Added too: what crosses our ACK(TRANS.END) and so comes in OF02, which the tables of the specification forget, although IDT
 * and RESYN go before TRANS.END (§4.8.3) and the requester drops our answer then: an IDT, and the RESYN of a requester that
 * reads (table 9; one that writes may send none behind its DTF.END, table 7).
 */
import type { FpduName } from './fpdus.js';
import { STATES } from './states.js';
import type { Role, State } from './states.js';

type Answered = 'ACK(CREATE)' | 'ACK(SELECT)' | 'ACK(ORF)' | 'ACK(READ)' | 'ACK(WRITE)';
type Sign = '+' | '-';
type Arrow = '>' | '<';

export type AutomatonEvent = `${Arrow}${Exclude<FpduName, Answered>}` | `${Arrow}${Answered}${Sign}`;

/**
 * Conditions of §4.8.1.3: `ck` resynchronisation negotiated (PI 23), `writing` after CREATE, `reading` after SELECT. Ours:
 * `ended`, TRANS.END was answered; `served`, the same after SELECT with resynchronisation negotiated.
 */
export type Condition = 'ck' | 'writing' | 'reading' | 'ended' | 'served';

export interface Transition {
  readonly to: State | 'DROP';
  readonly when?: Condition;
}

type Row = Readonly<Partial<Record<AutomatonEvent, State | 'DROP' | Transition>>>;
export type Automaton = Readonly<Record<State, Row>>;

const DATA = ['DTF', 'DTFDA', 'DTFMA', 'DTFFA'] as const;

/** The same transition for the four data FPDUs and SYN. */
const data = (arrow: Arrow, to: State | 'DROP'): Row =>
  Object.fromEntries([...DATA, 'SYN' as const].map((name) => [`${arrow}${name}`, to]));

const ck = (to: State): Transition => ({ to, when: 'ck' });

/**
 * States 02 to 08 of one half of the data phase (tables 7 to 10): the same shape for writing and reading, sender and
 * receiver. The differences: who sends data, who sends TRANS.END, and who wins when two IDTs or two RESYNs cross (§4.8.3).
 */
const transfer = (role: Role, direction: 'TDE' | 'TDL'): Partial<Record<State, Row>> => {
  const suffix = role === 'requester' ? 'A' : 'B';
  const sends = (direction === 'TDE') === (role === 'requester');
  const state = (number: string): State => `${direction}${number}` as State;
  const [s02, s03, s04, s05, s06, s07, s08] = [
    state(`02${suffix}`),
    state('03'),
    state('04'),
    state('05'),
    state('06'),
    state('07'),
    state(`08${suffix}`),
  ];
  const flow: Arrow = sends ? '>' : '<';
  const back: Arrow = sends ? '<' : '>';
  const ended: Arrow = role === 'requester' ? '>' : '<';
  const acknowledged: Arrow = role === 'requester' ? '<' : '>';
  const interrupt: Row = { '>IDT': s05, '<IDT': s06 };
  /** In flight towards us when our RESYN or IDT left. */
  const overtaken: Row = {
    ...(sends ? { '<ACK(SYN)': 'DROP' } : { ...data('<', 'DROP'), '<DTF.END': 'DROP' }),
    ...(role === 'requester' ? { '<ACK(TRANS.END)': 'DROP' } : { '<TRANS.END': 'DROP' }),
  };
  return {
    [s02]: {
      ...data(flow, s02),
      [`${back}ACK(SYN)`]: s02,
      [`${flow}DTF.END`]: s07,
      ...interrupt,
      '>RESYN': ck(s03),
      '<RESYN': ck(s04),
    },
    [s03]: { ...overtaken, ...interrupt, '<ACK(RESYN)': s02, '<RESYN': role === 'requester' ? 'DROP' : ck(s04) },
    // Our RESYN wins over the peer's when we are the requester and have not answered yet.
    [s04]: { ...overtaken, ...interrupt, '>ACK(RESYN)': s02, ...(role === 'requester' ? { '>RESYN': ck(s03) } : {}) },
    [s05]: {
      ...overtaken,
      '<RESYN': 'DROP',
      '<ACK(RESYN)': 'DROP',
      '<ACK(IDT)': 'OF02ab',
      // Two IDTs that cross: the server answers the requester's, the requester drops the server's.
      '<IDT': role === 'requester' ? 'DROP' : s06,
    },
    [s06]: {
      ...overtaken,
      '<IDT': 'DROP',
      '<RESYN': 'DROP',
      '<ACK(RESYN)': 'DROP',
      '<ACK(IDT)': 'DROP',
      '>ACK(IDT)': 'OF02ab',
    },
    [s07]: {
      // A late ACK(SYN) is normal: the sender may end with points unacknowledged.
      [`${back}ACK(SYN)`]: s07,
      [`${ended}TRANS.END`]: s08,
      ...interrupt,
      '>RESYN': ck(s03),
      '<RESYN': ck(s04),
    },
    [s08]: {
      ...(sends ? { '<ACK(SYN)': s08 } : {}),
      [`${acknowledged}ACK(TRANS.END)`]: 'OF02',
      ...interrupt,
      // A sender that has told its end has nothing to go back for.
      ...(sends ? {} : { '>RESYN': ck(s03) }),
      '<RESYN': ck(s04),
    },
  };
};

const EMPTY = Object.fromEntries(Object.keys(STATES).map((state) => [state, {}])) as Record<State, Row>;

const REQUESTER: Automaton = {
  ...EMPTY,
  CN01: { '>CONNECT': 'CN02A' },
  CN02A: { '<ACONNECT': 'CN03', '<RCONNECT': 'CN01' },
  CN03: { '>CREATE': 'SF01A', '>SELECT': 'SF02A', '>MSG': 'MG01A', '>MSGDM': 'MG02A', '>RELEASE': 'CN04A' },
  CN04A: { '<RELCONF': 'CN01' },
  MG01A: { '<ACK(MSG)': 'CN03' },
  MG02A: { '>MSGMM': 'MG02A', '>MSGFM': 'MG01A' },
  SF01A: { '<ACK(CREATE)+': 'SF03', '<ACK(CREATE)-': 'CN03' },
  SF02A: { '<ACK(SELECT)+': 'SF03', '<ACK(SELECT)-': 'CN03' },
  SF03: { '>ORF': 'OF01A', '>DESELECT': 'SF04A' },
  SF03ab: { '>DESELECT': 'SF04A' },
  SF04A: { '<ACK(DESELECT)': 'CN03' },
  OF01A: { '<ACK(ORF)+': 'OF02', '<ACK(ORF)-': 'SF03' },
  OF02: { '>WRITE': { to: 'TDE01A', when: 'writing' }, '>READ': { to: 'TDL01A', when: 'reading' }, '>CRF': 'OF03A' },
  OF02ab: { '>CRF': 'OF03Aab' },
  OF03A: { '<ACK(CRF)': 'SF03' },
  OF03Aab: { '<ACK(CRF)': 'SF03ab' },
  TDE01A: { '<ACK(WRITE)+': 'TDE02A', '<ACK(WRITE)-': 'OF02' },
  TDL01A: { '<ACK(READ)+': 'TDL02A', '<ACK(READ)-': 'OF02' },
  ...transfer('requester', 'TDE'),
  ...transfer('requester', 'TDL'),
};

const SERVER: Automaton = {
  ...EMPTY,
  CN01: { '<CONNECT': 'CN02B' },
  CN02B: { '>ACONNECT': 'CN03', '>RCONNECT': 'CN01' },
  CN03: { '<CREATE': 'SF01B', '<SELECT': 'SF02B', '<MSG': 'MG01B', '<MSGDM': 'MG02B', '<RELEASE': 'CN04B' },
  CN04B: { '>RELCONF': 'CN01' },
  MG01B: { '>ACK(MSG)': 'CN03' },
  MG02B: { '<MSGMM': 'MG02B', '<MSGFM': 'MG01B' },
  SF01B: { '>ACK(CREATE)+': 'SF03', '>ACK(CREATE)-': 'CN03' },
  SF02B: { '>ACK(SELECT)+': 'SF03', '>ACK(SELECT)-': 'CN03' },
  SF03: { '<ORF': 'OF01B', '<DESELECT': 'SF04B' },
  SF03ab: { '<DESELECT': 'SF04B' },
  SF04B: { '>ACK(DESELECT)': 'CN03' },
  OF01B: { '>ACK(ORF)+': 'OF02', '>ACK(ORF)-': 'SF03' },
  OF02: {
    '<WRITE': { to: 'TDE01B', when: 'writing' },
    '<READ': { to: 'TDL01B', when: 'reading' },
    '<CRF': 'OF03B',
    '<IDT': { to: 'OF02', when: 'ended' },
    '<RESYN': { to: 'TDL04', when: 'served' },
    '>ACK(IDT)': { to: 'OF02ab', when: 'ended' },
  },
  OF02ab: { '<CRF': 'OF03Bab' },
  OF03B: { '>ACK(CRF)': 'SF03' },
  OF03Bab: { '>ACK(CRF)': 'SF03ab' },
  TDE01B: { '>ACK(WRITE)+': 'TDE02B', '>ACK(WRITE)-': 'OF02' },
  TDL01B: { '>ACK(READ)+': 'TDL02B', '>ACK(READ)-': 'OF02' },
  ...transfer('server', 'TDE'),
  ...transfer('server', 'TDL'),
};

export const AUTOMATA: Readonly<Record<Role, Automaton>> = { requester: REQUESTER, server: SERVER };

type Lookup = Readonly<Record<State, ReadonlyMap<AutomatonEvent, Transition>>>;

/** The same rows for looking up: every FPDU that passes is looked up once. */
const lookupOf = (automaton: Automaton): Lookup => {
  const rows = Object.entries(automaton).map(([state, row]) => {
    const entries = Object.entries(row) as [AutomatonEvent, State | 'DROP' | Transition][];
    return [state, new Map(entries.map(([event, to]) => [event, typeof to === 'string' ? { to } : to]))];
  });
  return Object.fromEntries(rows) as Lookup;
};

const LOOKUP: Readonly<Record<Role, Lookup>> = { requester: lookupOf(REQUESTER), server: lookupOf(SERVER) };

/** The transition of `event` in `state`, or `undefined` when the state does not know it. */
export const transitionOf = (role: Role, state: State, event: AutomatonEvent): Transition | undefined =>
  LOOKUP[role][state].get(event);

/** The tables of §4.8.4: their structure, and the rules of pesit-e.md §4 written a second time, by hand. */
import { describe, expect, test } from '@jest/globals';
import { AUTOMATA, FPDUS, FPDU_NAMES, STATES, transitionOf } from '../src/index.js';
import type { AutomatonEvent, FpduName, Role, State, StateRow } from '../src/index.js';

const ROLES: readonly Role[] = ['requester', 'server'];
const ALL_STATES = Object.keys(STATES) as State[];
const ANSWERED: readonly FpduName[] = ['ACK(CREATE)', 'ACK(SELECT)', 'ACK(ORF)', 'ACK(READ)', 'ACK(WRITE)'];

interface Entry {
  readonly role: Role;
  readonly state: State;
  readonly event: AutomatonEvent;
  readonly to: State | 'DROP';
  readonly when: string | undefined;
}

const ENTRIES: readonly Entry[] = ROLES.flatMap((role) =>
  ALL_STATES.flatMap((state) =>
    (Object.keys(AUTOMATA[role][state]) as AutomatonEvent[]).map((event) => {
      const { to, when } = transitionOf(role, state, event)!;
      return { role, state, event, to, when };
    }),
  ),
);

const nameOf = (event: AutomatonEvent): FpduName => event.slice(1).replace(/[+-]$/, '') as FpduName;

/** The columns of the states beside the transitions: what a state means must be what it lets through. */
describe('columns', () => {
  const statesWhere = (holds: (row: StateRow) => boolean): State[] =>
    ALL_STATES.filter((state) => holds(STATES[state]));
  const statesWith = (event: AutomatonEvent, dropped: boolean): State[] => {
    const entries = ENTRIES.filter((entry) => entry.event === event && (entry.to === 'DROP') === dropped);
    return ALL_STATES.filter((state) => entries.some((entry) => entry.state === state));
  };

  test.each<[string, (row: StateRow) => boolean, AutomatonEvent]>([
    ['data may be sent', ({ data }) => data === 'sends', '>DTF'],
    ['data are received', ({ data }) => data === 'receives', '<DTF'],
    ['a file may be closed', ({ fileIsOpen }) => fileIsOpen, '>CRF'],
    ['a file may be deselected', ({ fileIsSelected }) => fileIsSelected, '>DESELECT'],
    ['a file may be begun', ({ betweenFiles }) => betweenFiles, '>CREATE'],
    ['an ACK(IDT) is taken', ({ interrupting }) => interrupting, '<ACK(IDT)'],
    ['an ACK(RESYN) is taken', ({ resynchronising }) => resynchronising === 'asked', '<ACK(RESYN)'],
    ['an ACK(RESYN) may be sent', ({ resynchronising }) => resynchronising === 'to answer', '>ACK(RESYN)'],
    ['CONNECT may be sent', ({ notConnected }) => notConnected, '>CONNECT'],
    ['RELCONF may be sent', ({ releaseReceived }) => releaseReceived, '>RELCONF'],
  ])('%s: in the states with that transition and no other', (_, holds, event) => {
    expect(statesWhere(holds)).toEqual(statesWith(event, false));
  });

  test('a RESYN may be asked for only where the automaton lets it through', () => {
    const allowed = statesWith('>RESYN', false);
    for (const state of statesWhere(({ mayResynchronise }) => mayResynchronise)) expect(allowed).toContain(state);
  });

  test('a timer runs exactly where the peer has to act: in no state in which this side alone may go on', () => {
    for (const role of ROLES) {
      const other = role === 'requester' ? /^[A-Z]+\d+B/ : /^[A-Z]+\d+A/;
      for (const state of ALL_STATES.filter((one) => !other.test(one))) {
        const row: StateRow = STATES[state];
        const events = Object.entries(AUTOMATA[role][state]).filter(([, to]) => to !== 'DROP');
        const received = events.some(([event]) => event.startsWith('<'));
        if (row.waits[role] !== undefined)
          expect([role, state, received || row.data === 'sends']).toEqual([role, state, true]);
      }
    }
  });
});

describe('structure', () => {
  test('every event names an FPDU that this role sends or receives', () => {
    for (const { role, event } of ENTRIES) {
      const { from } = FPDUS[nameOf(event)];
      const sender = event.startsWith('>') ? role : role === 'requester' ? 'server' : 'requester';
      expect([event, role, [sender, 'either'].includes(from)]).toEqual([event, role, true]);
      expect(/[+-]$/.test(event)).toBe(ANSWERED.includes(nameOf(event)));
    }
  });

  test('every transition leads to a state that exists, and none out of a state of the other role', () => {
    for (const { role, state, to } of ENTRIES) {
      expect(to === 'DROP' || ALL_STATES.includes(to)).toBe(true);
      const other = role === 'requester' ? /^[A-Z]+\d+B/ : /^[A-Z]+\d+A/;
      expect(`${state} ${to}`).not.toMatch(other);
    }
  });

  test.each(ROLES)('every state of the %s is reachable, and every state is left again', (role) => {
    const reached = new Set<State>(['CN01']);
    for (const state of reached) {
      for (const { to } of ENTRIES.filter((entry) => entry.role === role && entry.state === state)) {
        if (to !== 'DROP') reached.add(to);
      }
    }
    const other = role === 'requester' ? /^[A-Z]+\d+B/ : /^[A-Z]+\d+A/;
    expect(ALL_STATES.filter((state) => !other.test(state) && !reached.has(state))).toEqual([]);
    for (const state of reached) {
      const exits = ENTRIES.filter((entry) => entry.role === role && entry.state === state && entry.to !== state);
      expect([state, exits.some(({ to }) => to !== 'DROP')]).toEqual([state, true]);
    }
  });

  test('only what is received is dropped', () => {
    for (const { event, to } of ENTRIES) if (to === 'DROP') expect(event[0]).toBe('<');
  });

  test('every FPDU but ABORT has its place, for the side that sends it and the side that receives it', () => {
    for (const name of FPDU_NAMES.filter((one) => one !== 'ABORT')) {
      for (const arrow of ['>', '<']) {
        const found = ENTRIES.some(
          ({ event, to }) => to !== 'DROP' && event.startsWith(arrow) && nameOf(event) === name,
        );
        expect([arrow, name, found]).toEqual([arrow, name, true]);
      }
    }
  });

  test('conditions stand where the specification has them, and nowhere else', () => {
    for (const { state, event, when, to } of ENTRIES) {
      const name = nameOf(event);
      const expected =
        name === 'WRITE'
          ? 'writing'
          : name === 'READ'
            ? 'reading'
            : name === 'RESYN' && to !== 'DROP'
              ? state === 'OF02'
                ? 'served'
                : 'ck'
              : state === 'OF02' && /^(ACK\()?IDT/.test(name)
                ? 'ended'
                : undefined;
      expect([event, when]).toEqual([event, expected]);
    }
  });

  /**
   * Both automata joined by two queues, explored whole: whatever either side may send, with up to three FPDUs of each side in
   * flight. The tables of the specification have one hole: what a requester may send while ACK(TRANS.END) is on its way, an IDT
   * (`ended`), or a RESYN of a file that it reads (`served`).
   */
  test('no FPDU that a side may send surprises the other, whatever is in flight', () => {
    const surprises = new Set<string>();
    const start = JSON.stringify({ requester: 'CN01', server: 'CN01', direction: '', toServer: [], toRequester: [] });
    const seen = new Set([start]);
    for (const key of seen) {
      const joint = JSON.parse(key) as Joint;
      for (const role of ROLES) {
        const [out, into] =
          role === 'requester' ? (['toServer', 'toRequester'] as const) : (['toRequester', 'toServer'] as const);
        for (const event of Object.keys(AUTOMATA[role][joint[role]]) as AutomatonEvent[]) {
          const { to, when } = transitionOf(role, joint[role], event) as { to: State; when?: string };
          // DTF stands for the four data FPDUs; a session answers an IDT at once.
          if (!event.startsWith('>') || /DTF[DMF]A|MSG/.test(event) || joint[out].length === 3) continue;
          if (joint[role].endsWith('06') && event !== '>ACK(IDT)') continue;
          if (when !== undefined && when !== 'ck' && when !== joint.direction) continue;
          const direction = event === '>CREATE' ? 'writing' : event === '>SELECT' ? 'reading' : joint.direction;
          seen.add(JSON.stringify({ ...joint, direction, [role]: to, [out]: [...joint[out], event.slice(1)] }));
        }
        const [first, ...rest] = joint[into];
        if (first === undefined) continue;
        const taken = transitionOf(role, joint[role], `<${first}` as AutomatonEvent);
        if (taken === undefined) surprises.add(`${role} in ${joint[role]}: ${first}`);
        else seen.add(JSON.stringify({ ...joint, [role]: taken.to === 'DROP' ? joint[role] : taken.to, [into]: rest }));
      }
    }
    expect(seen.size).toBeGreaterThan(1000);
    expect([...surprises]).toEqual([]);
  });
});

interface Joint {
  readonly requester: State;
  readonly server: State;
  readonly direction: string;
  readonly toServer: readonly string[];
  readonly toRequester: readonly string[];
}

type Rule = readonly [role: Role, state: State, event: AutomatonEvent, to: State | 'DROP' | 'ABORT'];

/** `ABORT`: the state does not know the event. */
const RULES: readonly Rule[] = [
  // A negative answer: CREATE, SELECT → CN03; ORF → SF03; WRITE, READ → OF02.
  ['requester', 'SF01A', '<ACK(CREATE)-', 'CN03'],
  ['requester', 'SF01A', '<ACK(CREATE)+', 'SF03'],
  ['requester', 'SF02A', '<ACK(SELECT)-', 'CN03'],
  ['requester', 'SF02A', '<ACK(SELECT)+', 'SF03'],
  ['requester', 'OF01A', '<ACK(ORF)-', 'SF03'],
  ['requester', 'OF01A', '<ACK(ORF)+', 'OF02'],
  ['requester', 'TDE01A', '<ACK(WRITE)-', 'OF02'],
  ['requester', 'TDE01A', '<ACK(WRITE)+', 'TDE02A'],
  ['requester', 'TDL01A', '<ACK(READ)-', 'OF02'],
  ['requester', 'TDL01A', '<ACK(READ)+', 'TDL02A'],
  ['server', 'SF01B', '>ACK(CREATE)-', 'CN03'],
  ['server', 'SF02B', '>ACK(SELECT)-', 'CN03'],
  ['server', 'OF01B', '>ACK(ORF)-', 'SF03'],
  ['server', 'TDE01B', '>ACK(WRITE)-', 'OF02'],
  ['server', 'TDL01B', '>ACK(READ)-', 'OF02'],
  // CRF, DESELECT, TRANS.END go on regardless of the diagnostic: their events have no sign.
  ['requester', 'OF03A', '<ACK(CRF)', 'SF03'],
  ['requester', 'SF04A', '<ACK(DESELECT)', 'CN03'],
  ['requester', 'TDE08A', '<ACK(TRANS.END)', 'OF02'],
  ['requester', 'TDL08A', '<ACK(TRANS.END)', 'OF02'],
  ['server', 'TDE08B', '>ACK(TRANS.END)', 'OF02'],
  ['server', 'TDL08B', '>ACK(TRANS.END)', 'OF02'],
  // Data before WRITE was answered, and after the end.
  ['server', 'OF02', '<DTF', 'ABORT'],
  ['server', 'TDE01B', '<DTF', 'ABORT'],
  ['server', 'TDE07', '<DTF', 'ABORT'],
  ['server', 'TDE07', '<SYN', 'ABORT'],
  ['requester', 'TDL07', '<DTF', 'ABORT'],
  ['requester', 'TDL01A', '<DTF', 'ABORT'],
  ['server', 'CN03', '<ORF', 'ABORT'],
  ['server', 'SF03', '<WRITE', 'ABORT'],
  ['server', 'CN03', '<CONNECT', 'ABORT'],
  ['server', 'SF03', '<RELEASE', 'ABORT'],
  // 03: everything in flight but IDT, ABORT, RESYN and ACK(RESYN) is dropped.
  ...dropping('server', 'TDE03', ['DTF', 'DTFDA', 'DTFMA', 'DTFFA', 'SYN', 'DTF.END', 'TRANS.END']),
  ...dropping('requester', 'TDE03', ['ACK(SYN)', 'ACK(TRANS.END)']),
  ...dropping('requester', 'TDL03', ['DTF', 'DTFDA', 'DTFMA', 'DTFFA', 'SYN', 'DTF.END', 'ACK(TRANS.END)']),
  ...dropping('server', 'TDL03', ['ACK(SYN)', 'TRANS.END']),
  ['server', 'TDE03', '<ACK(RESYN)', 'TDE02B'],
  ['requester', 'TDE03', '<ACK(RESYN)', 'TDE02A'],
  ['server', 'TDL03', '<ACK(RESYN)', 'TDL02B'],
  ['requester', 'TDL03', '<ACK(RESYN)', 'TDL02A'],
  ['server', 'TDE03', '<IDT', 'TDE06'],
  ['requester', 'TDL03', '<IDT', 'TDL06'],
  // Two RESYNs that cross: the requester's wins.
  ['requester', 'TDE03', '<RESYN', 'DROP'],
  ['requester', 'TDL03', '<RESYN', 'DROP'],
  ['server', 'TDE03', '<RESYN', 'TDE04'],
  ['server', 'TDL03', '<RESYN', 'TDL04'],
  // 05: everything but ACK(IDT), IDT, ABORT is dropped.
  ...dropping('server', 'TDE05', [
    'DTF',
    'DTFDA',
    'DTFMA',
    'DTFFA',
    'SYN',
    'DTF.END',
    'TRANS.END',
    'RESYN',
    'ACK(RESYN)',
  ]),
  ...dropping('requester', 'TDE05', ['ACK(SYN)', 'ACK(TRANS.END)', 'RESYN', 'ACK(RESYN)']),
  ...dropping('requester', 'TDL05', [
    'DTF',
    'DTFDA',
    'DTFMA',
    'DTFFA',
    'SYN',
    'DTF.END',
    'ACK(TRANS.END)',
    'RESYN',
    'ACK(RESYN)',
  ]),
  ...dropping('server', 'TDL05', ['ACK(SYN)', 'TRANS.END', 'RESYN', 'ACK(RESYN)']),
  ['requester', 'TDE05', '<ACK(IDT)', 'OF02ab'],
  ['server', 'TDE05', '<ACK(IDT)', 'OF02ab'],
  ['requester', 'TDL05', '<ACK(IDT)', 'OF02ab'],
  ['server', 'TDL05', '<ACK(IDT)', 'OF02ab'],
  // Two IDTs that cross: the server answers the requester's, the requester drops the server's.
  ['requester', 'TDE05', '<IDT', 'DROP'],
  ['requester', 'TDL05', '<IDT', 'DROP'],
  ['server', 'TDE05', '<IDT', 'TDE06'],
  ['server', 'TDL05', '<IDT', 'TDL06'],
  // 06: everything received is dropped until we answered.
  ...dropping('server', 'TDE06', [
    'DTF',
    'DTFDA',
    'DTFMA',
    'DTFFA',
    'SYN',
    'DTF.END',
    'TRANS.END',
    'IDT',
    'RESYN',
    'ACK(RESYN)',
    'ACK(IDT)',
  ]),
  ...dropping('requester', 'TDL06', [
    'DTF',
    'DTFDA',
    'DTFMA',
    'DTFFA',
    'SYN',
    'DTF.END',
    'IDT',
    'RESYN',
    'ACK(RESYN)',
    'ACK(IDT)',
  ]),
  ...dropping('requester', 'TDE06', ['ACK(SYN)', 'IDT', 'RESYN', 'ACK(RESYN)', 'ACK(IDT)']),
  ['server', 'TDE06', '>ACK(IDT)', 'OF02ab'],
  ['requester', 'TDL06', '>ACK(IDT)', 'OF02ab'],
  // A late ACK(SYN) is taken after DTF.END, and by a writing requester after TRANS.END.
  ['requester', 'TDE02A', '<ACK(SYN)', 'TDE02A'],
  ['requester', 'TDE07', '<ACK(SYN)', 'TDE07'],
  ['requester', 'TDE08A', '<ACK(SYN)', 'TDE08A'],
  ['server', 'TDL02B', '<ACK(SYN)', 'TDL02B'],
  ['server', 'TDL07', '<ACK(SYN)', 'TDL07'],
  ['server', 'TDE07', '>ACK(SYN)', 'TDE07'],
  // Interruption in every state with data; then the file can only be closed and deselected.
  ...(['TDE02A', 'TDE07', 'TDE08A', 'TDL02A', 'TDL07', 'TDL08A'] as const).flatMap((state): Rule[] => [
    ['requester', state, '>IDT', `${state.slice(0, 3)}05` as State],
    ['requester', state, '<IDT', `${state.slice(0, 3)}06` as State],
  ]),
  ...(['TDE02B', 'TDE07', 'TDE08B', 'TDL02B', 'TDL07', 'TDL08B'] as const).flatMap((state): Rule[] => [
    ['server', state, '>IDT', `${state.slice(0, 3)}05` as State],
    ['server', state, '<IDT', `${state.slice(0, 3)}06` as State],
  ]),
  ['server', 'OF02ab', '<CRF', 'OF03Bab'],
  ['server', 'OF02ab', '<WRITE', 'ABORT'],
  ['server', 'OF02ab', '<READ', 'ABORT'],
  ['server', 'OF03Bab', '>ACK(CRF)', 'SF03ab'],
  ['server', 'SF03ab', '<DESELECT', 'SF04B'],
  ['server', 'SF03ab', '<ORF', 'ABORT'],
  ['requester', 'OF02ab', '>CRF', 'OF03Aab'],
  ['requester', 'OF02ab', '>WRITE', 'ABORT'],
  ['requester', 'OF03Aab', '<ACK(CRF)', 'SF03ab'],
  ['requester', 'SF03ab', '>ORF', 'ABORT'],
  ['requester', 'SF03ab', '>DESELECT', 'SF04A'],
  // Messages.
  ['requester', 'CN03', '>MSG', 'MG01A'],
  ['requester', 'CN03', '>MSGDM', 'MG02A'],
  ['requester', 'MG02A', '>MSGMM', 'MG02A'],
  ['requester', 'MG02A', '>MSGFM', 'MG01A'],
  ['requester', 'MG01A', '<ACK(MSG)', 'CN03'],
  ['server', 'MG02B', '<MSGFM', 'MG01B'],
  ['server', 'MG01B', '>ACK(MSG)', 'CN03'],
  ['server', 'CN03', '<MSGFM', 'ABORT'],
  ['server', 'SF03', '<MSG', 'ABORT'],
];

function dropping(role: Role, state: State, names: readonly FpduName[]): Rule[] {
  return names.map((name) => [role, state, `<${name}` as AutomatonEvent, 'DROP']);
}

describe('rules of pesit-e.md §4', () => {
  test.each(RULES)('%s in %s: %s → %s', (role, state, event, to) => {
    expect(transitionOf(role, state, event)?.to ?? 'ABORT').toBe(to);
  });

  /** The whole table without its conditions: what each state knows, and nothing else. */
  test.each([
    ['requester', 'TDE02A', '>DTF >DTFDA >DTFMA >DTFFA >SYN <ACK(SYN) >DTF.END >IDT <IDT >RESYN <RESYN'],
    ['server', 'TDE02B', '<DTF <DTFDA <DTFMA <DTFFA <SYN >ACK(SYN) <DTF.END >IDT <IDT >RESYN <RESYN'],
    ['requester', 'TDL02A', '<DTF <DTFDA <DTFMA <DTFFA <SYN >ACK(SYN) <DTF.END >IDT <IDT >RESYN <RESYN'],
    ['server', 'TDL02B', '>DTF >DTFDA >DTFMA >DTFFA >SYN <ACK(SYN) >DTF.END >IDT <IDT >RESYN <RESYN'],
    ['requester', 'TDE07', '<ACK(SYN) >TRANS.END >IDT <IDT >RESYN <RESYN'],
    ['server', 'TDE07', '>ACK(SYN) <TRANS.END >IDT <IDT >RESYN <RESYN'],
    ['requester', 'TDL07', '>ACK(SYN) >TRANS.END >IDT <IDT >RESYN <RESYN'],
    ['server', 'TDL07', '<ACK(SYN) <TRANS.END >IDT <IDT >RESYN <RESYN'],
    ['requester', 'TDE08A', '<ACK(SYN) <ACK(TRANS.END) >IDT <IDT <RESYN'],
    ['requester', 'TDL08A', '<ACK(TRANS.END) >IDT <IDT >RESYN <RESYN'],
    ['requester', 'CN01', '>CONNECT'],
    ['server', 'CN01', '<CONNECT'],
    ['requester', 'CN03', '>CREATE >SELECT >MSG >MSGDM >RELEASE'],
    ['server', 'CN03', '<CREATE <SELECT <MSG <MSGDM <RELEASE'],
    ['requester', 'OF02', '>WRITE >READ >CRF'],
    ['server', 'OF02', '<WRITE <READ <CRF <IDT >ACK(IDT) <RESYN'],
    ['requester', 'OF02ab', '>CRF'],
    ['server', 'OF02ab', '<CRF'],
  ] as const)('%s in %s knows %s', (role, state, events) => {
    expect(Object.keys(AUTOMATA[role][state]).sort()).toEqual(events.split(' ').sort());
  });
});

/**
 * The FPDUs of PeSIT E, Hors-SIT (§4.4, §4.7.4): one row each, with the clause, the codes, who sends it and the
 * parameters in the order in which they travel.
 *
 * Contents are written as in pesit-e.md §2: `[29]` optional, `9{[3] 11}` a group and its members, and `~30` a
 * parameter that we always send but whose absence we tolerate from peers of the field.
 */
import { parameterByCode } from './parameters.js';
import type { ParameterKey } from './parameters.js';

type Sender = 'requester' | 'server' | 'either';

interface FpduRow {
  readonly phase: 0x40 | 0xc0 | 0x00;
  readonly type: number;
  readonly from: Sender;
  readonly clause: string;
  readonly contents: string;
}

const FILE_IDENTIFIER = '9{[3] [4] 11 12}';
const MESSAGE_CONTENTS = '9{[3] [4] ~11 12} 13 [14] [16] [50{51}] [61] [62] [91]';

export const FPDUS = {
  CONNECT: {
    phase: 0x40,
    type: 0x20,
    from: 'requester',
    clause: '§4.4.1',
    contents: '[1] 3 4 [5] ~6 [7] 22 [23] [26] [99]',
  },
  ACONNECT: { phase: 0x40, type: 0x21, from: 'server', clause: '§4.4.2', contents: '[5] ~6 [7] [23] [99]' },
  RCONNECT: { phase: 0x40, type: 0x22, from: 'server', clause: '§4.4.3', contents: '2 [29] [99]' },
  RELEASE: { phase: 0x40, type: 0x23, from: 'requester', clause: '§4.4.26', contents: '2 [29] [99]' },
  RELCONF: { phase: 0x40, type: 0x24, from: 'server', clause: '§4.4.27', contents: '[99]' },
  ABORT: { phase: 0x40, type: 0x25, from: 'either', clause: '§4.4.28', contents: '2 [29]' },

  CREATE: {
    phase: 0xc0,
    type: 0x11,
    from: 'requester',
    clause: '§4.4.4',
    contents: `${FILE_IDENTIFIER} 13 [15] [16] 17 25 30{[31] 32 [33] [34] [36] [37] [38] [39]} 40{[41] 42} [50{51 [52]}] [61] [62] [63] [71] [72] [73] [74] [75] [76] [77] [78] [79] [80] [99]`,
  },
  'ACK(CREATE)': {
    phase: 0xc0,
    type: 0x30,
    from: 'server',
    clause: '§4.4.5',
    contents: '2 [13] 25 [29] [64] [72] [80] [83] [99]',
  },
  SELECT: {
    phase: 0xc0,
    type: 0x12,
    from: 'requester',
    clause: '§4.4.6',
    contents: `${FILE_IDENTIFIER} 13 [14] [15] 17 25 [61] [62] [63] [71] [72] [73] [74] [75] [76] [77] [78] [79] [80] [99]`,
  },
  'ACK(SELECT)': {
    phase: 0xc0,
    type: 0x31,
    from: 'server',
    clause: '§4.4.7',
    contents: `2 9{[3] [4] ~11 ~12} 13 [16] 25 [29] ~30{[31] ~32 [33] [34] [36] [37] [38] [39]} ~40{[41] ~42} [50{[51] [52]}] [61] [62] [64] [72] [80] [83] [99]`,
  },
  DESELECT: { phase: 0xc0, type: 0x13, from: 'requester', clause: '§4.4.8', contents: '2 [29] [99]' },
  'ACK(DESELECT)': { phase: 0xc0, type: 0x32, from: 'server', clause: '§4.4.9', contents: '2 [29] [99]' },
  ORF: {
    phase: 0xc0,
    type: 0x14,
    from: 'requester',
    clause: '§4.4.10',
    contents: '[21] [72] [73] [74] [75] [76] [77] [78] [79] [80] [81] [82] [83]',
  },
  'ACK(ORF)': { phase: 0xc0, type: 0x33, from: 'server', clause: '§4.4.11', contents: '2 [21] [29] [74] [76]' },
  CRF: { phase: 0xc0, type: 0x15, from: 'requester', clause: '§4.4.12', contents: '2 [29]' },
  'ACK(CRF)': { phase: 0xc0, type: 0x34, from: 'server', clause: '§4.4.13', contents: '2 [29]' },
  READ: { phase: 0xc0, type: 0x01, from: 'requester', clause: '§4.4.14', contents: '18' },
  'ACK(READ)': { phase: 0xc0, type: 0x35, from: 'server', clause: '§4.4.15', contents: '2 [29]' },
  WRITE: { phase: 0xc0, type: 0x02, from: 'requester', clause: '§4.4.16', contents: '' },
  'ACK(WRITE)': { phase: 0xc0, type: 0x36, from: 'server', clause: '§4.4.17', contents: '2 18 [29]' },
  'TRANS.END': { phase: 0xc0, type: 0x08, from: 'requester', clause: '§4.4.18', contents: '[27] [28] [81]' },
  'ACK(TRANS.END)': { phase: 0xc0, type: 0x37, from: 'server', clause: '§4.4.19', contents: '2 [27] [28] [29] [81]' },
  SYN: { phase: 0xc0, type: 0x03, from: 'either', clause: '§4.4.22', contents: '20 [78]' },
  'ACK(SYN)': { phase: 0xc0, type: 0x38, from: 'either', clause: '§4.4.23', contents: '20' },
  RESYN: { phase: 0xc0, type: 0x05, from: 'either', clause: '§4.4.24', contents: '2 18 [29]' },
  'ACK(RESYN)': { phase: 0xc0, type: 0x39, from: 'either', clause: '§4.4.25', contents: '18' },
  IDT: { phase: 0xc0, type: 0x06, from: 'either', clause: '§4.4.29', contents: '2 19 [29]' },
  'ACK(IDT)': { phase: 0xc0, type: 0x3a, from: 'either', clause: '§4.4.30', contents: '' },
  'DTF.END': { phase: 0xc0, type: 0x04, from: 'either', clause: '§4.4.21', contents: '2 [29] [78] [79] [82]' },
  MSG: { phase: 0xc0, type: 0x16, from: 'requester', clause: '§4.4.31', contents: MESSAGE_CONTENTS },
  MSGDM: { phase: 0xc0, type: 0x17, from: 'requester', clause: '§4.4.31', contents: MESSAGE_CONTENTS },
  MSGMM: { phase: 0xc0, type: 0x18, from: 'requester', clause: '§4.4.31', contents: '[91]' },
  MSGFM: { phase: 0xc0, type: 0x19, from: 'requester', clause: '§4.4.31', contents: '[91]' },
  'ACK(MSG)': { phase: 0xc0, type: 0x3b, from: 'server', clause: '§4.4.32', contents: '2 [13] [16] [29] [91]' },

  DTF: { phase: 0x00, type: 0x00, from: 'either', clause: '§4.4.20', contents: '' },
  DTFDA: { phase: 0x00, type: 0x41, from: 'either', clause: '§4.4.20.3', contents: '' },
  DTFMA: { phase: 0x00, type: 0x40, from: 'either', clause: '§4.4.20.3', contents: '' },
  DTFFA: { phase: 0x00, type: 0x42, from: 'either', clause: '§4.4.20.3', contents: '' },
} as const satisfies Record<string, FpduRow>;

export type FpduName = keyof typeof FPDUS;

/** DTF, DTFDA, DTFMA, DTFFA: article bytes instead of parameters. */
export type DataFpduName = 'DTF' | 'DTFDA' | 'DTFMA' | 'DTFFA';

export const FPDU_NAMES = Object.keys(FPDUS) as readonly FpduName[];

/** `mandatory`: missing is PI 2 = 3-318. `expected`: always sent, tolerated when absent. */
export type Presence = 'mandatory' | 'expected' | 'optional';

export interface ContentItem {
  readonly key: ParameterKey;
  readonly presence: Presence;
  /** The members of a group; empty for a PI. */
  readonly members: readonly ContentItem[];
}

const parseContents = (text: string): ContentItem[] => {
  const items: ContentItem[] = [];
  const pattern = /(\[?)(~?)(\d+)(?:\{([^}]*)\})?\]?/g;
  for (const [, bracket, tilde, code, members] of text.matchAll(pattern)) {
    const key = parameterByCode(Number(code));
    if (key === undefined) throw new Error(`FPDU table names the unknown parameter ${code ?? ''}`);
    const presence = bracket === '[' ? 'optional' : tilde === '~' ? 'expected' : 'mandatory';
    items.push({ key, presence, members: members === undefined ? [] : parseContents(members) });
  }
  return items;
};

/** The contents of every FPDU, parsed once, in the order of the wire. */
export const CONTENTS: Readonly<Record<FpduName, readonly ContentItem[]>> = Object.fromEntries(
  FPDU_NAMES.map((name) => [name, parseContents(FPDUS[name].contents)]),
) as Record<FpduName, ContentItem[]>;

const BY_TYPE = new Map<number, FpduName>(
  FPDU_NAMES.map((name) => [(FPDUS[name].phase << 8) | FPDUS[name].type, name]),
);

export const fpduByCodes = (phase: number, type: number): FpduName | undefined => BY_TYPE.get((phase << 8) | type);

export const isDataFpdu = (name: FpduName): name is DataFpduName => FPDUS[name].phase === 0x00;

/** The group of a parameter within an FPDU, for peers that send a member outside its group. */
export const groupOf = (name: FpduName, key: ParameterKey): ParameterKey | undefined =>
  CONTENTS[name].find((item) => item.members.some((member) => member.key === key))?.key;

/** True when parameters beyond 2, 29 and 99 may be absent: a negative answer (pesit-e.md §2). */
export const isAcknowledgement = (name: FpduName): boolean => name.startsWith('ACK(');

/** Longest FPDU header and shortest FPDU, in bytes (§4.7.1). */
export const FPDU_HEADER_LENGTH = 6;
/** Longest FPDU and longest entity, in bytes: both lengths travel in two bytes. */
export const MAX_FPDU_LENGTH = 65_535;

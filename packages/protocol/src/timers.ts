/** Which timer runs in which state (§4.6, pesit-e.md §4). */
import type { Role, State } from './automaton.js';

/** Milliseconds. */
export interface Timers {
  /** Tc: the first FPDU after the connection. Default 30,000. */
  readonly connect: number;
  /** Tp: the next FPDU that the peer owes. Default 30,000. */
  readonly response: number;
  /** Td: idle between two files, on the server. Default 300,000, the specification's minimum. */
  readonly idle: number;
  /** Until the peer closes after ABORT or the end of the connection. Default 5,000. */
  readonly close: number;
}

export const DEFAULT_TIMERS: Timers = { connect: 30_000, response: 30_000, idle: 300_000, close: 5_000 };

/** `blocked`: Tp, but only while the peer keeps us from sending. */
export type Wait = 'connect' | 'response' | 'idle' | 'blocked';

const DATA_STATES: readonly State[] = ['TDE03', 'TDE05', 'TDL03', 'TDL05'];

const REQUESTER_WAITS = new Map<State, Wait>([
  ...(
    [
      'CN02A',
      'CN04A',
      'SF01A',
      'SF02A',
      'SF04A',
      'OF01A',
      'OF03A',
      'OF03Aab',
      'TDE01A',
      'TDE08A',
      'TDL01A',
      'TDL02A',
      'TDL08A',
      'MG01A',
      ...DATA_STATES,
    ] as const
  ).map((state) => [state, 'response'] as const),
  ['TDE02A', 'blocked'],
]);

const SERVER_WAITS = new Map<State, Wait>([
  ['CN01', 'connect'],
  ['CN03', 'idle'],
  ...(['SF03', 'SF03ab', 'OF02', 'OF02ab', 'TDE02B', 'TDE07', 'TDL07', 'MG02B', ...DATA_STATES] as const).map(
    (state) => [state, 'response'] as const,
  ),
  ['TDL02B', 'blocked'],
]);

/** The timer of a state; `undefined` when it is this side's turn. */
export function waitOf(role: Role, state: State): Wait | undefined {
  return (role === 'requester' ? REQUESTER_WAITS : SERVER_WAITS).get(state);
}

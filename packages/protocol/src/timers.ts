/** How long each timer waits (§4.6, pesit-e.md §4); which one runs in which state is a column of `states.ts`. */

/** Milliseconds. */
export interface Timers {
  /** Tc: the first FPDU after the connection. Default 30,000. */
  readonly connect: number;
  /** Tp: the next FPDU that the peer owes. Default 30,000. */
  readonly response: number;
  /** The peer takes nothing of what was given to the transport. Default: as `response`. */
  readonly write: number;
  /** Td: idle between two files, on the server. Default 300,000, the specification's minimum. */
  readonly idle: number;
  /** Until the peer closes after ABORT or the end of the connection. Default 5,000. */
  readonly close: number;
}

const DEFAULT_TIMERS: Timers = { connect: 30_000, response: 30_000, write: 30_000, idle: 300_000, close: 5_000 };

/** Every timer, where `given` leaves some out. */
export const timersOf = (given: Partial<Timers> = {}): Timers => {
  const { write = given.response ?? DEFAULT_TIMERS.write } = given;
  return { ...DEFAULT_TIMERS, ...given, write };
};

/** The plan of a round: a walk of the generator from the round's seed, so that the seed alone tells it again. */
import type { Dialect } from '@pesit-node/protocol';
import { Chance } from '@pesit-node/protocol/testing';
import type { Action, Direction, Fault, Moment, Victim } from './faults.js';

export const KB = 1024;
export const MB = 1024 * KB;

/** Binary of any length, without PI 31 and with it, binary of fixed length, text of variable and of fixed length. */
export type Format = 'BU' | 'BV' | 'BF' | 'TV' | 'TF';

export interface FilePlan {
  /** Bytes. */
  readonly size: number;
  readonly format: Format;
  /** PI 32; of BF and TF every record has it. */
  readonly recordLength: number;
  /** PI 16, of a text: EBCDIC on the wire. */
  readonly ebcdic: boolean;
  /** Long runs of the same byte: compression has something to do. */
  readonly runs: boolean;
}

export interface SessionPlan {
  readonly dialect: Dialect;
  /** PI 25, bytes. */
  readonly entity: number;
  /** PI 7, KB; 0 = no sync points. */
  readonly interval: number;
  /** PI 7, points. */
  readonly window: number;
  /** PI 21. */
  readonly compression: (typeof COMPRESSIONS)[number];
  /** PI 1. */
  readonly crc: boolean;
  /** PI 23. */
  readonly resync: boolean;
}

const COMPRESSIONS = ['none', 'horizontal', 'vertical', 'both'] as const;

export interface TransferPlan {
  /** `push`: our client sends and our server receives; `pull`: the other way. */
  readonly direction: 'push' | 'pull';
  readonly file: FilePlan;
}

export interface RoundPlan {
  readonly seed: number;
  /** The one that the faults are aimed at, and in some rounds one the other way, which they hit as well. */
  readonly transfers: readonly [TransferPlan, ...TransferPlan[]];
  readonly session: SessionPlan;
  /** Added to each direction of the network, milliseconds. */
  readonly latencyMs: number;
  readonly faults: readonly Fault[];
  /** How long what was killed stays away, milliseconds. */
  readonly absenceMs: number;
}

/** The timers of both apps: what is silent longer is given up. */
export const SILENCE_MS = 3000;

const SIZES: readonly (readonly [weight: number, size: readonly [low: number, high: number]])[] = [
  [4, [0, 0]],
  [8, [1, 100]],
  [24, [101, 16 * KB]],
  [32, [16 * KB, 512 * KB]],
  [24, [512 * KB, 4 * MB]],
  [6, [4 * MB, 16 * MB]],
  [2, [16 * MB, 64 * MB]],
];

/** @param most bytes */
const planFile = (chance: Chance, most: number): FilePlan => {
  const [low, high] = chance.weighted(SIZES);
  const wanted = Math.min(most, chance.between(low, high));
  const format = chance.weighted<Format>([
    [2, 'BU'],
    [4, 'BV'],
    [2, 'BF'],
    [2, 'TV'],
    [2, 'TF'],
  ]);
  // Short records make many articles: enough of them in a small file, too slow in a large one.
  const recordLength = wanted > MB ? chance.pick([1000, 4096, 30_000]) : chance.pick([80, 250, 4096, 8000]);
  // A file of fixed records ends with a whole one (pesit-e.md §6).
  const runs = chance.below(3) === 0;
  const ebcdic = format.startsWith('T') && chance.below(3) === 0;
  const common = { format, recordLength, ebcdic, runs };
  if (format === 'BF') return { ...common, size: Math.ceil(wanted / recordLength) * recordLength };
  // A line is one byte and its end at least, also where the source begins a new megabyte.
  const size = format.startsWith('T') && wanted % MB === 1 ? wanted + 1 : wanted;
  return { ...common, size };
};

const planSession = (chance: Chance, { size }: FilePlan): SessionPlan => {
  const dialect = chance.pick<Dialect>(['length-prefixed', 'raw']);
  const entity = chance.pick([1024, 4096, 32_768, 65_535]);
  // Small intervals for small files, so that most transfers have points; a few transfers have none.
  const intervals = size > 4 * MB ? [256, 1024] : size > 256 * KB ? [16, 64, 256] : [1, 4, 16];
  const interval = chance.weighted<readonly number[]>([
    [12, intervals],
    [1, [0]],
  ]);
  const window = chance.weighted<readonly number[]>([
    [16, [1, 2, 4, 16]],
    [1, [0]],
  ]);
  return {
    dialect,
    entity,
    interval: chance.pick(interval),
    window: chance.pick(window),
    compression: chance.below(3) === 0 ? chance.pick(COMPRESSIONS) : 'none',
    crc: chance.below(5) === 0,
    resync: chance.below(2) === 0,
  };
};

/** The FPDUs at which a fault is most telling, and which way they go; DATA: the way of the file. */
const STEPS: readonly (readonly [weight: number, name: string, way: 'request' | 'answer' | 'data' | 'back'])[] = [
  [1, 'CONNECT', 'request'],
  [1, 'ACONNECT', 'answer'],
  [1, 'ORF', 'request'],
  [1, 'ACK(ORF)', 'answer'],
  [6, 'SYN', 'data'],
  [8, 'ACK(SYN)', 'back'],
  [5, 'DTF.END', 'data'],
  [8, 'TRANS.END', 'request'],
  [10, 'ACK(TRANS.END)', 'answer'],
  [2, 'CRF', 'request'],
  [2, 'ACK(CRF)', 'answer'],
  [1, 'DESELECT', 'request'],
  [1, 'ACK(DESELECT)', 'answer'],
];
const PUSH_STEPS: typeof STEPS = [
  [2, 'CREATE', 'request'],
  [3, 'ACK(CREATE)', 'answer'],
  [2, 'WRITE', 'request'],
  [4, 'ACK(WRITE)', 'answer'],
];
const PULL_STEPS: typeof STEPS = [
  [2, 'SELECT', 'request'],
  [3, 'ACK(SELECT)', 'answer'],
  [2, 'READ', 'request'],
  [4, 'ACK(READ)', 'answer'],
];

class FaultPlanner {
  readonly #chance: Chance;
  readonly #push: boolean;
  readonly #size: number;
  readonly #points: number;
  readonly #crc: boolean;
  readonly #victims: readonly Victim[];

  constructor(chance: Chance, { direction, file }: TransferPlan, session: SessionPlan, victims: readonly Victim[]) {
    this.#chance = chance;
    this.#push = direction === 'push';
    this.#size = file.size;
    this.#points = session.interval === 0 ? 0 : Math.floor(file.size / (session.interval * KB));
    this.#crc = session.crc;
    this.#victims = victims;
  }

  /** @param isLater it strikes while the transfer recovers from the one before */
  plan(isLater: boolean): Fault {
    const chance = this.#chance;
    const kind = chance.weighted<Action['do']>([
      [46, 'kill'],
      [15, 'cut'],
      [9, 'reset'],
      [7, 'half-close'],
      [7, 'stall'],
      [16, 'drop'],
      // Without CRC nobody could notice.
      [this.#crc ? 40 : 0, 'damage'],
    ]);
    const moment = kind === 'drop' ? this.#acknowledgement() : this.#moment(kind, isLater);
    return { moment, action: this.#action(kind) };
  }

  #action(kind: Action['do']): Action {
    const chance = this.#chance;
    switch (kind) {
      case 'kill':
        // At once, or in the middle of what the apps do at the end of a file, or long after.
        return {
          do: kind,
          victim: chance.pick(this.#victims),
          afterMs: chance.weighted([
            [4, 0],
            [4, chance.between(1, 40)],
            [1, chance.between(40, 300)],
          ]),
        };
      case 'stall':
        // Mostly a hiccup; now and then longer than the timers wait.
        return { do: kind, ms: chance.below(6) === 0 ? SILENCE_MS + 500 : chance.between(20, 400) };
      case 'drop':
        return { do: kind, cut: chance.below(4) > 0 };
      case 'damage':
        return { do: kind, at: chance.below(1 << 19) };
      default:
        return { do: kind };
    }
  }

  #way(way: (typeof STEPS)[number][2]): Direction {
    if (way === 'data') return this.#push ? 'request' : 'answer';
    if (way === 'back') return this.#push ? 'answer' : 'request';
    return way;
  }

  #step(steps: typeof STEPS): Omit<Moment & { at: 'fpdu' }, 'side'> {
    const chance = this.#chance;
    const [name, way] = chance.weighted(steps.map(([weight, ...step]) => [weight, step] as const));
    const isPoint = name === 'SYN' || name === 'ACK(SYN)';
    const occurrence = isPoint && this.#points > 1 ? chance.between(1, this.#points) : 1;
    return { at: 'fpdu', direction: this.#way(way), name, occurrence };
  }

  #moment(kind: Action['do'], isLater: boolean): Moment {
    const chance = this.#chance;
    const concernsAll = kind === 'kill' || kind === 'cut' || kind === 'reset';
    const at = chance.weighted<Moment['at']>([
      [5, 'bytes'],
      [5, 'fpdu'],
      // Only what concerns the whole connection can strike while nothing passes.
      [concernsAll ? (isLater ? 5 : 1) : 0, 'time'],
    ]);
    if (at === 'time') return { at, ms: chance.between(0, isLater ? chance.pick([100, 3000]) : 250) };
    if (at === 'fpdu') {
      const steps = [...STEPS, ...(this.#push ? PUSH_STEPS : PULL_STEPS)];
      return { ...this.#step(steps), side: chance.pick(['before', 'after']) };
    }
    // The FPDUs without file data take about 500 bytes; the way back has little else.
    const back = chance.below(5) === 0;
    const direction = this.#way(back ? 'back' : 'data');
    const most = back ? 500 : this.#size + 500;
    return { at, direction, count: chance.between(1, isLater ? Math.min(most, chance.pick([1000, 100 * KB])) : most) };
  }

  /** An acknowledgement, which has its entity for itself (§4.5). */
  #acknowledgement(): Moment {
    const steps = [...STEPS, ...(this.#push ? PUSH_STEPS : PULL_STEPS)].filter(([, name]) => name.startsWith('ACK('));
    return { ...this.#step(steps), side: 'before' };
  }
}

/** @param victims who can be killed on this machine */
export const planRound = (seed: number, victims: readonly Victim[]): RoundPlan => {
  const chance = new Chance(seed);
  const direction = chance.pick(['push', 'pull'] as const);
  const file = planFile(chance, 64 * MB);
  const session = planSession(chance, file);
  const planner = new FaultPlanner(chance, { direction, file }, session, victims);
  const count = chance.weighted([
    [1, 0],
    [11, 1],
    [6, 2],
    [3, 3],
  ]);
  const faults = Array.from({ length: count }, (_, k) => planner.plan(k > 0));
  const latencyMs = chance.weighted([
    [8, 0],
    [1, 1],
    // Slow enough to matter, and only for files that are still through in a second.
    [file.size < MB ? 1 : 0, 8],
  ]);
  const absenceMs = chance.between(0, 400);
  // The terms of the session fit the first one: the other shall not have points by the ten thousand.
  const most = session.interval === 0 ? MB : session.interval * MB;
  const other = { direction: direction === 'push' ? 'pull' : 'push', file: planFile(chance, most) } as const;
  const transfers = [{ direction, file }, ...(chance.below(4) === 0 ? [other] : [])] as const;
  return { seed, transfers, session, latencyMs, faults, absenceMs };
};

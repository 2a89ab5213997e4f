import type { Figures } from '../events.js';
import { Rate } from './rate.js';
import type { TransferProgressEvent } from './schema.js';

type Id = string | number;

/** A running transfer as the database has it. */
export interface RunningRow {
  readonly id: Id;
  /** Another text for another attempt. */
  readonly version: string;
  readonly bytes: number;
  readonly syncPoint: number | null;
  readonly expected: number | null;
  /** The partner announces `expected`: an estimate. */
  readonly isAnnounced: boolean;
  readonly node: string | null;
}

interface Running {
  readonly row: RunningRow;
  readonly rate: Rate;
  bytes: number;
  syncPoint: number;
  /** By the partner, to this process. */
  announced?: number | undefined;
  /** As it was told last. */
  told: string;
}

/** Figures, rate and estimated end of the transfers that run, on this pod or another. */
export class LiveProgress {
  readonly #figuresOf: (id: Id) => Figures | undefined;
  readonly #running = new Map<Id, Running>();

  readonly #now: () => number;

  /**
   * @param figuresOf newer figures than the database has, of a transfer of this process
   * @param now milliseconds of a clock that nobody can set; default `performance.now`
   */
  constructor(figuresOf: (id: Id) => Figures | undefined, now = () => performance.now()) {
    this.#figuresOf = figuresOf;
    this.#now = now;
  }

  /** The transfers that run now: all of them. */
  look(rows: readonly RunningRow[]): void {
    const found = new Set(rows.map(({ id }) => id));
    for (const id of this.#running.keys()) if (!found.has(id)) this.#running.delete(id);
    for (const row of rows) {
      const known = this.#running.get(row.id);
      const isSame = known?.row.version === row.version;
      const of = isSame ? known : { rate: new Rate(), told: '' };
      this.#running.set(row.id, { ...of, row, bytes: row.bytes, syncPoint: row.syncPoint ?? 0 });
      if (this.#figuresOf(row.id) === undefined) of.rate.hear(row.bytes, this.#now());
    }
    this.sample();
  }

  /** Asks the transfers of this process. */
  sample(): void {
    for (const [id, running] of this.#running) {
      const figures = this.#figuresOf(id);
      if (figures === undefined) continue;
      running.bytes = figures.dataBytes;
      running.syncPoint = figures.syncPoint;
      running.announced = figures.announced;
      running.rate.add(figures.dataBytes, this.#now());
    }
  }

  /** Those whose figures are not as they were told last. */
  moved(): readonly TransferProgressEvent[] {
    const moved: TransferProgressEvent[] = [];
    for (const running of this.#running.values()) {
      const { bytes, syncPoint, rate } = running;
      const now = `${bytes}/${syncPoint}/${Math.round(rate.perSecond ?? -1)}`;
      if (now === running.told) continue;
      running.told = now;
      moved.push(shown(running));
    }
    return moved;
  }

  all(): readonly TransferProgressEvent[] {
    return [...this.#running.values()].map(shown);
  }

  of(id: Id): TransferProgressEvent | undefined {
    const running = this.#running.get(id);
    return running && shown(running);
  }

  clear(): void {
    this.#running.clear();
  }
}

const shown = ({ row, rate, bytes, syncPoint, announced }: Running): TransferProgressEvent => {
  const expected = row.expected ?? announced ?? null;
  const perSecond = rate.perSecond === undefined ? null : Math.round(rate.perSecond);
  return {
    id: row.id,
    bytesTransferred: bytes,
    expectedBytes: expected,
    isAnnounced: row.expected === null ? expected !== null : row.isAnnounced,
    rate: perSecond,
    estimatedEnd: endOf(expected, bytes, perSecond),
    syncPoint,
    node: row.node,
  };
};

/** Longest time that is estimated, milliseconds: a year. */
const LONGEST_MS = 365 * 86_400_000;

const endOf = (expected: number | null, bytes: number, perSecond: number | null): string | null => {
  if (expected === null || perSecond === null || perSecond <= 0) return null;
  const left = (Math.max(0, expected - bytes) * 1000) / perSecond;
  return left > LONGEST_MS ? null : new Date(Date.now() + left).toISOString();
};

/** Figures of one run of one row, and the summary of the runs of a row. */

/** One process during one run. `idleRssMb`: resident memory before its first transfer, where it lives longer than a run. */
export interface ProcessFigures {
  readonly name: string;
  readonly cpuSeconds: number;
  /** Undefined where processes share what they have. */
  readonly peakRssMb?: number;
  readonly idleRssMb?: number;
  /** 99th percentile of the delay of its event loop, milliseconds. */
  readonly loopDelayMs?: number;
}

export interface Measurement {
  readonly seconds: number;
  readonly bytes: number;
  readonly transfers: number;
  /** Articles, of rows that count them. */
  readonly records?: number;
  /** Data bytes as PI 27 counts them, where they are not those of the file. */
  readonly wireBytes?: number;
  /** From the request to the end of each transfer, in rows that look at it. */
  readonly latenciesMs?: readonly number[];
  readonly processes: readonly ProcessFigures[];
}

/** One row of the report. MB = 10⁶ bytes, GB = 10⁹ bytes; null: does not apply to the row. */
export interface CaseResult {
  readonly name: string;
  readonly mbPerSecond: number;
  /** Against the raw copy on the same medium in the same round. */
  readonly ratioToRaw: number | null;
  /** Against the raw copy that computes the same hashes, in the same round. */
  readonly ratioToHashed: number | null;
  /** MB/s against the plain row of the same round. */
  readonly ratioToPlain: number | null;
  readonly recordsPerSecond: number | null;
  /** Bytes of the file to bytes on the wire. */
  readonly compressionRatio: number | null;
  /** User and system time of all processes; null for small files. */
  readonly cpuSecondsPerGb: number | null;
  /** Memory of the larger process. */
  readonly peakRssMb: number;
  readonly transfersPerSecond: number | null;
  /** Milliseconds from the request to the end of a transfer, over all runs. */
  readonly latencyMs: { readonly p50: number; readonly p99: number } | null;
  readonly processes: readonly {
    readonly name: string;
    readonly cpuSeconds: number;
    readonly peakRssMb: number | null;
    readonly idleRssMb: number | null;
    /** Processor time of one small transfer, milliseconds. */
    readonly cpuMsPerTransfer: number | null;
    readonly loopDelayMs: number | null;
  }[];
  /** Seconds of every measured run. */
  readonly runs: readonly number[];
}

/** The middle value; of an even number of values the mean of the two in the middle. */
export const median = (values: readonly number[]): number => {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  return Number.isInteger(middle) ? (sorted[middle - 1]! + sorted[middle]!) / 2 : sorted[Math.floor(middle)]!;
};

/** The value below which this share of them lies; of the nearest rank. */
export const percentile = (values: readonly number[], share: number): number => {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)]!;
};

const rounded = (value: number, digits: number): number => Number(value.toFixed(digits));

export const rate = ({ bytes, seconds }: Measurement): number => bytes / 1e6 / seconds;

const cpuSeconds = ({ processes }: Measurement): number => processes.reduce((sum, p) => sum + p.cpuSeconds, 0);

/**
 * The medians of a row. `raw`, `plain` and `hashed` are what it is compared with, in the same rounds, in the same order; empty where a
 * row has none.
 */
export const summarize = (
  name: string,
  runs: readonly Measurement[],
  raw: readonly Measurement[],
  plain: readonly Measurement[] = [],
  hashed: readonly Measurement[] = [],
): CaseResult => {
  const first = runs[0]!;
  const against = (others: readonly Measurement[]): number | null =>
    others.length === 0 ? null : rounded(median(runs.map((run, round) => rate(run) / rate(others[round]!))), 3);
  const many = first.transfers > 1;
  const processes = first.processes.map((process, index) => ({
    name: process.name,
    cpuSeconds: rounded(median(runs.map((run) => run.processes[index]!.cpuSeconds)), 2),
    peakRssMb:
      process.peakRssMb === undefined
        ? null
        : rounded(median(runs.map((run) => run.processes[index]!.peakRssMb ?? 0)), 0),
    idleRssMb: process.idleRssMb === undefined ? null : rounded(process.idleRssMb, 0),
    cpuMsPerTransfer: many
      ? rounded(median(runs.map((run) => (run.processes[index]!.cpuSeconds * 1000) / run.transfers)), 2)
      : null,
    loopDelayMs:
      process.loopDelayMs === undefined
        ? null
        : rounded(median(runs.map((run) => run.processes[index]!.loopDelayMs ?? 0)), 1),
  }));
  const latencies = runs.flatMap(({ latenciesMs = [] }) => latenciesMs);
  return {
    name,
    mbPerSecond: rounded(median(runs.map(rate)), many ? 2 : 0),
    ratioToRaw: against(raw),
    ratioToHashed: against(hashed),
    ratioToPlain: against(plain),
    recordsPerSecond:
      first.records === undefined ? null : rounded(median(runs.map((run) => (run.records ?? 0) / run.seconds)), 0),
    compressionRatio: first.wireBytes === undefined ? null : rounded(first.bytes / first.wireBytes, 2),
    cpuSecondsPerGb: many ? null : rounded(median(runs.map((run) => cpuSeconds(run) / (run.bytes / 1e9))), 2),
    peakRssMb: Math.max(...processes.map((process) => process.peakRssMb ?? 0)),
    transfersPerSecond: many ? rounded(median(runs.map((run) => run.transfers / run.seconds)), 1) : null,
    latencyMs:
      latencies.length === 0
        ? null
        : { p50: rounded(percentile(latencies, 0.5), 1), p99: rounded(percentile(latencies, 0.99), 1) },
    processes,
    runs: runs.map((run) => rounded(run.seconds, 3)),
  };
};

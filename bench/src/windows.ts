/**
 * The cost of sync points (`--windows`): one file sent with each interval and window, for each durability on each medium, and
 * over networks of growing distance. A row of a durability is compared with `none` of the same interval and window in the
 * same round; a row of a distance says how much of the line its window fills.
 *
 * Files shrink where little can be under way, so that no row takes more than some seconds.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DistantNetwork } from './distant-network.js';
import { median, rate, type Measurement } from './figures.js';
import { writeRandomFile } from './files.js';
import { NodePair } from './node-pair.js';
import type { Target } from './pair-setup.js';
import type { Options } from './options.js';

export const DURABILITIES = ['checkpoint', 'end', 'none'] as const;
/** KB, PI 7. */
export const INTERVALS = [32, 256, 1024, 4096] as const;
/** Points, PI 7. */
export const WINDOWS = [1, 4, 16, 64] as const;
/** Milliseconds there and back. */
export const ROUND_TRIPS = [0, 5, 20, 80] as const;
/** Settings for each distance: interval in KB and window. */
export const OVER_DISTANCE = [
  [32, 2],
  [256, 4],
  [1024, 4],
  [1024, 16],
  [4096, 16],
] as const;

/** Seconds that a row over a distance may take about. */
const ROW_SECONDS = 2;
const SMALLEST = 1 << 20;

export interface WindowRow {
  readonly name: string;
  readonly medium: string;
  readonly durability: (typeof DURABILITIES)[number];
  readonly intervalKb: number;
  readonly window: number;
  readonly roundTripMs: number;
}

/** A row and what it came to: medians. MB = 10⁶ bytes. */
export interface WindowResult extends WindowRow {
  readonly bytes: number;
  readonly mbPerSecond: number;
  /** Against durability `none` with the same interval and window, in the same round; null over a distance. */
  readonly ratioToNone: number | null;
}

const nameOf = ({ medium, durability, intervalKb, window, roundTripMs }: Omit<WindowRow, 'name'>): string =>
  roundTripMs === 0
    ? `${medium}-${durability}-${intervalKb}x${window}`
    : `${medium}-${durability}-${intervalKb}x${window}-${roundTripMs}ms`;

const named = (row: Omit<WindowRow, 'name'>): WindowRow => ({ name: nameOf(row), ...row });

/** All rows of a medium, those that are compared with each other side by side. */
export const windowRows = (medium: string): readonly WindowRow[] => {
  const near = INTERVALS.flatMap((intervalKb) =>
    WINDOWS.flatMap((window) =>
      DURABILITIES.map((durability) => named({ medium, durability, intervalKb, window, roundTripMs: 0 })),
    ),
  );
  if (medium !== 'disk') return near;
  const known = new Set(near.map(({ name }) => name));
  const far = ROUND_TRIPS.flatMap((roundTripMs) =>
    OVER_DISTANCE.map(([intervalKb, window]) =>
      named({ medium, durability: 'checkpoint', intervalKb, window, roundTripMs }),
    ),
  );
  return [...near, ...far.filter(({ name }) => !known.has(name))];
};

/** Bytes to send: a power of two, no more than `most`, and about what crosses in `ROW_SECONDS` when each window waits. */
export const sizeOf = ({ intervalKb, window, roundTripMs }: WindowRow, most: number): number => {
  if (roundTripMs === 0) return most;
  const crossing = ((intervalKb * 1024 * window) / (roundTripMs / 1000)) * ROW_SECONDS;
  return Math.max(SMALLEST, Math.min(most, 2 ** Math.floor(Math.log2(crossing))));
};

/** Runs all rows on one medium, round by round. @param folder on that medium */
export const measureWindows = async (
  medium: string,
  folder: string,
  options: Options,
): Promise<readonly WindowResult[]> => {
  const directory = mkdtempSync(join(folder, 'pesit-windows-'));
  const rows = windowRows(medium);
  const networks: DistantNetwork[] = [];
  let pair: NodePair | undefined;
  try {
    pair = await NodePair.start(directory, { sessions: 'kept', settings: options.settings }, options, {});
    const targets = await prepare(pair, rows, options, networks);
    const runs = new Map<WindowRow, Measurement[]>(rows.map((row) => [row, []]));
    for (let round = 0; round <= options.repetitions; round++) {
      for (const row of rows) {
        const measurement = await pair.push(fileName(sizeOf(row, options.size)), targets.get(row)!);
        console.error(`${row.name}: ${rate(measurement).toFixed(1)} MB/s${round === 0 ? ' (warm-up)' : ''}`);
        if (round > 0) runs.get(row)!.push(measurement);
      }
    }
    return rows.map((row) => summarized(row, rows, runs));
  } finally {
    await pair?.stop();
    for (const network of networks) network.close();
    rmSync(directory, { recursive: true, force: true });
  }
};

const fileName = (size: number) => `${size}.bin`;

/** Files, virtual files, networks and remote servers for the rows. */
const prepare = async (
  pair: NodePair,
  rows: readonly WindowRow[],
  { size, entity }: Options,
  networks: DistantNetwork[],
): Promise<Map<WindowRow, Target>> => {
  for (const bytes of new Set(rows.map((row) => sizeOf(row, size)))) {
    await writeRandomFile(join(pair.sendDirectory, fileName(bytes)), bytes);
  }
  for (const durability of DURABILITIES)
    await pair.setup.addInbox(`IN-${durability}`, { recordLength: entity - 6, durability });
  const ports = new Map<number, number>([[0, pair.setup.port]]);
  for (const roundTripMs of ROUND_TRIPS) {
    if (roundTripMs === 0 || !rows.some((row) => row.roundTripMs === roundTripMs)) continue;
    const network = await DistantNetwork.open(pair.setup.port, roundTripMs);
    networks.push(network);
    ports.set(roundTripMs, network.port);
  }
  const remotes = new Set<string>();
  const targets = new Map<WindowRow, Target>();
  for (const row of rows) {
    const remote = `to-${row.intervalKb}x${row.window}-${row.roundTripMs}`;
    if (!remotes.has(remote)) {
      const { intervalKb: interval, window } = row;
      await pair.setup.addRemote(remote, { port: ports.get(row.roundTripMs)!, entity, interval, window });
      remotes.add(remote);
    }
    targets.set(row, { remote, inbox: `IN-${row.durability}` });
  }
  return targets;
};

const summarized = (
  row: WindowRow,
  rows: readonly WindowRow[],
  runs: ReadonlyMap<WindowRow, readonly Measurement[]>,
): WindowResult => {
  const mine = runs.get(row)!;
  const none = rows.find(
    (other) =>
      other.durability === 'none' &&
      other.intervalKb === row.intervalKb &&
      other.window === row.window &&
      other.roundTripMs === row.roundTripMs,
  );
  const base = none === undefined ? undefined : runs.get(none)!;
  return {
    ...row,
    bytes: mine[0]!.bytes,
    mbPerSecond: Number(median(mine.map(rate)).toFixed(1)),
    ratioToNone:
      base === undefined ? null : Number(median(mine.map((run, round) => rate(run) / rate(base[round]!))).toFixed(2)),
  };
};

/** The results as people read them: a table for each medium, and one for the distances. */
export const formatWindows = (results: readonly WindowResult[]): string => {
  const media = [...new Set(results.map(({ medium }) => medium))];
  const near = media.map((medium) => {
    const cell = (durability: string, intervalKb: number, window: number): string => {
      const found = results.find((row) => row.name === `${medium}-${durability}-${intervalKb}x${window}`);
      if (found === undefined) return '-';
      return durability === 'none'
        ? found.mbPerSecond.toFixed(0)
        : `${found.mbPerSecond.toFixed(0)} (${found.ratioToNone?.toFixed(2) ?? '-'})`;
    };
    const lines = INTERVALS.flatMap((intervalKb) =>
      WINDOWS.map((window) => [
        `${intervalKb} KB × ${window}`,
        ...DURABILITIES.map((durability) => cell(durability, intervalKb, window)),
      ]),
    );
    return table([[`${medium}, MB/s (ratio to none)`, ...DURABILITIES], ...lines]);
  });
  const far = OVER_DISTANCE.map(([intervalKb, window]) => [
    `${intervalKb} KB × ${window}`,
    ...ROUND_TRIPS.map((roundTripMs) => {
      const name = nameOf({ medium: 'disk', durability: 'checkpoint', intervalKb, window, roundTripMs });
      return results.find((row) => row.name === name)?.mbPerSecond.toFixed(1) ?? '-';
    }),
  ]);
  const distance = table([['checkpoint, MB/s at a round trip of', ...ROUND_TRIPS.map((ms) => `${ms} ms`)], ...far]);
  return [...near, distance].join('\n\n');
};

const table = (rows: readonly (readonly string[])[]): string => {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows
    .map((row) =>
      row
        .map((cell, column) => (column === 0 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!)))
        .join('  '),
    )
    .join('\n');
};

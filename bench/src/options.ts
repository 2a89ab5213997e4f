import { tmpdir } from 'node:os';
import { parseArgs } from 'node:util';
import { DATABASE_URL, type DatabaseKind } from './database.js';

/** Measurements of a run, and how they are made; sizes in bytes. */
export interface Options {
  /** Where the JSON report goes; undefined: nowhere. */
  readonly json: string | undefined;
  /** Names of the rows to run; empty: all. */
  readonly only: readonly string[];
  /** Size of the large file. */
  readonly size: number;
  /** PI 25, the entity size offered. */
  readonly entity: number;
  /** PI 7, distance between sync points in KB. */
  readonly interval: number;
  /** PI 7, acknowledgement window in points. */
  readonly window: number;
  readonly repetitions: number;
  /** Transfers of a `small-…` row. */
  readonly smallCount: number;
  /** Records of the row `history`. */
  readonly historyRows: number;
  /** A folder on the disk to measure. */
  readonly directory: string;
  readonly database: DatabaseKind;
  /** Measure sync points and durability instead of the rows. */
  readonly windows: boolean;
  /** Where the picture of `windows` goes; undefined: nowhere. */
  readonly plot: string | undefined;
}

export const USAGE = `npm run bench -- [flags]
  --json FILE          write the report as JSON too
  --only NAME          run this row only; repeatable, or a list with commas
  --size SIZE          the large file (default 1GiB; units KB MB GB KiB MiB GiB)
  --entity BYTES       entity size offered, PI 25 (default 32768)
  --interval KB        distance between sync points, PI 7 (default 256)
  --window POINTS      acknowledgement window, PI 7 (default 4)
  --repetitions N      measured rounds; the median counts (default 3)
  --small-count N      transfers of a row of small files (default 300)
  --history-rows N     records of the row history (default 1000000)
  --directory PATH     a folder on the disk to measure (default: the temporary folder)
  --database KIND      postgresql (default where PostgreSQL 14 or later is found; a private one, every commit flushed)
                       or embedded
  --windows            what sync points cost: durability, interval, window and distance (default --size 256MiB)
  --plot FILE          with --windows: an SVG of it`;

const UNITS: Readonly<Record<string, number>> = {
  '': 1,
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
  KIB: 2 ** 10,
  MIB: 2 ** 20,
  GIB: 2 ** 30,
};

/** `1GiB`, `64 MB`, `4096` … in bytes. */
export const parseSize = (text: string): number => {
  const match = /^(\d+(?:\.\d+)?) ?([A-Za-z]*)$/.exec(text.trim());
  const unit = match === null ? undefined : UNITS[match[2]!.toUpperCase()];
  if (match === null || unit === undefined)
    throw new Error(`--size: expected a size such as 1GiB or 64MB, got "${text}"`);
  return Math.round(Number(match[1]) * unit);
};

const positive = (name: string, text: string): number => {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1)
    throw new Error(`--${name}: expected a whole number from 1, got "${text}"`);
  return value;
};

const databaseKind = (text: string | undefined): DatabaseKind => {
  if (text === undefined) return process.env[DATABASE_URL] === undefined ? 'embedded' : 'postgresql';
  if (text === 'embedded' || text === 'postgresql') return text;
  throw new Error(`--database: expected postgresql or embedded, got "${text}"`);
};

/** Reads the command line; undefined when only the usage is asked for. */
export const parseOptions = (args: readonly string[]): Options | undefined => {
  const { values } = parseArgs({
    args: [...args],
    options: {
      help: { type: 'boolean', short: 'h' },
      json: { type: 'string' },
      only: { type: 'string', multiple: true, default: [] },
      size: { type: 'string' },
      database: { type: 'string' },
      windows: { type: 'boolean', default: false },
      plot: { type: 'string' },
      entity: { type: 'string', default: '32768' },
      interval: { type: 'string', default: '256' },
      window: { type: 'string', default: '4' },
      repetitions: { type: 'string', default: '3' },
      'small-count': { type: 'string', default: '300' },
      'history-rows': { type: 'string', default: '1000000' },
      directory: { type: 'string', default: tmpdir() },
    },
  });
  if (values.help === true) return undefined;
  return {
    json: values.json,
    only: values.only.flatMap((names) => names.split(',')).filter((name) => name !== ''),
    size: parseSize(values.size ?? (values.windows ? '256MiB' : '1GiB')),
    database: databaseKind(values.database),
    windows: values.windows,
    plot: values.plot,
    entity: positive('entity', values.entity),
    interval: positive('interval', values.interval),
    window: positive('window', values.window),
    repetitions: positive('repetitions', values.repetitions),
    smallCount: positive('small-count', values['small-count']),
    historyRows: positive('history-rows', values['history-rows']),
    directory: values.directory,
  };
};

import { tmpdir } from 'node:os';
import { parseArgs } from 'node:util';
import { DATABASE_URL, type DatabaseKind } from './database.js';

/** A PeSIT server, and what it lets us do. */
export interface Peer {
  readonly host: string;
  readonly port: number;
  /** PI 4. */
  readonly server: string;
  /** PI 3. */
  readonly partner: string;
  /** PI 5; undefined: none. */
  readonly password: string | undefined;
  /** PI 12 of the file that it receives. */
  readonly push: string;
  /** PI 12 of a file that it sends, again and again; undefined: it is asked for none. */
  readonly pull: string | undefined;
}

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
  /** Small files that both apps of a stage have moved before the first row of them, uncounted. */
  readonly warmUp: number;
  /** Records of the row `history`. */
  readonly historyRows: number;
  /** A folder on the disk to measure. */
  readonly directory: string;
  /** Environment of both apps. */
  readonly settings: Readonly<Record<string, string>>;
  readonly database: DatabaseKind;
  /** Measure sync points and durability instead of the rows. */
  readonly windows: boolean;
  /** Where the picture of `windows` goes; undefined: nowhere. */
  readonly plot: string | undefined;
  /** Measure against this server instead of the rows. */
  readonly peer: Peer | undefined;
}

export const USAGE = `npm run bench -- [flags]
  --json FILE          write the report as JSON too
  --only NAME          run this row only; repeatable, or a list with commas
  --size SIZE          the large file (default 1GiB; units KB MB GB KiB MiB GiB)
  --entity BYTES       entity size offered, PI 25 (default 32768)
  --interval KB        distance between sync points, PI 7 (default 256)
  --window POINTS      acknowledgement window, PI 7 (default 4)
  --repetitions N      measured rounds; the median counts (default 3)
  --small-count N      transfers of a row of small files (default 1000)
  --warm-up N          small files before the first row of them, uncounted: V8 compiles meanwhile (default 6000)
  --history-rows N     records of the row history (default 1000000)
  --directory PATH     a folder on the disk to measure (default: the temporary folder)
  --database KIND      postgresql (default where PostgreSQL 14 or later is found; a private one, every commit flushed)
                       or embedded
  --setting NAME=VALUE of both apps, as an environment variable; repeatable (STORAGE_SYNCHRONOUS_IO=auto): to compare two runs
  --windows            what sync points cost: durability, interval, window and distance (default --size 256MiB)
  --plot FILE          with --windows: an SVG of it
  --peer HOST:PORT     push to and pull from this PeSIT server, whatever product it is, instead of the rows; files of this side lie
                       in --directory
  --peer-server ID     with --peer: its identifier, PI 4 (default PESIT)
  --peer-partner ID    with --peer: who we are, PI 3 (default BENCH)
  --peer-password TEXT with --peer: PI 5 (default: none)
  --peer-push NAME     with --peer: the file that it receives, PI 12 (default INBOX)
  --peer-pull NAME     with --peer: a file that it sends as often as it is asked, PI 12 (default: none is pulled)`;

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

const settingIn = (text: string): readonly [name: string, value: string] => {
  const [, name, value] = /^([A-Z][A-Z0-9_]*)=(.*)$/s.exec(text) ?? [];
  if (name === undefined || value === undefined) throw new Error(`--setting: expected NAME=VALUE, got "${text}"`);
  return [name, value];
};

const databaseKind = (text: string | undefined): DatabaseKind => {
  if (text === undefined) return process.env[DATABASE_URL] === undefined ? 'embedded' : 'postgresql';
  if (text === 'embedded' || text === 'postgresql') return text;
  throw new Error(`--database: expected postgresql or embedded, got "${text}"`);
};

/** `HOST:PORT`; an IPv6 address in brackets. */
const addressIn = (text: string): Pick<Peer, 'host' | 'port'> => {
  const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^:\s]+)):(\d{1,5})$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  const port = Number(digits);
  if (host === undefined || !(port >= 1 && port <= 65_535)) {
    throw new Error(`--peer: expected HOST:PORT such as pesit.example.org:5000, got "${text}"`);
  }
  return { host, port };
};

const PEER_FLAGS = ['peer-server', 'peer-partner', 'peer-password', 'peer-push', 'peer-pull'] as const;

const peerIn = (values: Readonly<Partial<Record<'peer' | (typeof PEER_FLAGS)[number], string>>>): Peer | undefined => {
  if (values.peer === undefined) {
    const stray = PEER_FLAGS.find((flag) => values[flag] !== undefined);
    if (stray !== undefined) throw new Error(`--${stray} needs --peer: the server that it is about`);
    return undefined;
  }
  return {
    ...addressIn(values.peer),
    server: values['peer-server'] ?? 'PESIT',
    partner: values['peer-partner'] ?? 'BENCH',
    password: values['peer-password'],
    push: values['peer-push'] ?? 'INBOX',
    pull: values['peer-pull'],
  };
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
      peer: { type: 'string' },
      'peer-server': { type: 'string' },
      'peer-partner': { type: 'string' },
      'peer-password': { type: 'string' },
      'peer-push': { type: 'string' },
      'peer-pull': { type: 'string' },
      entity: { type: 'string', default: '32768' },
      interval: { type: 'string', default: '256' },
      window: { type: 'string', default: '4' },
      repetitions: { type: 'string', default: '3' },
      'small-count': { type: 'string', default: '1000' },
      'warm-up': { type: 'string', default: '6000' },
      setting: { type: 'string', multiple: true, default: [] },
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
    peer: peerIn(values),
    entity: positive('entity', values.entity),
    interval: positive('interval', values.interval),
    window: positive('window', values.window),
    repetitions: positive('repetitions', values.repetitions),
    smallCount: positive('small-count', values['small-count']),
    warmUp: positive('warm-up', values['warm-up']),
    historyRows: positive('history-rows', values['history-rows']),
    directory: values.directory,
    settings: Object.fromEntries(values.setting.map(settingIn)),
  };
};

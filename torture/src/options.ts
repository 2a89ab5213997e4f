import { tmpdir } from 'node:os';
import { parseArgs } from 'node:util';

export interface Options {
  readonly rounds: number;
  /** Round k has the seed `seed` + k. */
  readonly seed: number;
  /** Where the JSON report goes; undefined: nowhere. */
  readonly json: string | undefined;
  /** Where the apps live, and the evidence of failed rounds stays. */
  readonly directory: string;
  /** Each app on its embedded database, although there is a PostgreSQL. */
  readonly embedded: boolean;
  /** No faults: what fails then is not for the network to blame. */
  readonly calm: boolean;
  /** Print what passed between the apps. */
  readonly wire: boolean;
  /** Pods of the server app, over one database and one directory. */
  readonly pods: number;
  /** Instead of rounds one sparse file of so many GiB, cut at 95 %; undefined: rounds. */
  readonly giant: number | undefined;
}

export const USAGE = `npm run torture -- [flags]
  --rounds N           transfers, each with its own faults (default 40)
  --seed S             of the first round; the next one has S + 1 (default: the time)
  --json FILE          write the counts as JSON too
  --directory PATH     where the apps live, and where the evidence of a failed round is left (default: the temporary folder)
  --embedded           use the embedded databases, although there is a PostgreSQL
  --calm               the same transfers without any fault
  --pods N             so many server apps over one PostgreSQL and one directory, 1 or 2: each connection goes to another one
  --wire               print what passed between the apps, one line an FPDU
  --giant GIB          instead, push one sparse file of that size, cut the network at 95 %, and show what is sent again`;

const count = (name: string, text: string, low: number): number => {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < low)
    throw new Error(`--${name}: expected a whole number from ${low}, got "${text}"`);
  return value;
};

/** Reads the command line; undefined when only the usage is asked for. */
export const parseOptions = (args: readonly string[]): Options | undefined => {
  const { values } = parseArgs({
    args: [...args],
    options: {
      help: { type: 'boolean', short: 'h' },
      rounds: { type: 'string', default: '40' },
      seed: { type: 'string', default: String(Math.floor(Date.now() / 1000)) },
      json: { type: 'string' },
      directory: { type: 'string', default: tmpdir() },
      embedded: { type: 'boolean', default: false },
      calm: { type: 'boolean', default: false },
      wire: { type: 'boolean', default: false },
      pods: { type: 'string', default: '1' },
      giant: { type: 'string' },
    },
  });
  if (values.help === true) return undefined;
  const pods = count('pods', values.pods, 1);
  if (pods > 2) throw new Error(`--pods: expected 1 or 2, got ${pods}`);
  if (pods === 2 && values.embedded)
    throw new Error('--pods 2 and --embedded exclude each other: pods share PostgreSQL');
  return {
    rounds: count('rounds', values.rounds, 1),
    seed: count('seed', values.seed, 0),
    json: values.json,
    directory: values.directory,
    embedded: values.embedded,
    calm: values.calm,
    wire: values.wire,
    pods,
    giant: values.giant === undefined ? undefined : count('giant', values.giant, 1),
  };
};

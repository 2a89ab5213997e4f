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
  /** Every connection is TLS with certificates on both sides. */
  readonly tls: boolean;
  /** Print what passed between the apps. */
  readonly wire: boolean;
  /** Pods of the server app, over one database and one directory. */
  readonly pods: number;
  /** Instead of rounds of one transfer each: all processes are restarted one by one, by this signal; or PostgreSQL as often. */
  readonly rolling: 'term' | 'kill' | 'database' | undefined;
  /** Which pods of those run the listeners. */
  readonly listeners: 'all' | 'leader';
  /** Transfers while all processes are restarted once. */
  readonly transfers: number;
  /** Instead: so many times the leader of an app is lost. */
  readonly leaderRounds: number | undefined;
  /** Instead: PostgreSQL is away for so many seconds, in the middle of transfers. */
  readonly databaseAway: number | undefined;
  /** Instead: one, two and three processes of the server app are measured. */
  readonly scaleOut: boolean;
  /** Instead: so many files of 4 KB through two processes of the client app, and again with one of them killed. */
  readonly queue: number | undefined;
  /** Instead: so many files to each of three remote servers, beside one that hangs and one that is not there. */
  readonly badServers: number | undefined;
  /** Instead: how long each verb of a listener takes until it is true on all pods. */
  readonly verbs: boolean;
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
  --pods N             so many server apps over one PostgreSQL and one directory, 1 or 2: each connection goes to another one;
                       --rolling and --leader-rounds have 3
  --rolling SIGNAL     instead, three server and two client processes, restarted one by one by SIGNAL, term or kill, while
                       files cross both ways through a balancer; or, as often, PostgreSQL is lost (database): it crashes, is read-only, full, or at another address; --rounds times (default 1)
  --listeners WHO      of such pods: all of them, or the leader alone (default all)
  --transfers N        of each such round (default 300)
  --leader-rounds N    instead, on such processes and a Redis: N times a leader ends, is killed, frozen, or Redis is away
  --database-away S    instead, PostgreSQL is away for S seconds in the middle of 20 transfers each way: it stands still (even seeds), or is
                       stopped (odd ones); --rounds times (default 1)
  --queue N            instead, N files of 4 KB through two client processes, every tenth in order, and again with one of them killed
  --bad-servers N      instead, N files of 4 KB to each of three remote servers, in turn without and with as many to one that hangs
                       and one that nobody reaches
  --verbs              instead, how long each verb that is said of a listener to one pod takes to be true on all
  --scale-out          instead, transfers and MB a second of one, two and three server processes
  --tls                the same transfers over TLS, with certificates on both sides
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
      rounds: { type: 'string' },
      rolling: { type: 'string' },
      transfers: { type: 'string', default: '300' },
      'leader-rounds': { type: 'string' },
      'database-away': { type: 'string' },
      listeners: { type: 'string', default: 'all' },
      queue: { type: 'string' },
      'bad-servers': { type: 'string' },
      verbs: { type: 'boolean', default: false },
      'scale-out': { type: 'boolean', default: false },
      seed: { type: 'string', default: String(Math.floor(Date.now() / 1000)) },
      json: { type: 'string' },
      directory: { type: 'string', default: tmpdir() },
      embedded: { type: 'boolean', default: false },
      calm: { type: 'boolean', default: false },
      tls: { type: 'boolean', default: false },
      wire: { type: 'boolean', default: false },
      pods: { type: 'string' },
      giant: { type: 'string' },
    },
  });
  if (values.help === true) return undefined;
  const { rolling } = values;
  if (rolling !== undefined && rolling !== 'term' && rolling !== 'kill' && rolling !== 'database')
    throw new Error(`--rolling: expected term, kill or database, got "${rolling}"`);
  const { listeners } = values;
  if (listeners !== 'all' && listeners !== 'leader')
    throw new Error(`--listeners: expected all or leader, got "${listeners}"`);
  const leaders = values['leader-rounds'];
  const away = values['database-away'];
  const asked = [rolling, away, leaders, values.queue, values['bad-servers']].some((value) => value !== undefined);
  const ofProcesses = asked || values.verbs || values['scale-out'];
  const pods = count('pods', values.pods ?? (ofProcesses ? '3' : '1'), 1);
  if (ofProcesses ? pods !== 3 : pods > 2)
    throw new Error(`--pods: expected ${ofProcesses ? '3 with --rolling and --leader-rounds' : '1 or 2'}, got ${pods}`);
  if (values.tls && (ofProcesses || values.giant !== undefined))
    throw new Error('--tls is for rounds of transfers: not with --rolling, --leader-rounds or --giant');
  if (pods > 1 && values.embedded) throw new Error('--pods and --embedded exclude each other: pods share PostgreSQL');
  return {
    rounds: count('rounds', values.rounds ?? (rolling === undefined && away === undefined ? '40' : '1'), 1),
    seed: count('seed', values.seed, 0),
    json: values.json,
    directory: values.directory,
    embedded: values.embedded,
    calm: values.calm,
    tls: values.tls,
    wire: values.wire,
    pods,
    rolling,
    listeners,
    transfers: count('transfers', values.transfers, 10),
    leaderRounds: leaders === undefined ? undefined : count('leader-rounds', leaders, 1),
    databaseAway: away === undefined ? undefined : count('database-away', away, 1),
    scaleOut: values['scale-out'],
    queue: values.queue === undefined ? undefined : count('queue', values.queue, 100),
    badServers: values['bad-servers'] === undefined ? undefined : count('bad-servers', values['bad-servers'], 10),
    verbs: values.verbs,
    giant: values.giant === undefined ? undefined : count('giant', values.giant, 1),
  };
};

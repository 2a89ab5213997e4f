/**
 * The torture harness: the two built apps as processes, a faulty network between them, and kills at the worst moments.
 *
 * Every round is one transfer, or two that cross. Its seed decides which way the file goes, how long it is, its record format, the terms of
 * the session, and what goes wrong: the proxy between the apps (`proxy.ts`) knows every entity that passes, so that a fault
 * strikes at byte n or at the nth FPDU of a name: a cut, a reset, a half-close, a stall, an acknowledgement that never
 * arrives, or SIGKILL for the server app, the client app or PostgreSQL. The killed process is started again, nothing else is
 * done for the transfer: both apps must bring it to its end themselves.
 *
 * Then `judge.ts` looks: one delivered file with the right hash, one COMPLETED record on each side that agree with each
 * other, nothing left in staging, and no more data sent again than the window and one flush explain.
 *
 * The apps stay up from round to round, so what a round leaves behind meets the next one. A failed round ends its stage:
 * its directory is kept as evidence, with plan, findings, records and wire beside the logs, and the next round gets fresh
 * apps. `--rounds 1 --seed S` repeats a round.
 *
 * `--rolling`, `--database-away` and `--leader-rounds` (`pods/`) are rounds of processes: three server and two client processes over one PostgreSQL and one
 * Redis, behind a balancer, which end, are killed, or stand still.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Database, type Cluster } from './database.js';
import type { Victim } from './faults.js';
import { resentBytes, statuses, type Fate, type Finding } from './judge.js';
import { GIANT_SILENCE_MS, runGiant } from './giant.js';
import { badServersRound } from './pods/bad-servers.js';
import { databaseAwayRound } from './pods/database-away.js';
import { leaderRound } from './pods/leader-round.js';
import { PodStage, type PodStageOptions } from './pods/pod-stage.js';
import { queueRound } from './pods/queue-round.js';
import { rollingRound, type PodRound } from './pods/rolling-round.js';
import { scaleOut } from './pods/scale-out.js';
import { verbsRound } from './pods/verbs.js';
import { parseOptions, USAGE, type Options } from './options.js';
import { planRound, type RoundPlan } from './plan.js';
import { inWords, runRound, type RoundResult } from './round.js';
import { Stage } from './stage.js';

/** Transfers while PostgreSQL is away. */
const EACH_WAY = 20;
/** After so many failures more of them tell nothing new. */
const MAX_FAILURES = 10;

interface Report extends Record<Fate, number> {
  rounds: number;
  resentBytes: number;
}

/** Processes to end when the harness itself ends. */
let home: string | undefined;
let stage: Stage | undefined;
let pods: PodStage | undefined;
let database: Database | undefined;
/** Directories of failed rounds. */
const evidence: string[] = [];

const abandon = (): void => {
  stage?.abandon();
  pods?.abandon();
  database?.process.retire();
  if (home !== undefined && evidence.length === 0) rmSync(home, { recursive: true, force: true });
};

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    abandon();
    process.exit(signal === 'SIGINT' ? 130 : 143);
  });
}

const keepEvidence = (directory: string, plan: RoundPlan, findings: readonly Finding[], result?: RoundResult): void => {
  const round = { plan, findings, observed: result?.transfers.map(({ observation }) => observation) };
  writeFileSync(join(directory, 'round.json'), `${JSON.stringify(round, null, 2)}\n`);
  if (result !== undefined) writeFileSync(join(directory, 'wire.txt'), `${result.traffic.wire.join('\n')}\n`);
};

const begin = async ({ directory, embedded, pods: count }: Options): Promise<string> => {
  home = mkdtempSync(join(directory, 'pesit-torture-'));
  const cluster = process.env['TORTURE_POSTGRES'];
  if (cluster !== undefined && !embedded) database = await Database.start(JSON.parse(cluster) as Cluster, home);
  if (database === undefined && count > 1) throw new Error('several pods need a PostgreSQL on this machine');
  console.error(`in ${home}, on ${database ? 'PostgreSQL' : 'the embedded databases'}`);
  return home;
};

const end = async (): Promise<void> => {
  await stage?.stop();
  await pods?.stop();
  await database?.process.stop('SIGINT');
  abandon();
};

const runOne = async (options: Options, gibibytes: number): Promise<void> => {
  const directory = join(await begin(options), 'giant');
  stage = await Stage.start(directory, database, 'giant', { silenceMs: GIANT_SILENCE_MS });
  const figures = await runGiant(stage, gibibytes);
  console.log(JSON.stringify(figures, null, 2));
  if (figures.findings.length > 0) evidence.push(directory);
};

/** Prints the round in two lines, and what else there is to say. @returns why it failed; empty: it did not */
const roundOf = async (plan: RoundPlan, on: Stage, report: Report, options: Options): Promise<readonly Finding[]> => {
  console.error(`${String(report.rounds).padStart(5)}  seed ${plan.seed}  ${inWords(plan)}`);
  let result: RoundResult;
  try {
    result = await runRound(on, plan);
  } catch (error) {
    const findings = [{ fate: 'unfinished', text: String(error) }] as const;
    keepEvidence(on.directory, plan, findings);
    return findings;
  }
  const { seconds, traffic, transfers } = result;
  const figures = transfers.map(({ observation }) => {
    const resent = resentBytes(observation);
    report.resentBytes += resent;
    const { attempts, serverRecords } = observation;
    const records = serverRecords.length === 1 ? '' : `, server records ${statuses(serverRecords)}`;
    return `${attempts} attempts, ${resent} B again${records}`;
  });
  const struck = `${traffic.struck} of ${plan.faults.length} faults`;
  console.error(`       ${[...figures, struck, `${seconds.toFixed(1)} s`].join('; ')}`);
  if (options.wire) console.error(traffic.wire.join('\n'));
  const findings = transfers.flatMap((transfer) => transfer.findings);
  if (findings.length > 0) keepEvidence(on.directory, plan, findings, result);
  return findings;
};

/** Rounds of the processes of `pods/`. */
const isOfPods = ({
  rolling,
  databaseAway,
  leaderRounds,
  scaleOut: scales,
  verbs,
  queue,
  badServers,
}: Options): boolean =>
  [rolling, databaseAway, leaderRounds, queue, badServers].some((asked) => asked !== undefined) || scales || verbs;

const startPods = async (directory: string, options: Partial<PodStageOptions>): Promise<PodStage> =>
  PodStage.start(directory, database as Database, { redisUrl: process.env['TORTURE_REDIS'], ...options });

/** One round after the other on a stage of its own, until one finds something. */
const podRounds = async function* (options: Options, directory: string): AsyncGenerator<PodRound> {
  const { listeners, rolling, transfers, leaderRounds, rounds, seed, databaseAway } = options;
  if (options.scaleOut) {
    for (const servers of [1, 2, 3]) {
      pods = await startPods(join(directory, `of-${servers}`), { servers, databaseName: `pods_${servers}` });
      yield await scaleOut(pods, servers);
      await pods.stop();
    }
    return;
  }
  if (databaseAway !== undefined) {
    pods = await startPods(directory, { servers: 1 });
    for (let k = 0; k < rounds; k++) {
      yield await databaseAwayRound(pods, { seed: seed + k, each: EACH_WAY, seconds: databaseAway });
    }
    return;
  }
  if (options.queue !== undefined) {
    // Without Redis: what one process does not take, the other hears of from PostgreSQL.
    const terms = { redisUrl: undefined, servers: 1 };
    for (const kill of [false, true]) {
      const name = kill ? 'killed' : 'queue';
      pods = await startPods(join(directory, name), { ...terms, databaseName: name });
      yield await queueRound(pods, { transfers: options.queue, kill });
      await pods.stop();
    }
    return;
  }
  if (options.badServers !== undefined) {
    pods = await startPods(directory, { servers: 1 });
    yield await badServersRound(pods, options.badServers);
    return;
  }
  pods = await startPods(directory, { listeners });
  if (options.verbs) {
    yield await verbsRound(pods);
    return;
  }
  for (let k = 0; k < (leaderRounds ?? rounds); k++) {
    const plan = { seed: seed + k, signal: rolling ?? 'term', transfers };
    yield await (leaderRounds === undefined ? rollingRound(pods, plan) : leaderRound(pods, seed + k));
  }
};

/** Rounds of processes: what they found, as a report for `--json`. */
const runPods = async (options: Options): Promise<void> => {
  const directory = join(await begin(options), 'pods');
  const findings: string[] = [];
  const figures: unknown[] = [];
  for await (const round of podRounds(options, directory)) {
    const which = typeof round.figures['seed'] === 'number' ? `seed ${round.figures['seed']}  ` : '';
    console.error(`${String(figures.length + 1).padStart(5)}  ${which}${round.words}`);
    for (const finding of round.findings) console.error(`       ${finding}`);
    findings.push(...round.findings);
    figures.push(round.figures);
    if (findings.length > 0) break;
  }
  if (findings.length > 0) {
    console.error(`       evidence: ${directory}`);
    evidence.push(directory);
  }
  console.log(JSON.stringify({ rounds: figures.length, findings, figures }));
  if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify({ findings, figures }, null, 2)}\n`);
};

const run = async (options: Options): Promise<Report> => {
  const report: Report = { rounds: 0, lost: 0, doubled: 0, wrong: 0, unfinished: 0, resentBytes: 0 };
  const directory = await begin(options);
  const apps = ['server', 'client'] as const;
  const victims: readonly Victim[] = database === undefined ? apps : [...apps, ...apps, ...apps, ...apps, 'database'];
  while (report.rounds < options.rounds && evidence.length < MAX_FAILURES) {
    const planned = planRound(options.seed + report.rounds, victims);
    const plan = options.calm ? { ...planned, faults: [] } : planned;
    stage ??= await Stage.start(join(directory, `from-${plan.seed}`), database, `from_${plan.seed}`, options);
    report.rounds++;
    const findings = await roundOf(plan, stage, report, options);
    if (findings.length === 0) continue;
    for (const fate of new Set(findings.map((finding) => finding.fate))) report[fate]++;
    for (const { fate, text } of findings) console.error(`       ${fate.toUpperCase()}: ${text}`);
    console.error(`       evidence: ${stage.directory}`);
    evidence.push(stage.directory);
    await stage.leave();
    stage = undefined;
  }
  return report;
};

try {
  const options = parseOptions(process.argv.slice(2));
  if (options === undefined) {
    console.log(USAGE);
  } else if (isOfPods(options)) {
    await runPods(options);
  } else if (options.giant !== undefined) {
    await runOne(options, options.giant);
  } else {
    const report = await run(options);
    console.log(JSON.stringify(report));
    if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(report, null, 2)}\n`);
  }
  await end();
  if (evidence.length > 0) process.exitCode = 1;
} catch (error) {
  console.error(`torture: ${error instanceof Error ? error.message : String(error)}`);
  abandon();
  process.exitCode = 1;
}

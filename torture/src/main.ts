/**
 * The torture harness: the two built apps as processes, a faulty network between them, and kills at the worst moments.
 *
 * Every round is one transfer. Its seed decides which way the file goes, how long it is, its record format, the terms of
 * the session, and what goes wrong: the proxy between the apps (`proxy.ts`) knows every entity that passes, so that a fault
 * strikes at byte n or at the nth FPDU of a name: a cut, a reset, a half-close, a stall, an acknowledgement that never
 * arrives, or SIGKILL for the server app, the client app or PostgreSQL. What was killed is started again, nothing else is
 * done for the transfer: both apps must bring it to its end themselves.
 *
 * Then `judge.ts` looks: one delivered file with the right hash, one COMPLETED record on each side that agree with each
 * other, nothing left in staging, and no more data sent again than the window and one flush explain.
 *
 * The apps stay up from round to round, so what a round leaves behind meets the next one. A failed round ends its stage:
 * its directory is kept as evidence, with plan, findings, records and wire beside the logs, and the next round gets fresh
 * apps. `--rounds 1 --seed S` repeats a round.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Database, type Cluster } from './database.js';
import type { Victim } from './faults.js';
import { statuses, type Fate } from './judge.js';
import { runGiant } from './giant.js';
import { parseOptions, USAGE, type Options } from './options.js';
import { planRound } from './plan.js';
import { inWords, runRound, type RoundResult } from './round.js';
import { Stage } from './stage.js';

/** After so many failures more of them tell nothing new. */
const MAX_FAILURES = 10;

interface Report extends Record<Fate, number> {
  rounds: number;
  resentBytes: number;
}

let stage: Stage | undefined;
let database: Database | undefined;

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    stage?.abandon();
    database?.process.kill();
    process.exit(signal === 'SIGINT' ? 130 : 143);
  });
}

function keepEvidence(directory: string, result: RoundResult): void {
  const { plan, findings, observation, traffic } = result;
  writeFileSync(join(directory, 'round.json'), `${JSON.stringify({ plan, findings, observation }, null, 2)}\n`);
  writeFileSync(join(directory, 'wire.txt'), `${traffic.wire.join('\n')}\n`);
}

/** @returns where the apps of this run live, and their database when there is one */
async function begin({ directory, embedded }: Options): Promise<string> {
  const home = mkdtempSync(join(directory, 'pesit-torture-'));
  const cluster = process.env['TORTURE_POSTGRES'];
  if (cluster !== undefined && !embedded) database = await Database.start(JSON.parse(cluster) as Cluster, home);
  console.error(`in ${home}, on ${database ? 'PostgreSQL' : 'the embedded databases'}`);
  return home;
}

async function end(home: string, isWell: boolean): Promise<void> {
  await stage?.stop();
  await database?.process.stop('SIGINT');
  if (isWell) rmSync(home, { recursive: true, force: true });
}

async function runOne(options: Options, gibibytes: number): Promise<boolean> {
  const home = await begin(options);
  stage = await Stage.start(join(home, 'giant'), database, 'giant');
  const figures = await runGiant(stage, gibibytes);
  console.log(JSON.stringify(figures, null, 2));
  await end(home, figures.findings.length === 0);
  return figures.findings.length === 0;
}

async function run(options: Options): Promise<{ readonly report: Report; readonly evidence: readonly string[] }> {
  const report: Report = { rounds: 0, lost: 0, doubled: 0, wrong: 0, unfinished: 0, resentBytes: 0 };
  const evidence: string[] = [];
  const home = await begin(options);
  const victims: readonly Victim[] =
    database === undefined ? ['server', 'client'] : [...CLIENT_OR_SERVER, ...CLIENT_OR_SERVER, 'database'];
  console.error(`${options.rounds} rounds from seed ${options.seed}`);
  for (let k = 0; k < options.rounds && evidence.length < MAX_FAILURES; k++) {
    const planned = planRound(options.seed + k, victims);
    const plan = options.calm ? { ...planned, faults: [] } : planned;
    const directory = stage?.directory ?? join(home, `from-${plan.seed}`);
    stage ??= await Stage.start(directory, database, `from_${plan.seed}`);
    const result = await runRound(stage, plan);
    report.rounds++;
    report.resentBytes += result.resentBytes;
    const { seconds, attempts, traffic, findings } = result;
    const figures = `${attempts} attempts, ${traffic.struck} of ${plan.faults.length} faults, ${result.resentBytes} B again, ${seconds.toFixed(1)} s`;
    console.error(`${String(k + 1).padStart(5)}  seed ${plan.seed}  ${inWords(plan)}  (${figures})`);
    if (result.observation.serverRecords.length !== 1)
      console.error(`       server records: ${statuses(result.observation.serverRecords)}`);
    if (options.wire) console.error(traffic.wire.join('\n'));
    if (findings.length === 0) continue;
    for (const fate of new Set(findings.map((finding) => finding.fate))) report[fate]++;
    for (const { fate, text } of findings) console.error(`       ${fate.toUpperCase()}: ${text}`);
    console.error(`       evidence: ${directory}`);
    keepEvidence(directory, result);
    evidence.push(directory);
    stage.abandon();
    stage = undefined;
  }
  await end(home, evidence.length === 0);
  return { report, evidence };
}

const CLIENT_OR_SERVER = ['server', 'client', 'server', 'client'] as const;

try {
  const options = parseOptions(process.argv.slice(2));
  if (options === undefined) {
    console.log(USAGE);
  } else if (options.giant !== undefined) {
    if (!(await runOne(options, options.giant))) process.exitCode = 1;
  } else {
    const { report, evidence } = await run(options);
    console.log(JSON.stringify(report));
    if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(report, null, 2)}\n`);
    if (evidence.length > 0) process.exitCode = 1;
  }
} catch (error) {
  console.error(`torture: ${error instanceof Error ? error.message : String(error)}`);
  stage?.abandon();
  database?.process.kill();
  process.exitCode = 1;
}

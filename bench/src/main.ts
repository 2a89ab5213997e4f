/**
 * The benchmark. Every row of `cases.ts` is measured in rounds: one round that does not count (code gets compiled, the
 * operating system gets its memory), then `--repetitions` that do, of which the medians are reported.
 *
 * The yardstick is a raw copy of the same bytes in the same round on the same medium: two Node processes, file to socket to
 * file, flushed at the end (`raw-peer.ts`). A ratio compares a transfer with the raw copy a few seconds before it, so that
 * a machine that is slow today is slow for both. The files come from the page cache in every row.
 *
 * The node rows start the two built apps as processes, each with a database of its own, configure them through REST, and take the
 * time from the request for a transfer to its end as the client app reports it: with flushes, checks, hash and history.
 * CPU and peak memory of the apps come from /proc, so those rows need Linux.
 *
 * A variation is a transfer that differs from the row that it names as plain in one thing (CRC, records of 80 bytes, compression),
 * and is compared with it in the same round: MB/s of the file. The rows of the codec move bytes from one end of the protocol engine
 * to the other in this process.
 *
 * The row `history` starts the server app alone, makes a million records in its database, and asks for every kind of list.
 *
 * The row `console` opens the console in Chromium before the same records, and times what an operator does there.
 *
 * With `--peer` the client app alone runs, against a server of whatever product (`peer.ts`).
 *
 * The row `license-gate` moves no file: its transfers are requests, and a second divided by them is what the gate costs each.
 */
import { existsSync, writeFileSync } from 'node:fs';
import { select, STAGES, type Case, type StageName, type StageOptions } from './cases.js';
import { rate, summarize, type CaseResult, type Measurement } from './figures.js';
import { describeMachine } from './machine.js';
import { parseOptions, USAGE, type Options, type Peer } from './options.js';
import { formatMachine, formatTable, type Report } from './report.js';
import { PeerBench } from './peer.js';
import { plotWindows } from './plot.js';
import { Stage } from './stage.js';
import { formatWindows, measureWindows, type WindowResult } from './windows.js';

const MEMORY = '/dev/shm';

const open = new Set<Pick<Stage, 'abandon'>>();

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    for (const stage of open) stage.abandon();
    process.exit(signal === 'SIGINT' ? 130 : 143);
  });
}

/** Runs the rows of one stage round by round. */
const runStage = async (
  name: StageName,
  rows: readonly Case[],
  folder: string,
  options: Options,
): Promise<CaseResult[]> => {
  const how: StageOptions = STAGES[name];
  const settings = { ...options.settings, ...how.settings };
  const stage = new Stage(folder, { ...how, settings }, { ...options, database: how.database ?? options.database });
  open.add(stage);
  const runs = new Map<Case, Measurement[]>(rows.map((row) => [row, []]));
  try {
    for (let round = 0; round <= options.repetitions; round++) {
      for (const row of rows) {
        const measurement = await row.run(stage);
        const figure =
          measurement.transfers > 1
            ? `${(measurement.transfers / measurement.seconds).toFixed(1)} transfers/s`
            : `${rate(measurement).toFixed(0)} MB/s`;
        console.error(`${row.name}: ${figure}${round === 0 ? ' (warm-up)' : ''}`);
        if (round > 0) runs.get(row)!.push(measurement);
      }
    }
  } finally {
    await stage.close();
    open.delete(stage);
  }
  const yardstick = rows.find(({ raw }) => raw === 'yardstick');
  const hashed = rows.find(({ raw }) => raw === 'hashed');
  return rows.map((row) => {
    const plain = rows.find(({ name: other }) => other === row.plain);
    return summarize(
      row.name,
      runs.get(row)!,
      row.raw === 'compared' && yardstick !== undefined ? runs.get(yardstick)! : [],
      plain === undefined ? [] : runs.get(plain)!,
      row.raw === 'compared' && hashed !== undefined ? runs.get(hashed)! : [],
    );
  });
};

const mediaOf = ({ directory }: Options): { readonly disk: string; readonly memory?: string } => ({
  disk: directory,
  ...(existsSync(MEMORY) ? { memory: MEMORY } : {}),
});

const runWindows = async (options: Options): Promise<void> => {
  const media = mediaOf(options);
  const machine = describeMachine(media);
  console.error(`${formatMachine(machine)}, database ${options.database}`);
  const windows: WindowResult[] = [];
  for (const [medium, folder] of Object.entries(media))
    windows.push(...(await measureWindows(medium, folder, options)));
  console.log(`\n${formatWindows(windows)}`);
  if (options.plot !== undefined) writeFileSync(options.plot, plotWindows(windows));
  if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify({ machine, windows }, null, 2)}\n`);
};

const runPeer = async (peer: Peer, options: Options): Promise<Report> => {
  const machine = describeMachine({ disk: options.directory });
  console.error(`${formatMachine(machine)}, database ${options.database}, peer ${peer.host}:${peer.port}`);
  const bench = new PeerBench(options.directory, options, peer);
  open.add(bench);
  try {
    const cases = await bench.run((text) => {
      console.error(text);
    });
    return { machine, cases };
  } finally {
    await bench.close();
    open.delete(bench);
  }
};

const run = async (options: Options): Promise<Report> => {
  const media = mediaOf(options);
  const machine = describeMachine(media);
  console.error(`${formatMachine(machine)}, database ${options.database}`);
  const asked = select(options.only);
  for (const { name, missing } of asked) {
    const why = missing?.();
    if (why !== undefined) console.error(`left out: ${name}: ${why}`);
  }
  const rows = asked.filter(({ missing }) => missing?.() === undefined);
  const cases: CaseResult[] = [];
  for (const name of Object.keys(STAGES) as StageName[]) {
    const mine = rows.filter(({ stage }) => stage === name);
    if (mine.length === 0) continue;
    const folder = media[STAGES[name].medium];
    if (folder === undefined) console.error(`left out, no ${MEMORY}: ${mine.map((row) => row.name).join(', ')}`);
    else cases.push(...(await runStage(name, mine, folder, options)));
  }
  return { machine, cases };
};

try {
  const options = parseOptions(process.argv.slice(2));
  if (options === undefined) {
    console.log(USAGE);
  } else if (options.windows) {
    await runWindows(options);
  } else {
    const report = await (options.peer === undefined ? run(options) : runPeer(options.peer, options));
    console.log(`\n${formatTable(report.cases)}`);
    if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(report, null, 2)}\n`);
  }
} catch (error) {
  console.error(`bench: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}

/**
 * `npm run fuzz [-- <flags>]`: installs and builds what is missing, then runs the fuzzer of torture/ (flags: `-- --help`).
 * `npm run fuzz -- --rest [--runs N] [--seed S]`: hostile requests to every operation of both REST interfaces instead, more of
 * them than `npm test` sends (default 20,000 to each app, and the time as the seed).
 */
import { parseArgs } from 'node:util';
import { main, requireNode, run } from './lib/process.mjs';
import { ensureBuilt, ensureInstalled } from './lib/workspace.mjs';

/** They end by their number, and nobody waits for this. */
const DAY_MS = 86_400_000;

const rest = () => {
  const text = { type: 'string' };
  const { values } = parseArgs({ options: { rest: { type: 'boolean' }, runs: text, seed: text } });
  const { runs = '20000', seed = String(Date.now() % 2_147_483_647) } = values;
  console.log(`${runs} requests to each app, seed ${seed}`);
  const tests = ['--selectProjects', 'server', 'client', '--maxWorkers=2', `--testTimeout=${DAY_MS}`, 'hostile'];
  return run(process.execPath, ['scripts/test.mjs', ...tests], {
    env: { ...process.env, PESIT_HOSTILE_RUNS: runs, PESIT_HOSTILE_SEED: seed },
  });
};

await main(async () => {
  requireNode();
  if (process.argv.includes('--rest')) return rest();
  await ensureInstalled();
  await ensureBuilt(['torture']);
  return run(process.execPath, ['torture/dist/fuzz/main.js', ...process.argv.slice(2)]);
});

/** `npm run show [-- --short]`: what a cluster has to hold (docs/scaling.md, Shown), tried with real processes; prints the figures. */
import { parseArgs } from 'node:util';
import { Failure, main, requireNode, run } from './lib/process.mjs';

const USAGE = `npm run show [-- flags]
  --short       fewer rounds: some minutes, for a machine that others load
  --only LIST   these alone, separated by commas
  --seed S      of the first round of each (default 1)

Three server and two client processes over a PostgreSQL and a Redis of their own, behind a balancer; as many as each needs:
`;

/** In this order. `rounds`: whole, and short. */
const SHOWN = {
  verbs: { what: 'each verb of a listener, said to one pod, is true on all', flags: () => ['--verbs'] },
  leader: {
    what: 'the leader ends, is killed or stands still, or Redis is away for 30 s; never two lead',
    rounds: [50, 4],
    flags: (rounds) => ['--leader-rounds', rounds],
  },
  standby: {
    what: 'listeners on the leader alone: who leads is killed, the next one takes them within 12 s',
    rounds: [5, 1],
    flags: (rounds) => ['--rolling', 'kill', '--listeners', 'leader', '--rounds', rounds, '--transfers', '60'],
  },
  database: {
    what: 'PostgreSQL crashes, is read-only, full, or at another address',
    rounds: [5, 1],
    flags: (rounds) => ['--rolling', 'database', '--rounds', rounds, '--transfers', '60'],
  },
  rolling: {
    what: 'each process is replaced in peace during 300 transfers',
    rounds: [2, 1],
    flags: (rounds, isShort) => ['--rolling', 'term', '--rounds', rounds, '--transfers', isShort ? '60' : '300'],
  },
  killing: {
    what: 'the same with SIGKILL',
    rounds: [2, 1],
    flags: (rounds, isShort) => ['--rolling', 'kill', '--rounds', rounds, '--transfers', isShort ? '60' : '300'],
  },
  'rolling-rounds': {
    what: 'the same in peace, many rounds of few transfers',
    rounds: [50, 1],
    flags: (rounds) => ['--rolling', 'term', '--rounds', rounds, '--transfers', '20'],
  },
  'killing-rounds': {
    what: 'the same with SIGKILL',
    rounds: [50, 1],
    flags: (rounds) => ['--rolling', 'kill', '--rounds', rounds, '--transfers', '20'],
  },
  'scale-out': {
    what: 'transfers and MB a second of one, two and three server processes',
    flags: () => ['--scale-out'],
  },
};

await main(async () => {
  requireNode();
  const { values } = parseArgs({
    options: {
      help: { type: 'boolean', short: 'h' },
      short: { type: 'boolean', default: false },
      only: { type: 'string' },
      seed: { type: 'string', default: '1' },
    },
  });
  const names = Object.keys(SHOWN);
  if (values.help) {
    console.log(USAGE + names.map((name) => `  ${name.padEnd(16)}${SHOWN[name].what}`).join('\n'));
    return 0;
  }
  const wanted = values.only?.split(',') ?? names;
  const unknown = wanted.filter((name) => !names.includes(name));
  if (unknown.length > 0) throw new Failure(`--only: expected some of ${names.join(', ')}, got ${unknown.join(', ')}`);
  const failed = [];
  for (const name of wanted) {
    const { what, rounds, flags } = SHOWN[name];
    const count = rounds === undefined ? undefined : String(rounds[values.short ? 1 : 0]);
    console.log(`\n${name}: ${what}`);
    const began = performance.now();
    const code = await run(process.execPath, [
      'scripts/torture.mjs',
      ...flags(count, values.short),
      '--seed',
      values.seed,
    ]);
    if (code !== 0) failed.push(name);
    console.log(
      `${name}: ${code === 0 ? 'holds' : 'does not hold'}, ${((performance.now() - began) / 1000).toFixed(0)} s`,
    );
  }
  console.log(failed.length === 0 ? '\nall hold' : `\nnot: ${failed.join(', ')}`);
  return failed.length === 0 ? 0 : 1;
});

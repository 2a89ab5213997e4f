/** `npm run bench [-- <flags>]`: installs and builds what is missing, then runs bench/ (flags: `-- --help`). */
import { buildConsole } from '../packages/console/build/site.mjs';
import { findChromium } from './lib/chromium.mjs';
import { main, requireNode, run } from './lib/process.mjs';
import { DURABLE, findPostgres, startPostgres } from './lib/postgres.mjs';
import { ensureBuilt, ensureInstalled } from './lib/workspace.mjs';

await main(async () => {
  requireNode();
  await ensureInstalled();
  await ensureBuilt(['apps/server', 'apps/client', 'bench']);
  await buildConsole();
  const flags = process.argv.slice(2);
  const env = { ...process.env };
  const postgres = flags.includes('--help') || flags.includes('-h') ? undefined : findPostgres();
  if (postgres !== undefined) env.BENCH_DATABASE_URL = await startPostgres(postgres, DURABLE);
  const chromium = findChromium();
  if (chromium !== undefined) env.BENCH_CHROMIUM = chromium;
  return run(process.execPath, ['bench/dist/main.js', ...flags], { env });
});

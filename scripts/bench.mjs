/** `npm run bench [-- <flags>]`: installs and builds what is missing, then runs bench/ (flags: `-- --help`). */
import { main, requireNode, run } from './lib/process.mjs';
import { ensureBuilt, ensureInstalled } from './lib/workspace.mjs';

await main(async () => {
  requireNode();
  await ensureInstalled();
  await ensureBuilt(['apps/server', 'apps/client', 'bench']);
  return run(process.execPath, ['bench/dist/main.js', ...process.argv.slice(2)]);
});

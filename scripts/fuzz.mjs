/** `npm run fuzz [-- <flags>]`: installs and builds what is missing, then runs the fuzzer of torture/ (flags: `-- --help`). */
import { main, requireNode, run } from './lib/process.mjs';
import { ensureBuilt, ensureInstalled } from './lib/workspace.mjs';

await main(async () => {
  requireNode();
  await ensureInstalled();
  await ensureBuilt(['torture']);
  return run(process.execPath, ['torture/dist/fuzz/main.js', ...process.argv.slice(2)]);
});

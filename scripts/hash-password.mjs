/** `npm run hash-password`: prints the hash of a password, typed or from a pipe, for a line of `admin.users` (docs/rest.md). */
import { main, requireNode, run } from './lib/process.mjs';
import { ensureBuilt, ensureInstalled } from './lib/workspace.mjs';

await main(async () => {
  requireNode();
  await ensureInstalled();
  await ensureBuilt(['packages/service']);
  const program = new URL('../packages/service/dist/secrets/hash-program.js', import.meta.url).pathname;
  return run(process.execPath, [program]);
});

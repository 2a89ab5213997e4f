/** `npm run check-storage -- DIR`: tries what a node needs of the file system of DIR (docs/operations.md). Exit code 1 when something fails. */
import { main, requireNode, run } from './lib/process.mjs';
import { ensureBuilt, ensureInstalled } from './lib/workspace.mjs';

await main(async () => {
  requireNode();
  await ensureInstalled();
  await ensureBuilt(['packages/storage']);
  // The directory is relative to where the command was typed, not to the clone.
  const cwd = process.env.INIT_CWD ?? process.cwd();
  const program = new URL('../packages/storage/dist/check-program.js', import.meta.url).pathname;
  return run(process.execPath, [program, ...process.argv.slice(2)], { cwd });
});

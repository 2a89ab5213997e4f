/** `npm run pesit -- COMMAND …`: the command line of this clone; installs and builds what it needs. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { main, requireNode, root } from './lib/process.mjs';
import { ensureBuilt, ensureInstalled } from './lib/workspace.mjs';

await main(async () => {
  requireNode();
  await ensureInstalled();
  await ensureBuilt(['packages/cli']);
  const program = join(root, 'packages/cli/dist/main.js');
  // npm changes the directory; relative paths are meant from where the user is.
  const cwd = process.env.INIT_CWD ?? process.cwd();
  const child = spawn(process.execPath, [program, ...process.argv.slice(2)], { cwd, stdio: 'inherit' });
  return new Promise((resolve) => {
    child.once('close', (code) => resolve(code ?? 1));
  });
});

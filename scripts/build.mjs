/** `npm run build`: compiles every workspace, then types and files of the console. */
import { main, requireNode, Failure, run } from './lib/process.mjs';
import { buildConsole } from '../packages/console/build/site.mjs';
import { ensureInstalled } from './lib/workspace.mjs';

await main(async () => {
  requireNode();
  await ensureInstalled();
  const code = await run(process.execPath, ['node_modules/typescript/bin/tsc', '-b']);
  if (code !== 0) throw new Failure('The build failed: see the lines above');
  await buildConsole({ check: true });
  return 0;
});

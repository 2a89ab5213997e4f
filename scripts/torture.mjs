/** `npm run torture [-- <flags>]`: installs and builds what is missing, then runs torture/ (flags: `-- --help`). */
import { main, requireNode, run } from './lib/process.mjs';
import { createCluster, findPostgres } from './lib/postgres.mjs';
import { findRedis, startRedis } from './lib/redis.mjs';
import { ensureBuilt, ensureInstalled } from './lib/workspace.mjs';

await main(async () => {
  requireNode();
  await ensureInstalled();
  await ensureBuilt(['apps/server', 'apps/client', 'torture']);
  const postgres = findPostgres();
  const env = { ...process.env };
  if (postgres !== undefined) {
    // It is killed with the rest: what is committed must be out of its own memory, the machine itself stays up.
    const { as, ...cluster } = await createCluster(postgres, { synchronous_commit: 'on', full_page_writes: 'on' });
    env.TORTURE_POSTGRES = JSON.stringify({ ...cluster, ...as });
  }
  const redis = findRedis();
  if (redis !== undefined) env.TORTURE_REDIS = await startRedis(redis);
  return run(process.execPath, ['torture/dist/main.js', ...process.argv.slice(2)], { env });
});

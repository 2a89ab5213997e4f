/**
 * `npm run audit-verify -- server|client [--known=ID:HASH] [--key=value …]`: looks whether the audit log of one app is whole (docs/security.md), with
 * the configuration that the app has: its environment, its file, its flags. Safe beside running services.
 */
import { main, requireNode } from './lib/process.mjs';
import { ensureBuilt, ensureInstalled } from './lib/workspace.mjs';

const USAGE = `npm run audit-verify -- server|client [--known=ID:HASH] [--key=value …]

Reads every entry of the audit log, and says which are missing, changed, or not chained to the one before.
Give it the environment and the flags that the app is started with. --known: an entry as an earlier run printed it.
Exit code 1 when something is wrong.`;

await main(async () => {
  requireNode();
  const [app, ...argv] = process.argv.slice(2);
  if (process.argv.includes('--help') || !['server', 'client'].includes(app)) {
    console.log(USAGE);
    return process.argv.includes('--help') ? 0 : 1;
  }
  await ensureInstalled();
  await ensureBuilt(['packages/service']);
  const { auditVerify } = await import('@pesit-node/service');
  return auditVerify({ app, env: process.env, argv, cwd: process.cwd() }, console.log);
});

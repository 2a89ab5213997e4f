/**
 * `npm run rotate-secrets -- server|client [--key=value …]`: finishes the rotation of `secrets.key` for one app (docs/secrets.md), with the
 * configuration that the app has: its environment, its file, its flags. Safe beside running services; may be broken off.
 */
import { rotateSecrets } from '../deploy/rotation.mjs';
import { main, requireNode } from './lib/process.mjs';
import { ensureBuilt, ensureInstalled } from './lib/workspace.mjs';

const USAGE = `npm run rotate-secrets -- server|client [--key=value …]

Seals anew with the first key of secrets.key what an older one has sealed (private keys of keystores; client app: passwords for remote servers, too),
and counts what still needs an older key. Give it the environment and the flags that the app is started with.
Exit code 1 when something is left that cannot be opened.`;

await main(async () => {
  requireNode();
  const [app, ...argv] = process.argv.slice(2);
  if (process.argv.includes('--help') || !['server', 'client'].includes(app)) {
    console.log(USAGE);
    return process.argv.includes('--help') ? 0 : 1;
  }
  await ensureInstalled();
  await ensureBuilt([`apps/${app}`]);
  const { rotateClientSecrets, rotateServerSecrets } = await import(
    new URL(`../apps/${app}/dist/index.js`, import.meta.url).href
  );
  return rotateSecrets(app, app === 'client' ? rotateClientSecrets : rotateServerSecrets, argv);
});

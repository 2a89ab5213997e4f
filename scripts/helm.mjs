/** `npm run helm -- build|manifests`: the helm that checks the chart, and what is made with it. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Failure, main, requireNode, root } from './lib/process.mjs';
import { ensureInstalled } from './lib/workspace.mjs';

const USAGE = `npm run helm -- <command>
  build       builds helm with Go where the machine has none, and keeps it in the cache of this user
  manifests   writes deploy/kubernetes/pesit-node.yaml`;

await main(async () => {
  requireNode();
  const [command] = process.argv.slice(2);
  if (command !== 'build' && command !== 'manifests') throw new Failure(USAGE);
  await ensureInstalled();
  const { buildHelm, findHelm, plainManifests } = await import('./lib/helm.mjs');
  if (command === 'build') {
    const began = performance.now();
    if (findHelm() === undefined) console.log('Building helm …');
    const fault = findHelm() === undefined ? buildHelm() : undefined;
    // The tests of the chart are skipped without it, and say so: nothing else needs it.
    const took = `${((performance.now() - began) / 1000).toFixed(0)} s`;
    console.log(fault === undefined ? `helm: ${findHelm()} (${took})` : `The chart is not checked: ${fault}.`);
    return 0;
  }
  const helm = findHelm();
  if (helm === undefined) throw new Failure('helm is not on this machine: run npm run helm -- build');
  writeFileSync(join(root, 'deploy/kubernetes/pesit-node.yaml'), plainManifests(helm));
  console.log('wrote deploy/kubernetes/pesit-node.yaml');
  return 0;
});

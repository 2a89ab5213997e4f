/** helm, as the machine has it or as Go builds it: kept outside the clone, so that it is built once. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { parseAllDocuments, stringify } from 'yaml';
import { Failure, findProgram, root } from './process.mjs';

const VERSION = 'v3.18.6';
/** A busy machine builds it in three minutes; nobody waits for it longer than that. */
const BUILD_WITHIN_MS = 225_000;
/** Version of Kubernetes that the manifests are made for: no cluster is asked. */
const KUBERNETES = '1.30.0';

export const chart = join(root, 'helm/pesit-node');

const cache = () => join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'pesit-node', `helm-${VERSION}`);

/** The helm of this machine or of an earlier build, or undefined. */
export const findHelm = () => findProgram('helm') ?? findProgram('helm', [cache()]);

const findGo = () => findProgram('go') ?? findProgram('go', ['/usr/local/go/bin']);

/** Builds helm where there is a Go. Returns why not, or undefined. */
export function buildHelm() {
  const go = findGo();
  if (go === undefined) return 'neither helm nor Go is on this machine';
  mkdirSync(join(cache(), '..'), { recursive: true });
  // Its name last: what another run finds there is whole.
  const draft = mkdtempSync(`${cache()}-`);
  try {
    const { status, signal, stderr } = spawnSync(go, ['install', `helm.sh/helm/v3/cmd/helm@${VERSION}`], {
      env: { ...process.env, GOBIN: draft },
      encoding: 'utf8',
      timeout: BUILD_WITHIN_MS,
    });
    if (signal !== null) return `Go has not built helm ${VERSION} in ${BUILD_WITHIN_MS / 1000} s`;
    if (status !== 0) return `Go cannot build helm ${VERSION}: ${stderr.trim().split('\n').at(-1)}`;
    rmSync(cache(), { recursive: true, force: true });
    renameSync(draft, cache());
    return undefined;
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

/** Runs helm. @throws Failure with its words */
export function runHelm(helm, args) {
  const { status, stdout, stderr } = spawnSync(helm, args, { encoding: 'utf8', maxBuffer: 32 * 1024 * 1024 });
  if (status !== 0) throw new Failure(`helm ${args[0]}: ${stderr.trim()}${stdout.trim()}`);
  return stdout;
}

/** The objects that the chart makes of these arguments of helm. */
export function render(helm, release, args) {
  const text = runHelm(helm, ['template', release, chart, '--kube-version', KUBERNETES, ...args]);
  return parseAllDocuments(text)
    .map((document) => document.toJS())
    .filter((object) => object !== null);
}

const MANIFESTS_HEAD = `# Both apps without helm, made of the chart by npm run helm -- manifests. deploy/kubernetes/README.md says what must be there first.
`;

/** deploy/kubernetes/pesit-node.yaml: the chart with its Secrets from elsewhere, without what only helm understands. */
export function plainManifests(helm) {
  const objects = render(helm, 'pesit', ['-f', join(root, 'deploy/kubernetes/values.yaml')]);
  const plain = objects.filter(({ metadata }) => metadata.annotations?.['helm.sh/hook'] === undefined);
  for (const { metadata, spec } of plain) {
    for (const labels of [metadata.labels, spec?.template?.metadata.labels]) {
      for (const name of ['helm.sh/chart', 'app.kubernetes.io/managed-by']) if (labels) delete labels[name];
    }
    if (metadata.annotations) delete metadata.annotations['helm.sh/resource-policy'];
    if (metadata.annotations && Object.keys(metadata.annotations).length === 0) delete metadata.annotations;
  }
  return MANIFESTS_HEAD + plain.map((object) => `---\n${stringify(object, { lineWidth: 0 })}`).join('');
}

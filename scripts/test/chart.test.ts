/** The chart beside what helm/pesit-node/ci shows: what it refuses, the Secrets that it keeps, its alerts, what is made of it. */
import { execFile, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { describe, expect, jest, test } from '@jest/globals';
import { CONFIG_KEYS } from '@pesit-node/service';
import { parse, parseAllDocuments } from 'yaml';

interface Secret {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly data: Readonly<Record<string, string>>;
}
interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly for: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string };
}
interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
}
interface Chart {
  readonly findHelm: () => string | undefined;
  readonly render: (helm: string, release: string, args: readonly string[]) => readonly Manifest[];
  readonly plainManifests: (helm: string) => string;
}
const root = fileURLToPath(new URL('../..', import.meta.url));
const library = new URL('../lib/helm.mjs', import.meta.url).href;
const { findHelm, plainManifests, render } = (await import(library)) as Chart;
const helm = findHelm() ?? '';
const chart = join(root, 'helm/pesit-node');
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const REQUIRED = ['--kube-version', '1.30.0', '--set', 'database.url=postgresql://pesit@db:5432/pesit'];

// A test starts helm several times, each as long as a busy machine makes it.
jest.setTimeout(180_000);

const suite = helm === '' ? describe.skip : describe;

suite('the chart (left out without helm: npm run helm -- build)', () => {
  test('with cluster.listeners: leader the server app is replaced as a whole: its other pods are never ready', () => {
    const flags = [...REQUIRED, '--set', 'server.config.cluster\\.listeners=leader'];
    const strategies = render(helm, 'pesit', flags)
      .filter(({ kind }) => kind === 'Deployment')
      .map(
        (one) =>
          (one as unknown as { readonly spec: { readonly strategy: { readonly type: string } } }).spec.strategy.type,
      );
    expect(strategies).toEqual(['Recreate', 'RollingUpdate']);
  });

  test('what is declared is in the file of the app that takes it, and a Secret holds the passwords', () => {
    const items = [
      'partners[0].partnerId=ACME',
      'partners[0].passwordFile=/etc/pesit/passwords/ACME',
      'files[0].fileId=INBOX',
      'servers[0].serverId=NODE1',
      'passwordsSecret=pesit-passwords',
    ].map((item) => `declared.${item}`);
    const made = render(helm, 'pesit', [...REQUIRED, '--set', items.join(',')]);
    const files = made.filter(({ kind }) => kind === 'ConfigMap') as unknown as readonly Secret[];
    const listsOf = (app: string): unknown => {
      const text = files.find(({ metadata }) => metadata.name.endsWith(`-${app}`))?.data['pesit.yaml'] ?? '';
      const { partners, files: virtualFiles, servers } = parse(text) as Readonly<Record<string, unknown>>;
      return { partners, files: virtualFiles, servers };
    };
    const servers = [{ serverId: 'NODE1' }];
    expect(listsOf('server')).toEqual({
      partners: [{ partnerId: 'ACME', passwordFile: '/etc/pesit/passwords/ACME' }],
      files: [{ fileId: 'INBOX' }],
      servers,
    });
    expect(listsOf('client')).toEqual({ servers });
    expect(JSON.stringify(made).match(/"secretName":"pesit-passwords"/g)).toHaveLength(2);
    expect(() => render(helm, 'pesit', [...REQUIRED, '--set', 'declared.partners[0].password=x'])).toThrow(
      /declared\.partners\[0\]: password is a secret, and a ConfigMap is none/,
    );
  });

  test.each([
    [
      'https.existingSecret=rest-tls',
      { 'certificate-file': '/etc/pesit/tls/tls.crt', 'key-file': '/etc/pesit/tls/tls.key' },
    ],
    ['https.keystoreName=rest', { 'keystore-name': 'rest' }],
  ])('with https.enabled and %s probes, Services and scraping speak HTTPS', (set, keys) => {
    const flags = [...REQUIRED, '--set', `https.enabled=true,serviceMonitor.enabled=true,${set}`];
    const made = render(helm, 'pesit', flags);
    const text = JSON.stringify(made);
    expect(text.match(/"scheme":"HTTPS"/g)).toHaveLength(6);
    expect(text.match(/"appProtocol":"https"/g)).toHaveLength(2);
    expect(text).toContain('"scheme":"https","tlsConfig":{"insecureSkipVerify":true}');
    expect(text).not.toMatch(/http:\/\/pesit/);
    expect(text.includes('"secretName":"rest-tls"')).toBe(set.includes('rest-tls'));
    for (const { data } of made.filter(({ kind }) => kind === 'ConfigMap') as unknown as readonly Secret[]) {
      const config = parse(data['pesit.yaml'] ?? '') as Record<string, unknown>;
      const expected = Object.entries(keys).map(([name, value]) => [`server.ssl.${name}`, value]);
      expect(config).toMatchObject({ 'server.ssl.enabled': true, ...Object.fromEntries(expected) });
    }
  });

  test.each([
    ['https.enabled=true', 'https: existingSecret or keystoreName is required, and not both'],
    ['https.enabled=true,https.existingSecret=a,https.keystoreName=b', 'https: existingSecret or keystoreName'],
    ['database.url=', 'database.url is required'],
    ['database.url=postgresql://pesit:secret@db:5432/pesit', 'database/url'],
    ['config.admin\\.password=x', 'admin.password is a secret, and a ConfigMap is none'],
    ['config.server\\.port=9000', 'server.port is given by the chart'],
    ['server.config.transfer.sync-window=8', 'not written as a key of docs/configuration.md|got object'],
    ['server.persistence.accessMode=ReadWriteOnce', 'server: 2 pods need a volume of access mode ReadWriteMany'],
    ['client.ingress.enabled=true', 'client.ingress: host and tlsSecret are required'],
    ['server.listeners[0].name=a,server.listeners[0].port=8080', 'port 8080 is taken twice'],
    ['server.image.tag=latest', 'server/image/tag'],
    ['replicas=3', "additional properties 'replicas' not allowed"],
    ['server.autoscaling.enabled=true,server.autoscaling.cpu=0', 'cpu or sessions must be greater than 0'],
  ])('--set %s is refused with words', (setting, words) => {
    const args = ['template', 'x', chart, ...REQUIRED, '--set', setting];
    const { status, stderr } = spawnSync(helm, args, { encoding: 'utf8' });
    expect(stderr.replaceAll("'", '').replaceAll('.', '/')).toMatch(
      new RegExp(words.replaceAll("'", '').replaceAll('.', '/')),
    );
    expect(status).toBe(1);
  });

  test('every key that is secret is refused in a ConfigMap', () => {
    const secret = Object.entries<{ readonly secret?: boolean }>(CONFIG_KEYS).filter(([, key]) => key.secret === true);
    expect(secret.length).toBeGreaterThan(4);
    for (const [key] of secret) {
      const setting = `config.${key.replaceAll('.', '\\.')}=x`;
      const { stderr } = spawnSync(helm, ['template', 'x', chart, ...REQUIRED, '--set', setting], { encoding: 'utf8' });
      expect(stderr).toContain(`config: ${key} is a secret, and a ConfigMap is none`);
    }
  });

  test('an upgrade reads back the password and the key that an installation made', async () => {
    const made = new Map<string, Secret>();
    // As much of the API as helm asks for: discovery, and Secrets by name.
    const api = createServer((request, response) => {
      const path = request.url?.split('?')[0] ?? '';
      const secret = made.get(path.split('/').at(-1)!);
      const answers: Readonly<Record<string, unknown>> = {
        '/version': { major: '1', minor: '30', gitVersion: 'v1.30.0' },
        '/api': { kind: 'APIVersions', versions: ['v1'] },
        '/apis': { kind: 'APIGroupList', apiVersion: 'v1', groups: [] },
        '/api/v1': {
          kind: 'APIResourceList',
          groupVersion: 'v1',
          resources: [{ name: 'secrets', singularName: 'secret', namespaced: true, kind: 'Secret', verbs: ['get'] }],
        },
      };
      const found = answers[path] ?? (path.includes('/secrets/') ? secret : undefined);
      response.writeHead(found === undefined ? 404 : 200, { 'content-type': 'application/json' });
      response.end(
        JSON.stringify(found ?? { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'NotFound', code: 404 }),
      );
    });
    api.listen(0, '127.0.0.1');
    await once(api, 'listening');
    const home = mkdtempSync(join(tmpdir(), 'pesit-kube-'));
    try {
      const server = `http://127.0.0.1:${(api.address() as AddressInfo).port}`;
      const kubeconfig = join(home, 'config');
      writeFileSync(
        kubeconfig,
        JSON.stringify({
          apiVersion: 'v1',
          kind: 'Config',
          clusters: [{ name: 'c', cluster: { server } }],
          contexts: [{ name: 'c', context: { cluster: 'c', user: 'u', namespace: 'default' } }],
          users: [{ name: 'u', user: {} }],
          'current-context': 'c',
        }),
      );
      const secrets = async (): Promise<readonly Secret[]> => {
        const args = ['template', 'x', chart, '--dry-run=server', '--disable-openapi-validation', ...REQUIRED];
        const { stdout } = await promisify(execFile)(helm, args, {
          env: { ...process.env, KUBECONFIG: kubeconfig, HOME: home },
        });
        const objects = parseAllDocuments(stdout).map((document) => document.toJS() as Secret);
        return objects.filter((object) => (object as Secret | null)?.kind === 'Secret');
      };
      const first = await secrets();
      expect(first.map(({ metadata }) => metadata.name)).toEqual(['x-pesit-node-admin', 'x-pesit-node-secrets-key']);
      expect(await secrets()).not.toEqual(first);
      const key = Buffer.from(first[1]!.data['secrets.key']!, 'base64').toString();
      expect(Buffer.from(key, 'base64')).toHaveLength(32);

      for (const secret of first) made.set(secret.metadata.name, { ...secret, ...{ apiVersion: 'v1' } });
      expect(await secrets()).toEqual(first);
    } finally {
      api.close();
      rmSync(home, { recursive: true, force: true });
    }
  });

  test('deploy/kubernetes/pesit-node.yaml is what npm run helm -- manifests writes', () => {
    const text = read('deploy/kubernetes/pesit-node.yaml');
    expect(text).toBe(plainManifests(helm));
    expect(text).not.toMatch(/helm\.sh|kind: Secret\n/);
  });

  test('no object has a field that its kind does not know', async () => {
    const directory = mkdtempSync(join(root, 'node_modules/.chart-'));
    try {
      // Types refuse what schemas let pass: a misspelt field.
      const sets = readdirSync(join(chart, 'ci'));
      const objects = sets.flatMap((set) => render(helm, 'x', ['-f', join(chart, 'ci', set)]));
      const lines = objects.map((object, index) => {
        const home = object.apiVersion.startsWith('monitoring')
          ? '@kubernetes-models/prometheus-operator'
          : 'kubernetes-models';
        const type = `import('${home}/${object.apiVersion}').I${object.kind}`;
        return `export const object${index}: ${type} = ${JSON.stringify(object)};`;
      });
      const check = async (text: string): Promise<string> => {
        const file = join(directory, 'objects.ts');
        writeFileSync(file, text);
        const args = ['--noEmit', '--skipLibCheck', '--strict', '--module', 'nodenext', '--types', 'node', file];
        const tsc = join(root, 'node_modules/typescript/bin/tsc');
        return promisify(execFile)(process.execPath, [tsc, '--ignoreConfig', ...args], { cwd: root }).then(
          ({ stdout }) => stdout,
          (error: unknown) => (error as { readonly stdout: string }).stdout,
        );
      };
      expect(await check(lines.join('\n'))).toBe('');
      const misspelt = lines
        .find((line) => line.includes('.IDeployment'))!
        .replace('"readOnlyRootFilesystem"', '"readOnlyRoot"');
      expect(await check(misspelt)).toContain('readOnlyRoot');
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  }, 120_000);
});

describe('alerts.yaml', () => {
  const { groups } = parse(read('helm/pesit-node/alerts.yaml')) as {
    readonly groups: readonly { readonly rules: readonly Alert[] }[];
  };
  const alerts = groups.flatMap(({ rules }) => rules);
  const metrics = new Set(
    [...read('docs/metrics.md').matchAll(/^\| `(\w+)` \| (\w+) \|/gm)].map(([, name = '', kind]) =>
      kind === 'histogram' ? `${name}_bucket` : name,
    ),
  );
  /** Those of Prometheus itself, and of the process (prom-client). */
  const others = ['up', 'nodejs_eventloop_lag_p99_seconds'];

  test.each(alerts)('$alert asks for metrics that exist', ({ expr, labels, annotations }) => {
    const names = [
      ...expr.replaceAll(/\{[^}]*\}|by \([^)]*\)|\btime\(\)/g, '').matchAll(/\b[a-z]+(?:_[a-z0-9]+)+\b(?!\()|\bup\b/g),
    ];
    expect(names.length).toBeGreaterThan(0);
    for (const [name] of names) expect([name, metrics.has(name) || others.includes(name)]).toEqual([name, true]);
    expect(['warning', 'critical']).toContain(labels.severity);
    expect(annotations.summary).toMatch(/\.$/);
  });

  test('each alert has a runbook, and no runbook is left of one that is gone', () => {
    const runbooks = [...read('docs/operations.md').matchAll(/^### (Pesit\w+)$/gm)].map(([, name]) => name);
    expect(runbooks).toEqual(alerts.map(({ alert }) => alert));
  });
});

test('values.schema.json allows no value that values.yaml does not show, and values.yaml none that it refuses', () => {
  interface Schema {
    readonly properties?: Readonly<Record<string, Schema>>;
  }
  const paths = (schema: Schema, path = ''): readonly string[] =>
    schema.properties === undefined
      ? [path]
      : Object.entries(schema.properties).flatMap(([name, inner]) => paths(inner, `${path}.${name}`));
  const values = parse(read('helm/pesit-node/values.yaml')) as Readonly<Record<string, unknown>>;
  const valueOf = (path: string): unknown =>
    path
      .slice(1)
      .split('.')
      .reduce<unknown>((at, name) => (at as Readonly<Record<string, unknown>> | undefined)?.[name], values);
  const schema = JSON.parse(read('helm/pesit-node/values.schema.json')) as Schema;
  // Helm itself gives `global`.
  const missing = paths(schema).filter((path) => path !== '.global' && valueOf(path) === undefined);
  expect(missing).toEqual([]);
});

/**
 * The chart, as helm renders it: schemas of Kubernetes, and what must hold for every set of values in helm/pesit-node/ci. Left out where the machine has
 * no helm (`npm run helm -- build`).
 */
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { describe, expect, jest, test } from '@jest/globals';
import { loadConfig } from '@pesit-node/service';
import { parse } from 'yaml';

interface Labelled {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}
/** Any object of Kubernetes: its schema is checked first. */
interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: Labelled;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- of many kinds
  readonly spec?: any;
  readonly data?: Readonly<Record<string, string>>;
}
interface Chart {
  readonly findHelm: () => string | undefined;
  readonly runHelm: (helm: string, args: readonly string[]) => string;
  readonly render: (helm: string, release: string, args: readonly string[]) => readonly Manifest[];
}
const root = fileURLToPath(new URL('../..', import.meta.url));
const library = new URL('../lib/helm.mjs', import.meta.url).href;
const { findHelm, runHelm, render } = (await import(library)) as Chart;
const helm = findHelm() ?? '';
const chart = join(root, 'helm/pesit-node');
const sets = readdirSync(join(chart, 'ci')).map((name) => name.replace('.yaml', ''));
/** As the Secrets would give them. */
const SECRET_VALUES: Readonly<Record<string, string>> = {
  DATABASE_PASSWORD: 'a-password',
  REDIS_URL: 'redis://:a-password@redis:6379/0',
};
const matches = (labels: Readonly<Record<string, string>>, wanted: Readonly<Record<string, string>>): boolean =>
  Object.entries(wanted).every(([name, value]) => labels[name] === value);

const ofSet = (set: string): readonly Manifest[] => render(helm, 'x', ['-f', join(chart, `ci/${set}.yaml`)]);
const ofKind = (objects: readonly Manifest[], kind: string): readonly Manifest[] =>
  objects.filter((one) => one.kind === kind);
const one = (objects: readonly Manifest[], kind: string, name: string): Manifest => {
  const found = objects.find((object) => object.kind === kind && object.metadata.name === name);
  if (found === undefined) throw new Error(`no ${kind} ${name}`);
  return found;
};

/** The validator that the API's own schemas give for a kind. */
const validate = async ({ apiVersion, kind, ...rest }: Manifest): Promise<void> => {
  const home = apiVersion.startsWith('monitoring.coreos.com/')
    ? '@kubernetes-models/prometheus-operator'
    : 'kubernetes-models';
  const models = (await import(`${home}/${apiVersion}`)) as Record<
    string,
    new (data: object) => { readonly validate: () => void }
  >;
  const Model = models[kind];
  if (Model === undefined) throw new Error(`no schema of ${apiVersion} ${kind}`);
  new Model(rest).validate();
};

// A test starts helm several times, each as long as a busy machine makes it.
jest.setTimeout(180_000);

const suite = helm === '' ? describe.skip : describe;

suite('helm/pesit-node (left out without helm: npm run helm -- build)', () => {
  test('at least six sets of values', () => expect(sets.length).toBeGreaterThanOrEqual(6));

  describe.each(sets)('with the values of ci/%s.yaml', (set) => {
    const objects = helm === '' ? [] : ofSet(set);
    const deployments = ofKind(objects, 'Deployment');
    const pods = [
      ...deployments.map(({ metadata, spec }) => ({ name: metadata.name, spec: spec.template.spec })),
      ...ofKind(objects, 'Pod').map(({ metadata, spec }) => ({ name: metadata.name, spec })),
    ];

    test('helm lint has nothing to say, and every object fits its schema', async () => {
      runHelm(helm, ['lint', '--strict', chart, '-f', join(chart, `ci/${set}.yaml`)]);
      for (const object of objects) {
        await validate(object).catch((error: unknown) => {
          throw new Error(`${object.kind} ${object.metadata.name}: ${String(error)}`);
        });
      }
      const names = objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
      expect(new Set(names).size).toBe(names.length);
    });

    test('no pod may do more than it needs', () => {
      expect(pods.length).toBeGreaterThan(0);
      for (const { name, spec } of pods) {
        expect([name, spec]).toEqual([
          name,
          expect.objectContaining({ automountServiceAccountToken: false, enableServiceLinks: false }),
        ]);
        expect(spec.securityContext).toMatchObject({
          runAsNonRoot: true,
          seccompProfile: { type: 'RuntimeDefault' },
        });
        expect(spec.securityContext.runAsUser).not.toBe(0);
        for (const container of spec.containers) {
          expect(container.securityContext).toEqual({
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ['ALL'] },
          });
          expect(container.resources).toMatchObject({
            requests: { cpu: expect.anything() },
            limits: { memory: expect.anything() },
          });
          expect(container.image).toMatch(/(?::\d+\.\d+\.\d+[\w.-]*|@sha256:[0-9a-f]{64})$/);
          for (const { mountPath, readOnly } of container.volumeMounts ?? []) {
            expect([mountPath, readOnly === true || ['/data', '/archive'].includes(mountPath)]).toEqual([
              mountPath,
              true,
            ]);
          }
        }
      }
    });

    test('probes ask what the apps answer, and a pod has time to drain', () => {
      for (const { metadata, spec } of deployments) {
        const [container] = spec.template.spec.containers;
        const asks = (probe: string): unknown => container[probe].httpGet;
        expect(asks('livenessProbe')).toEqual({ path: '/actuator/health/liveness', port: 'rest' });
        expect(asks('startupProbe')).toEqual(asks('livenessProbe'));
        expect(asks('readinessProbe')).toEqual({ path: '/actuator/health/readiness', port: 'rest' });
        expect(container.lifecycle).toBeUndefined();
        const config = parse(one(objects, 'ConfigMap', metadata.name).data!['pesit.yaml']!) as Record<string, number>;
        expect(spec.template.spec.terminationGracePeriodSeconds).toBe(config['shutdown.drain-timeout']! + 30);
      }
    });

    test('ports, selectors, volumes and claims belong together', () => {
      for (const { metadata, spec } of deployments) {
        const { labels } = spec.template.metadata;
        expect(labels).toMatchObject(spec.selector.matchLabels);
        for (const { name, persistentVolumeClaim, configMap } of spec.template.spec.volumes) {
          const claim = persistentVolumeClaim?.claimName as string | undefined;
          if (claim !== undefined && !['files', 'archive'].includes(claim))
            one(objects, 'PersistentVolumeClaim', claim);
          if (name === 'config') one(objects, 'ConfigMap', configMap.name);
        }
        const claims = ofKind(objects, 'PersistentVolumeClaim');
        const alone = claims.some(({ spec: claim }) => claim.accessModes[0] !== 'ReadWriteMany');
        expect(spec.strategy).toEqual(
          alone ? { type: 'Recreate' } : { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } },
        );
        if (alone) expect(spec.replicas).toBe(1);
        for (const service of ofKind(objects, 'Service').filter(
          ({ spec: { selector } }) => selector['app.kubernetes.io/component'] === labels['app.kubernetes.io/component'],
        )) {
          expect(labels).toMatchObject(service.spec.selector);
          const ports = spec.template.spec.containers[0].ports.map((port: { readonly name: string }) => port.name);
          for (const { targetPort } of service.spec.ports) expect(ports).toContain(targetPort);
        }
        const scaler = objects.find(
          (object) => object.kind === 'HorizontalPodAutoscaler' && object.metadata.name === metadata.name,
        );
        expect(spec.replicas === undefined).toBe(scaler !== undefined);
      }
      for (const { spec } of [...ofKind(objects, 'PodDisruptionBudget'), ...ofKind(objects, 'NetworkPolicy')]) {
        const { matchLabels } = spec.selector ?? spec.podSelector;
        expect(
          deployments.filter(({ spec: { template } }) => matches(template.metadata.labels, matchLabels)),
        ).toHaveLength(1);
      }
      for (const { spec } of ofKind(objects, 'ServiceMonitor')) {
        const found = ofKind(objects, 'Service').filter(({ metadata }) =>
          matches(metadata.labels, spec.selector.matchLabels),
        );
        expect(found.map(({ metadata }) => metadata.name)).toEqual(['x-pesit-node-server', 'x-pesit-node-client']);
      }
    });

    test('no secret is in a ConfigMap, in a variable or in an argument', () => {
      const secrets = ofKind(objects, 'Secret').flatMap(({ data = {} }) =>
        Object.entries(data)
          .filter(([key]) => key !== 'username')
          .flatMap(([, value]) => [value, Buffer.from(value, 'base64').toString()]),
      );
      const others = JSON.stringify(objects.filter(({ kind }) => kind !== 'Secret'));
      for (const secret of secrets) expect(others).not.toContain(secret);
      for (const { spec } of deployments) {
        for (const { name, value } of spec.template.spec.containers[0].env as { name: string; value?: string }[]) {
          if (/PASSWORD|USERNAME/.test(name)) expect([name, value]).toEqual([name, undefined]);
        }
      }
      for (const { data = {} } of ofKind(objects, 'ConfigMap')) {
        expect(data['pesit.yaml']).not.toMatch(/password: |secrets\.key|license\.content|\.url/);
      }
    });

    test('the apps take the configuration that the pods give them', () => {
      const directory = mkdtempSync(join(tmpdir(), 'pesit-chart-'));
      try {
        for (const { metadata, spec } of deployments) {
          const file = join(directory, `${metadata.name}.yaml`);
          writeFileSync(file, one(objects, 'ConfigMap', metadata.name).data!['pesit.yaml']!);
          const [container] = spec.template.spec.containers as {
            name: 'server' | 'client';
            env: { name: string; value?: string }[];
          }[];
          const given = Object.fromEntries(
            container!.env.map(({ name, value }) => [name, value ?? SECRET_VALUES[name] ?? 'given-by-a-secret']),
          );
          const app = container!.name;
          const config = loadConfig({
            app,
            env: { ...given, NODE_ENV: 'production', PESIT_CONFIG: file },
            argv: [],
            cwd: '/app',
          });
          expect(config).toMatchObject({
            'server.port': 8080,
            'server.host': '0.0.0.0',
            'data.directory': '/data',
            'cluster.enabled': true,
          });
        }
      } finally {
        rmSync(directory, { recursive: true, force: true });
      }
    });
  });

  test('the server app may leave only to what is named, the client app to remote servers', () => {
    const policies = helm === '' ? [] : ofKind(ofSet('production'), 'NetworkPolicy');
    const [server, client] = ['server', 'client'].map((app) =>
      policies.find(({ metadata }) => metadata.name.endsWith(app)),
    );
    const [names, stores, ...others] = server?.spec.egress ?? [];
    expect(JSON.stringify([names, stores])).toMatch(/53.*5432.*6379/);
    // As ci/production.yaml has it: the server of a CRL.
    expect(others).toEqual([
      { ports: [{ port: 80, protocol: 'TCP' }], to: [{ ipBlock: { cidr: '198.51.100.7/32' } }] },
    ]);
    expect(client?.spec.egress).toContainEqual({ ports: [{ port: 1, endPort: 65_535, protocol: 'TCP' }] });
  });
});

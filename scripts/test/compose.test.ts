/** docker-compose.yml and the Dockerfile: what must hold before anybody starts them. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';

interface Service {
  readonly image: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly profiles?: readonly string[];
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
  readonly user?: string;
  readonly stop_grace_period?: string;
}
const read = (path: string): string => readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), 'utf8');
const { services, volumes } = parse(read('docker-compose.yml'), { merge: true }) as {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes: Readonly<Record<string, unknown>>;
};
const apps = Object.entries(services).filter(([, { image }]) => image.startsWith('pesit-node-'));

describe('docker-compose.yml', () => {
  test('one server and one client; the profile cluster makes them three and two, behind a proxy', () => {
    const names = (profile: string | undefined): string[] =>
      Object.keys(services).filter((name) => services[name]!.profiles?.[0] === profile);
    expect(names(undefined)).toEqual(['server', 'client', 'postgres', 'redis']);
    expect(names('cluster')).toEqual(['server-2', 'server-3', 'client-2', 'proxy']);
  });

  test.each(apps)('%s: no rights, read-only but for its data, and time to drain', (_name, service) => {
    expect(service).toMatchObject({ user: '10001:0', read_only: true, cap_drop: ['ALL'], stop_grace_period: '90s' });
    expect(service.volumes).toEqual([expect.stringMatching(/^(?:server|client)-data:\/data$/)]);
    expect(Number(service.environment?.['SHUTDOWN_DRAIN_TIMEOUT'])).toBeLessThan(90);
    expect(service.healthcheck?.test).toEqual(['CMD', 'node', '/app/healthcheck.mjs', 'readiness']);
  });

  test('what both apps need is the same for all of them', () => {
    for (const [, { environment }] of apps) {
      expect(environment).toMatchObject({
        SECRETS_KEY: '/run/secrets/secrets.key',
        CLUSTER_ENABLED: 'true',
        DATABASE_URL: apps[0]![1].environment!['DATABASE_URL'],
      });
    }
  });

  test('no password has a default, and none stands in the file', () => {
    const secrets = Object.values(services).flatMap(({ environment = {} }) =>
      Object.entries(environment).filter(([name]) => /PASSWORD|AUTH|REDIS_URL/.test(name)),
    );
    expect(secrets.length).toBeGreaterThan(10);
    for (const [name, value] of secrets)
      expect([name, value]).toEqual([name, expect.stringMatching(/\$\{\w+:\?set it/)]);
    const blanks = read('deploy/compose.env').match(/^\w+=(.*)$/gm);
    expect(blanks).toEqual(['ADMIN_PASSWORD=', 'DATABASE_PASSWORD=', 'REDIS_PASSWORD=', 'SECRETS_KEY_FILE=']);
  });

  test('REST is published on the loopback address alone, database and Redis nowhere', () => {
    for (const [name, { ports = [] }] of Object.entries(services)) {
      if (['postgres', 'redis'].includes(name)) expect(ports).toEqual([]);
      for (const port of ports.filter((one) => /:808[01]$/.test(one))) expect(port).toMatch(/^127\.0\.0\.1:/);
    }
  });

  test('every image has an exact version, every service a health check or a proxy before it, every volume a name', () => {
    for (const [name, { image, healthcheck, volumes: mounts = [] }] of Object.entries(services)) {
      expect([name, image]).toEqual([name, expect.stringMatching(/:(?:\d+\.\d+|\$\{PESIT_VERSION:-\d+\.\d+\.\d+\})/)]);
      if (name !== 'proxy') expect([name, healthcheck?.test[0]]).toEqual([name, 'CMD']);
      for (const mount of mounts.filter((one) => !one.startsWith('./')))
        expect(volumes).toHaveProperty(mount.split(':')[0]!);
    }
  });

  test('the version is that of the product', () => {
    const { version } = JSON.parse(read('package.json')) as { readonly version: string };
    expect(
      new Set([...read('docker-compose.yml').matchAll(/PESIT_VERSION:-([\d.]+)/g)].map((match) => match[1])),
    ).toEqual(new Set([version]));
  });

  test('the proxy knows every server and every client', () => {
    const proxy = read('deploy/haproxy.cfg');
    for (const [name] of apps) expect(proxy).toMatch(new RegExp(`server \\S+ ${name}:8080 check`));
    for (const [name] of apps.filter(([one]) => one.startsWith('server'))) {
      expect(proxy).toMatch(new RegExp(`server \\S+ ${name}:6502 check port 8080`));
    }
  });
});

test('the image: an exact Node, another user than root, nothing from the base but what root.sh takes', () => {
  const dockerfile = read('deploy/Dockerfile');
  expect(dockerfile).toMatch(/^ARG NODE_IMAGE=node:24\.\d+\.\d+-slim$/m);
  const final = dockerfile.slice(dockerfile.lastIndexOf('\nFROM '));
  expect(final).toMatch(/^\nFROM scratch\n/);
  expect(final).toMatch(/^USER 10001:0$/m);
  expect(final).not.toMatch(/^(?:RUN|ADD)\b/m);
  expect(final).not.toMatch(/curl|wget|bash|tini\b(?! )/);
  for (const line of ['HEALTHCHECK', 'ENTRYPOINT'])
    expect(final).toMatch(new RegExp(`^${line} .*\\["node", (?:"--[^"]+", )*"/app/`, 'm'));
  // The files that the build may see: all of the tarballs, and the script.
  expect(read('.dockerignore').split('\n').filter(Boolean)).toEqual(['*', '!dist/*.tgz', '!deploy/root.sh']);
});

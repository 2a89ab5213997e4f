/** `npm start -- --cluster --once`: the main job through a balancer, while the pod that has half of the file is killed. */
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { expect, test } from '@jest/globals';

const START = fileURLToPath(new URL('../start.mjs', import.meta.url));

test('three servers and two clients: one is killed, the file arrives whole, all stop', async () => {
  const data = await mkdtemp(join(tmpdir(), 'pesit-start-cluster-'));
  try {
    const args = [START, '--cluster', '--once', '--free-ports', '--data', data, '--size', '16'];
    const { stdout } = await promisify(execFile)(process.execPath, args);
    expect(stdout).toContain('Both arrived whole: 16 MB each way, equal SHA-256.');
    const [, victim, heir] = /^(server-\d) was killed, (server-\d) received the rest; attempts: 2$/m.exec(stdout) ?? [];
    expect(victim).toBeDefined();
    expect(heir).not.toBe(victim);
    const pods = ['client-1', 'client-2', 'server-1', 'server-2', 'server-3'];
    const stopped = stdout.split('\n').filter((line) => line.endsWith(' stopped'));
    expect(stopped.sort()).toEqual(pods.filter((pod) => pod !== victim).map((pod) => `${pod} stopped`));
    for (const pod of pods) {
      const [app = ''] = pod.split('-');
      expect(await readdir(join(data, app))).toContain(`${pod}.log`);
    }
    expect(await readFile(join(data, 'database/postgresql.log'), 'utf8')).toContain('database system is shut down');
  } finally {
    await rm(data, { recursive: true, force: true });
  }
}, 300_000);

test('a node with a configuration of its own has no sample to show: said in words', async () => {
  const { samplePort } = (await import(new URL('../lib/cluster.mjs', import.meta.url).href)) as {
    samplePort: (rest: unknown, options: { pesitPort: number }) => Promise<number>;
  };
  const having = (servers: readonly object[]) => ({
    server: { get: (path: string) => Promise.resolve(path.endsWith('/partners') ? [{ partnerId: 'BANK' }] : servers) },
    client: { get: () => Promise.resolve([{ name: 'sample' }]) },
  });
  expect(await samplePort(having([{ serverId: 'SAMPLE', port: 6503 }]), { pesitPort: 6502 })).toBe(6503);
  const words = /The node has a configuration of its own.* Start without PESIT_CONFIG/s;
  await expect(samplePort(having([{ serverId: 'OTHER', port: 6502 }]), { pesitPort: 6502 })).rejects.toThrow(words);
  const declared = { ...having([]), client: { get: () => Promise.resolve([]) } };
  await expect(samplePort(declared, { pesitPort: 6502 })).rejects.toThrow(words);
});

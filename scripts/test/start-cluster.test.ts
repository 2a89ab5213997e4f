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

/** A private Redis for the tests. */
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findProgram, freePort } from './process.mjs';
import { serviceDirectory, startService } from './private-service.mjs';

/** The redis-server of this machine, or undefined. */
export function findRedis() {
  return findProgram('redis-server');
}

/** Starts a private instance, in memory only, and returns its URL. */
export async function startRedis(program) {
  const { directory, as } = serviceDirectory('redis');
  const port = await freePort();
  const password = randomBytes(12).toString('hex');
  const configuration = join(directory, 'redis.conf');
  const lines = [
    `dir ${directory}`,
    'bind 127.0.0.1',
    `port ${port}`,
    `requirepass ${password}`,
    'save ""',
    'appendonly no',
  ];
  writeFileSync(configuration, lines.join('\n') + '\n', { mode: 0o644 });
  await startService(program, [configuration], { as, ready: /Ready to accept connections/, stopSignal: 'SIGTERM' });
  return `redis://:${password}@127.0.0.1:${port}`;
}

/** Programs of Redis that a test starts for itself: with TLS, with sentinels, to be killed or frozen. */
import { execFileSync, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { describe, test } from '@jest/globals';
import { freePort } from '@pesit-node/service/testing';

const hasProgram = (name: string, flag: string): boolean => {
  try {
    execFileSync(name, [flag], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
};

export interface RedisProcess {
  readonly port: number;
  readonly kill: (signal: 'SIGKILL' | 'SIGSTOP') => void;
}

export class RedisProcesses {
  readonly directory = mkdtempSync(join(tmpdir(), 'pesit-redis-'));
  readonly #children: ChildProcess[] = [];

  /** @param lines of its configuration; its port is taken from there where it has none of its own (`port 0`) */
  async start(lines: readonly string[], ...flags: readonly '--sentinel'[]): Promise<RedisProcess> {
    const port = await freePort();
    const configuration = join(this.directory, `${String(port)}.conf`);
    const own = lines.some((line) => line.startsWith('port '))
      ? lines.map((line) => line.replace('PORT', String(port)))
      : [`port ${String(port)}`, ...lines];
    const common = [`dir ${this.directory}`, 'bind 127.0.0.1'];
    writeFileSync(configuration, [...common, ...own].join('\n') + '\n');
    const child = spawn('redis-server', [configuration, ...flags], { stdio: ['ignore', 'pipe', 'inherit'] });
    this.#children.push(child);
    const ready = flags.includes('--sentinel') ? '+monitor' : 'Ready to accept connections';
    let output = '';
    await new Promise<void>((resolve, reject) => {
      child.stdout.on('data', (chunk) => {
        output += String(chunk);
        if (output.includes(ready)) resolve();
      });
      child.once('close', () => reject(new Error(`redis-server ended:\n${output}`)));
    });
    return { port, kill: (signal) => child.kill(signal) };
  }

  async close(): Promise<void> {
    for (const child of this.#children) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      child.kill('SIGKILL');
      await once(child, 'close');
    }
    rmSync(this.directory, { recursive: true, force: true });
  }
}

/** @throws with `CI=true` where there is none: what was left out would pass unseen. */
export const withRedisProcesses = (define: () => void): void => {
  if (hasProgram('redis-server', '--version')) {
    describe('with Redis of its own', define);
    return;
  }
  if (process.env['CI'] === 'true') throw new Error('CI=true, but there is no redis-server on this machine');
  test.skip('left out: there is no redis-server on this machine', () => undefined);
};

export interface Certificates {
  readonly authority: string;
  readonly certificate: string;
  readonly key: string;
}

/** Whether `makeCertificates` finds what it needs. */
export const canSign = (): boolean => hasProgram('openssl', 'version');

/** PEM files of an authority, and of a certificate for 127.0.0.1, by `openssl`. */
export const makeCertificates = (directory: string): Certificates => {
  const [authority, certificate, key] = ['ca.pem', 'redis.pem', 'redis-key.pem'].map((name) =>
    join(directory, name),
  ) as [string, string, string];
  const openssl = (...args: readonly string[]): void => {
    execFileSync('openssl', args, { stdio: 'ignore', cwd: directory });
  };
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  openssl('req', '-x509', ...newKey, '-keyout', 'ca-key.pem', '-out', authority, '-subj', '/CN=Test CA', '-days', '2');
  openssl('req', ...newKey, '-keyout', key, '-out', 'redis.csr', '-subj', '/CN=redis');
  writeFileSync(join(directory, 'extensions'), 'subjectAltName=IP:127.0.0.1\n');
  openssl(
    ...['x509', '-req', '-in', 'redis.csr', '-CA', authority, '-CAkey', 'ca-key.pem', '-CAcreateserial'],
    ...['-days', '2', '-extfile', 'extensions', '-out', certificate],
  );
  return { authority, certificate, key };
};

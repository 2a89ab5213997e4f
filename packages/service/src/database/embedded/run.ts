import { spawn } from 'node:child_process';

import { reasonOf } from '@pesit-node/ground';
import type { Command } from './account.js';
import { EmbeddedDatabaseError } from './error.js';

/** Programs of PostgreSQL get no more of this process's environment than this. */
export const environment = (libraries: string): Readonly<Record<string, string>> => ({
  PATH: '/usr/local/bin:/usr/bin:/bin',
  LC_ALL: 'C',
  TZ: 'UTC',
  LD_LIBRARY_PATH: libraries,
});

export interface RunOptions {
  /** For the system's linker. */
  readonly libraries: string;
  readonly cwd: string;
  /** Input of the program. */
  readonly input: string;
}

/** Runs a program that ends by itself. @throws {EmbeddedDatabaseError} with what it said when it fails */
export const runToEnd = ({ command, args, ...as }: Command, { libraries, cwd, input }: RunOptions): Promise<void> =>
  new Promise((resolve, reject) => {
    const child = spawn(command, args, { ...as, cwd, env: environment(libraries), stdio: 'pipe' });
    const fail = (why: string): void => {
      const text = output
        .replaceAll(/password '\w+'/g, "password '…'")
        .trim()
        .slice(-2000);
      reject(new EmbeddedDatabaseError(`The embedded database could not be made: ${why}${text && `:\n${text}`}`));
    };
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += String(chunk)));
    child.once('error', (error) => fail(reasonOf(error)));
    child.once('close', (code, signal) => {
      // A stand-alone backend continues after a statement that failed, and ends with 0.
      if (code === 0 && !/^.*\b(?:ERROR|FATAL|PANIC): /m.test(output)) resolve();
      else fail(`${command} ended with ${signal ?? `code ${code ?? ''}`}`);
    });
    child.stdin.on('error', () => undefined);
    child.stdin.end(input);
  });

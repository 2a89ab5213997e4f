/** A database server of our own: a temporary directory, a free loopback port, stopped and removed at the end. */
import { execFileSync, spawn } from 'node:child_process';
import { chownSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { atEnd, Failure, findProgram } from './process.mjs';

/** The user to run as: PostgreSQL refuses to run as root. Empty for everyone else. */
function unprivileged() {
  if (process.getuid?.() !== 0) return {};
  for (const user of ['postgres', 'nobody']) {
    try {
      const id = (flag) =>
        Number(execFileSync('id', [flag, user], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }));
      return { uid: id('-u'), gid: id('-g') };
    } catch {
      // no such user: try the next
    }
  }
  throw new Failure('running as root, and there is neither a user "postgres" nor "nobody" to run a database as');
}

/** Makes a temporary directory for the service, removed at the end; `as` are the spawn options to run with. */
export function serviceDirectory(name) {
  const as = unprivileged();
  const directory = mkdtempSync(join(tmpdir(), `pesit-${name}-`));
  if (as.uid !== undefined) chownSync(directory, as.uid, as.gid);
  atEnd(() => rmSync(directory, { recursive: true, force: true }));
  return { directory, as: { ...as, cwd: directory } };
}

/**
 * Starts the program and resolves when a line of its output matches `ready`. It is stopped at the end with `stopSignal`;
 * where setpriv exists, the kernel stops it too when this process is killed.
 *
 * @throws Failure with its output when it ends first.
 */
export function startService(command, args, { as, ready, stopSignal }) {
  const setpriv = findProgram('setpriv');
  const [program, ...rest] = setpriv
    ? [setpriv, '--pdeathsig', stopSignal.replace('SIG', ''), '--', command, ...args]
    : [command, ...args];
  return new Promise((resolve, reject) => {
    // Detached: Ctrl-C on the terminal must reach the tests first, and their database after them.
    const child = spawn(program, rest, { ...as, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    const ended = new Promise((done) => child.once('close', done));
    atEnd(async () => {
      child.kill(stopSignal);
      await ended;
    });
    let output = '';
    let isReady = false;
    const read = (chunk) => {
      if (isReady) return;
      output += chunk;
      if (!ready.test(output)) return;
      isReady = true;
      resolve();
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    child.once('error', (error) => reject(new Failure(`cannot run ${program}: ${error.message}`)));
    child.once('close', (code) => reject(new Failure(`${command} ended with exit code ${code}:\n${output}`)));
  });
}

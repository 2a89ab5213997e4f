/**
 * Child processes and the things to undo at the end of a command. Plain JavaScript without dependencies, like everything
 * in this folder: it runs on a fresh clone, before `npm ci`.
 */
import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { accessSync, constants } from 'node:fs';
import { createServer } from 'node:net';
import { constants as osConstants } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The root of the clone. */
export const root = fileURLToPath(new URL('../..', import.meta.url));

/** An error whose message is all that the operator needs: shown without a stack. */
export class Failure extends Error {}

/** Refuses a Node that package.json's `engines` excludes, before anything fails in a way that is hard to read. */
export function requireNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major < 20 || (major === 20 && minor < 19)) {
    throw new Failure(
      `Node.js 20.19 or newer is needed, this is ${process.version}. Install a newer one and try again.`,
    );
  }
}

/** The first executable of this name in `directories`, or undefined. */
export function findProgram(name, directories = (process.env.PATH ?? '').split(delimiter)) {
  for (const directory of directories.filter(Boolean)) {
    const path = join(directory, name);
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // not here: look further
    }
  }
  return undefined;
}

/** A port that is free at this moment, and that the system gives to no outgoing connection (those are above 32,767). */
export async function freePort() {
  for (;;) {
    const port = randomInt(12_000, 32_000);
    const server = createServer();
    const isFree = await new Promise((resolve) => {
      server.once('error', () => resolve(false));
      server.listen(port, '0.0.0.0', () => server.close(() => resolve(true)));
    });
    if (isFree) return port;
  }
}

const running = new Set();

/** Runs a program to its end, by default on this terminal. Resolves with its exit code (128 + n for signal n). */
export function run(command, args, options = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: root, stdio: 'inherit', ...options });
    running.add(child);
    child.once('error', (error) => {
      running.delete(child);
      reject(new Failure(`cannot run ${command}: ${error.message}`));
    });
    child.once('exit', (code, signal) => {
      running.delete(child);
      resolve(code ?? 128 + osConstants.signals[signal]);
    });
  });
}

/** Runs a program without showing its output; throws with that output when it fails. */
export function runQuietly(command, args, options = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'], ...options });
    let output = '';
    child.stdout.on('data', (chunk) => (output += chunk));
    child.stderr.on('data', (chunk) => (output += chunk));
    child.once('error', (error) => reject(new Failure(`cannot run ${command}: ${error.message}`)));
    child.once('close', (code) => {
      if (code === 0) resolve(output);
      else reject(new Failure(`${command} failed with exit code ${code}:\n${output}`));
    });
  });
}

const undo = [];

/** Registers what must be undone when the command ends, however it ends. Last in, first out. */
export function atEnd(action) {
  undo.push(action);
}

let undone;

/** A signal and the end of the command may both ask for it: whoever asks waits until all is undone. */
function undoAll() {
  return (undone ??= (async () => {
    while (undo.length > 0) {
      try {
        await undo.pop()();
      } catch (error) {
        console.error(error);
      }
    }
  })());
}

/**
 * Runs a command to its exit code, then undoes what was registered: also after a failure, and after SIGINT, SIGTERM or
 * SIGHUP, which are passed on to the programs that `run` started.
 */
export async function main(command) {
  let interrupted;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, () => {
      const again = interrupted !== undefined;
      interrupted = 128 + osConstants.signals[signal];
      // A terminal sends Ctrl-C to the whole foreground group: the children already have it.
      if (signal !== 'SIGINT' || !process.stdin.isTTY) for (const child of running) child.kill(signal);
      if (running.size === 0 && !again) void undoAll().then(() => process.exit(interrupted));
    });
  }
  let code;
  try {
    code = await command();
  } catch (error) {
    // An interrupted request fails: that is no news.
    if (interrupted === undefined || !(error instanceof Failure)) {
      console.error(error instanceof Failure ? error.message : error);
    }
    code = 1;
  }
  await undoAll();
  process.exit(interrupted ?? code);
}

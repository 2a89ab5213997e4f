/** The two services as child processes, and a small REST client for them. */
import { spawn } from 'node:child_process';
import { createWriteStream, mkdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { constants as osConstants } from 'node:os';
import { join, relative } from 'node:path';
import { atEnd, Failure, findProgram, root } from './process.mjs';

const HOST = '127.0.0.1';
/** An embedded database that is made takes a second; a machine under load takes longer. */
const READY_WITHIN_MS = 120_000;
const STOP_WITHIN_MS = 30_000;
const TAIL_BYTES = 4000;

/** Refuses a port that something else listens on, before anything is started. `flag` is the one that changes it. */
export function requireFreePort(port, flag) {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', (error) => {
      const why = error.code === 'EADDRINUSE' ? 'is in use by another program' : `cannot be used (${error.code})`;
      reject(
        new Failure(`Port ${port} ${why}: choose another one, for example "npm start -- ${flag} ${port + 1000}".`),
      );
    });
    // All addresses: a program that listens on one of them alone is in the way as well.
    probe.listen(port, () => probe.close(resolve));
  });
}

/** Admin settings and limits of this shell that may reach the services; their addresses and directories are ours. */
function environment(port, data, database) {
  return {
    ...process.env,
    SERVER_PORT: String(port),
    SERVER_HOST: HOST,
    DATA_DIRECTORY: data,
    DATABASE_URL: '',
    DATABASE_DIRECTORY: database,
    ADMIN_USERNAME: 'admin',
    ADMIN_PASSWORD: 'admin',
  };
}

/** As the image has it (deploy/Dockerfile): room for what lives short, and no more for what is dead than for what lives. */
export const NODE_FLAGS = ['--max-semi-space-size=16', '--heap-growing-percent=100'];

/**
 * Starts an app, its log in <data>/service.log. It is stopped, cleanly, when the command ends.
 * @param options.database directory of the embedded database, which the two apps share
 * @param options.command another program than the app of this clone, with its arguments
 * @param options.as how to run it: options of spawn, in place of this clone's directory and environment
 * @param options.pod name of it among several pods of the app, and of its log
 * @param options.settings more of its environment
 */
export async function startApp({ app, port, data, database, command, as, pod, settings }) {
  mkdirSync(data, { recursive: true });
  const log = createWriteStream(join(data, `${pod ?? 'service'}.log`), { flags: 'a' });
  const setpriv = findProgram('setpriv');
  const program = command ?? [process.execPath, ...NODE_FLAGS, join(root, 'apps', app, 'dist', 'main.js')];
  // Where the kernel can, it stops the service even when this process is killed; Ctrl-C reaches us first (detached).
  const [file, ...args] = setpriv ? [setpriv, '--pdeathsig', 'TERM', '--', ...program] : program;
  const child = spawn(file, args, {
    cwd: root,
    env: { ...environment(port, data, database), ...settings },
    ...as,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let tail = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      tail = (tail + chunk).slice(-TAIL_BYTES);
      log.write(chunk);
    });
  }
  let killed = false;
  const kill = () => {
    killed = true;
    child.kill('SIGKILL');
  };
  const service = { name: pod ?? `the ${app} app`, pid: child.pid, tail: () => tail, ended: undefined, kill };
  service.ended = new Promise((resolve) => {
    child.once('close', (code, signal) => resolve({ ...service, how: signal ?? `exit code ${code}` }));
  });
  atEnd(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM');
    const killer = setTimeout(() => child.kill('SIGKILL'), STOP_WITHIN_MS);
    const { how } = await service.ended;
    clearTimeout(killer);
    log.end();
    if (killed) return;
    const clean = how === 'exit code 0' || how === `exit code ${128 + osConstants.signals.SIGTERM}`;
    console.log(`${service.name} stopped${clean ? '' : ` with ${how}: see ${relative(process.cwd(), log.path)}`}`);
  });
  await ready(service, port);
  return service;
}

async function ready(service, port) {
  const until = Date.now() + READY_WITHIN_MS;
  let gone;
  void service.ended.then((end) => (gone = end));
  for (;;) {
    if (gone !== undefined) throw new Failure(`${service.name} did not start (${gone.how}):\n${service.tail()}`);
    try {
      const answer = await fetch(`http://${HOST}:${port}/actuator/health/readiness`);
      if (answer.ok) return;
    } catch {
      // not listening yet
    }
    if (Date.now() > until)
      throw new Failure(`${service.name} is not ready after ${READY_WITHIN_MS} ms:\n${service.tail()}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/**
 * JSON over HTTP Basic; an answer that is not 2xx is a Failure with the service's own words. Where there are several pods,
 * the first that takes the connection is asked.
 */
export class RestClient {
  #ports;
  #name;
  #authorization;

  constructor(name, ports, password = 'admin') {
    this.#name = name;
    this.#ports = [ports].flat();
    this.#authorization = `Basic ${Buffer.from(`admin:${password}`).toString('base64')}`;
  }

  get(path) {
    return this.#call('GET', path);
  }

  post(path, body) {
    return this.#call('POST', path, body);
  }

  async #call(method, path, body) {
    const answer = await this.#ask(path, {
      method,
      headers: { authorization: this.#authorization, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (answer.ok) return text === '' ? undefined : JSON.parse(text);
    throw new Failure(`${method} ${path} of the ${this.#name} answered ${answer.status}: ${text}`);
  }

  async #ask(path, request) {
    for (const port of this.#ports) {
      try {
        return await fetch(`http://${HOST}:${port}${path}`, request);
      } catch (error) {
        if (error.cause?.code !== 'ECONNREFUSED' || port === this.#ports.at(-1)) throw error;
      }
    }
  }
}

/** A program that is killed and started again: an app, or the database. */
import { spawn, type ChildProcess, type SpawnOptions } from 'node:child_process';
import { once } from 'node:events';
import { openSync, closeSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';

const START_LIMIT_MS = 90_000;
const STOP_LIMIT_MS = 30_000;

export interface Program {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly options: Pick<SpawnOptions, 'cwd' | 'env' | 'uid' | 'gid'>;
  /** Its output, over all its lives. */
  readonly log: string;
  /** Whether it can work now. */
  readonly ready: () => Promise<boolean>;
  /** Whether it may end while starting, and is to be started again (a database whose last life is not over yet). */
  readonly stubborn?: boolean;
}

/** As Linux knows them. */
const childrenOf = async (pid: number | undefined): Promise<number[]> => {
  const text = await readFile(`/proc/${String(pid)}/task/${String(pid)}/children`, 'utf8');
  return text.trim().split(/\s+/).filter(Boolean).map(Number);
};

export class VictimProcess {
  readonly #program: Program;
  #child: ChildProcess | undefined;
  /** Its end is our doing. */
  #killed = false;
  #retired = false;
  /** Children that stand still. */
  #frozen: number[] = [];

  constructor(program: Program) {
    this.#program = program;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  get #gone(): boolean {
    return this.#child === undefined || this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  /** Starts it, and waits until it can work; not when it is retired. */
  async start(): Promise<void> {
    const limit = performance.now() + START_LIMIT_MS;
    if (!this.#retired) this.#spawn();
    while (!this.#retired && !(await this.#program.ready())) {
      if (this.#gone) {
        if (this.#program.stubborn !== true && !this.#killed) {
          const { exitCode, signalCode } = this.#child as ChildProcess;
          throw this.#failure(`ended while starting (${signalCode ?? `exit code ${String(exitCode)}`})`);
        }
        this.#spawn();
      }
      if (performance.now() > limit) throw this.#failure(`was not ready after ${START_LIMIT_MS / 1000} s`);
      await delay(25);
    }
  }

  /** Stands still until `continue`, and is there all the while. */
  freeze(): void {
    this.#child?.kill('SIGSTOP');
  }

  continue(): void {
    this.#child?.kill('SIGCONT');
  }

  /** The same with its children, which would work without it: first itself, so that no more of them come. */
  async freezeAll(): Promise<void> {
    this.freeze();
    this.#frozen = await childrenOf(this.pid);
    for (const pid of this.#frozen) process.kill(pid, 'SIGSTOP');
  }

  continueAll(): void {
    for (const pid of this.#frozen.splice(0)) process.kill(pid, 'SIGCONT');
    this.continue();
  }

  /** SIGKILL. Struck while it starts, `start` begins again. */
  kill(): void {
    this.#killed = true;
    this.#child?.kill('SIGKILL');
  }

  /** Ends it at once and for good, whoever is starting it again. */
  retire(): void {
    this.#retired = true;
    this.continueAll();
    this.kill();
  }

  /** Resolves when the killed process is gone. */
  async ended(): Promise<void> {
    if (!this.#gone) await once(this.#child as ChildProcess, 'exit');
  }

  /** Ends it in peace, or by force when that takes too long. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    if (this.#gone) return;
    this.#child?.kill(signal);
    const timer = setTimeout(() => this.kill(), STOP_LIMIT_MS);
    await this.ended();
    clearTimeout(timer);
  }

  #spawn(): void {
    const { command, args, options, log } = this.#program;
    const output = openSync(log, 'a');
    this.#child = spawn(command, args, { ...options, stdio: ['ignore', output, output] });
    closeSync(output);
    this.#killed = false;
  }

  #failure(what: string): Error {
    const lines = readFileSync(this.#program.log, 'utf8').trimEnd().split('\n').slice(-15);
    return new Error(`${this.#program.name} ${what}; the end of its log:\n${lines.join('\n')}`);
  }
}

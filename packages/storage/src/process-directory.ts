import { randomBytes } from 'node:crypto';
import { lstat, mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';

import { codeOf, makeDirectories } from '@pesit-node/ground';
import { THIS_PROCESS, isRunning } from '@pesit-node/ground';

const NAME = /^upload-(\d+)-(\d+)-([0-9a-f]{12})-[0-9a-f]{8}$/;

/**
 * A directory of this process alone below a root that others may share, mode 0700, for files that nobody needs when the process has
 * ended. Its name says whose it is: those of processes that are dead are removed at the start of the next one.
 */
export class ProcessDirectory {
  readonly root: string;
  readonly path: string;

  /** @param root absolute */
  constructor(root: string) {
    this.root = root;
    const { pid, started, machine } = THIS_PROCESS;
    // Nobody who may write to the root knows it beforehand.
    this.path = join(root, `upload-${pid}-${started}-${machine}-${randomBytes(4).toString('hex')}`);
  }

  /**
   * Makes the root (mode 0700, where it is missing) and the directory, and removes those of dead processes; of processes on other
   * machines, which cannot be looked at, those that nothing was written to for `abandonedAfterMs`.
   * @returns the names of those that were removed
   */
  async prepare(abandonedAfterMs: number): Promise<readonly string[]> {
    await makeDirectories(this.root, 0o700);
    const removed: string[] = [];
    for (const name of await readdir(this.root)) {
      if (!(await this.#isAbandoned(name, abandonedAfterMs))) continue;
      await rm(join(this.root, name), { recursive: true, force: true });
      removed.push(name);
    }
    await this.ready();
    return removed;
  }

  /** The directory, which is made again when somebody has cleaned the root. */
  async ready(): Promise<string> {
    await mkdir(this.path, { mode: 0o700 }).catch((error: unknown) => {
      if (codeOf(error) !== 'EEXIST') throw error;
    });
    return this.path;
  }

  async remove(): Promise<void> {
    await rm(this.path, { recursive: true, force: true });
  }

  async #isAbandoned(name: string, abandonedAfterMs: number): Promise<boolean> {
    const [, pid, started, machine] = NAME.exec(name) ?? [];
    if (pid === undefined || started === undefined) return false;
    const facts = await lstat(join(this.root, name)).catch(() => undefined);
    // Files of another account are not ours to remove, nor is the target of a link.
    if (facts?.isDirectory() !== true || facts.uid !== process.getuid?.()) return false;
    if (machine === THIS_PROCESS.machine) return !isRunning({ pid: Number(pid), started });
    return facts.mtimeMs <= Date.now() - abandonedAfterMs;
  }
}

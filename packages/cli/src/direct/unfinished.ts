/**
 * The state from which the same command continues a file that was cut off, after its process is gone: one small file a transfer, on stable
 * storage before the partner hears of the file, removed when the transfer is over for good. Without it a file whose end was
 * confirmed, while the confirmation was lost, would be sent twice.
 */
import { createHash, randomUUID } from 'node:crypto';
import { link, open, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';

import { THIS_PROCESS, codeOf, isRunning, makeDirectories } from '@pesit-node/ground';
import type { ProcessName } from '@pesit-node/ground';
import { storageError } from '@pesit-node/storage';
import type { FileVersion, Pacing } from '@pesit-node/storage';

import type { Environment, Given } from '../frame/command.js';
import { CliError } from '../frame/exit-codes.js';

/** State of a file that is sent. */
export interface UnfinishedSend {
  /** PI 13. */
  readonly transferId: number;
  /** The file that the first attempt sent: a restart never mixes two. */
  readonly version: FileVersion;
  /** How the attempts so far placed their points. */
  readonly pacings: readonly Pacing[];
}

/** Older than that, the partner has forgotten it as well (`transfer.staging-retention`). */
const KEPT_MS = 7 * 86_400_000;

/** Where state is kept: --state, the variable PESIT_STATE, or what the XDG Base Directory Specification says. */
export const stateDirectory = (given: Given, { variables, directory }: Environment): string => {
  const asked = given.text('state');
  if (asked !== undefined) return resolve(directory, asked);
  const home = variables['HOME'] ?? homedir();
  return join(variables['XDG_STATE_HOME'] ?? join(home, '.local/state'), 'pesit');
};

/** Names a transfer by all that makes it the same. */
export const transferKey = (parts: readonly unknown[]): string =>
  createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 32);

export class UnfinishedStore {
  readonly #path: string;
  readonly #lock: string;

  private constructor(directory: string, key: string) {
    this.#path = join(directory, `${key}.json`);
    this.#lock = join(directory, `${key}.lock`);
  }

  /** Table of points between compressed articles. */
  get pointsPath(): string {
    return this.#path.replace(/\.json$/, '.sent');
  }

  /**
   * Makes this process the only one that works on a transfer.
   * @throws CliError local: another process does, or the directory cannot be used
   */
  static async take(directory: string, key: string): Promise<UnfinishedStore> {
    const store = new UnfinishedStore(directory, key);
    try {
      await makeDirectories(directory, 0o700);
      await store.#takeLock();
      return store;
    } catch (error) {
      if (error instanceof CliError) throw error;
      throw new CliError(
        'local',
        `${directory} cannot be used to keep state (${(error as Error).message}): choose another with --state`,
        {
          cause: error,
        },
      );
    }
  }

  /** @param now milliseconds since the epoch */
  async read(now = Date.now()): Promise<UnfinishedSend | undefined> {
    const text = await readFile(this.#path, 'utf8').catch(() => undefined);
    if (text === undefined) return undefined;
    try {
      const { transferId, size, mtimeNs, pacings, at } = JSON.parse(text) as Record<string, unknown>;
      if (typeof transferId !== 'number' || typeof size !== 'number' || typeof mtimeNs !== 'string') return undefined;
      if (!Array.isArray(pacings) || typeof at !== 'number' || now - at > KEPT_MS) return undefined;
      return { transferId, version: { size, mtimeNs: BigInt(mtimeNs) }, pacings: pacings as Pacing[] };
    } catch {
      // Half a file of an older program: nothing can be continued with it.
      return undefined;
    }
  }

  /** On stable storage when it resolves. @throws PesitError local: a later attempt may find room */
  async write({ transferId, version, pacings }: UnfinishedSend): Promise<void> {
    const { size, mtimeNs } = version;
    const text = JSON.stringify({ transferId, size, mtimeNs: String(mtimeNs), pacings, at: Date.now() });
    const fresh = `${this.#path}.new`;
    try {
      const file = await open(fresh, 'w', 0o600);
      try {
        await file.writeFile(text);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(fresh, this.#path);
      const directory = await open(dirname(this.#path), 'r');
      try {
        await directory.sync();
      } finally {
        await directory.close();
      }
    } catch (error) {
      await rm(fresh, { force: true }).catch(() => undefined);
      throw storageError(error, 'write', this.#path, 'the state of the transfer');
    }
  }

  /** The transfer is over: there is nothing to continue. */
  async remove(): Promise<void> {
    await rm(this.#path, { force: true });
    await rm(this.pointsPath, { force: true });
  }

  /** Lets another process work on it. */
  async release(): Promise<void> {
    await rm(this.#lock, { force: true });
  }

  async #takeLock(): Promise<void> {
    for (let tries = 0; ; tries++) {
      // It gets its name with the owner in it: who finds it empty would take it for that of a process that is gone.
      const fresh = `${this.#lock}.${process.pid}-${randomUUID()}`;
      try {
        await writeFile(fresh, JSON.stringify(THIS_PROCESS), { mode: 0o600 });
        await link(fresh, this.#lock);
        return;
      } catch (error) {
        if (codeOf(error) !== 'EEXIST' || tries > 0) throw error;
        const owner = await this.#owner();
        if (owner !== undefined && (owner.machine !== THIS_PROCESS.machine || isRunning(owner))) {
          throw new CliError(
            'local',
            `process ${owner.pid} is at work with this transfer: wait for its end (or remove ${this.#lock} when it is of another machine that is gone)`,
            { cause: error },
          );
        }
        await rm(this.#lock, { force: true });
      } finally {
        await rm(fresh, { force: true });
      }
    }
  }

  async #owner(): Promise<ProcessName | undefined> {
    try {
      return JSON.parse(await readFile(this.#lock, 'utf8')) as ProcessName;
    } catch {
      // An older program ended while it wrote its name.
      return undefined;
    }
  }
}

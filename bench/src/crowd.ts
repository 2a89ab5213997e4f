/** Many sessions at once: those that are open and do nothing, which this process holds, and what REST takes beside them. */
import { Worker } from 'node:worker_threads';
import { PesitRequester } from '@pesit-node/net';
import type { AskerData, AskerMessage } from './asker.js';

export interface CrowdTarget {
  readonly port: number;
  /** PI 3, PI 4 and PI 5. */
  readonly requester: string;
  readonly server: string;
  readonly password: string;
}

/** Sessions that are opened at a time. */
const AT_ONCE = 8;
const TIMEOUT_MS = 60_000;

/** Opens sessions that stay open. Those that are open when one fails are released. */
export const openIdle = async (target: CrowdTarget, count: number): Promise<readonly PesitRequester[]> => {
  const { port, requester, server, password } = target;
  const open: PesitRequester[] = [];
  let left = count;
  const worker = async (): Promise<void> => {
    while (left > 0) {
      left--;
      open.push(
        await PesitRequester.open({
          ...{ host: '127.0.0.1', port, dialect: 'length-prefixed', connectTimeout: TIMEOUT_MS },
          connect: { requester, server, password, accessType: 2 },
        }),
      );
    }
  };
  const ended = await Promise.allSettled(Array.from({ length: AT_ONCE }, worker));
  const failed = ended.find(({ status }) => status === 'rejected');
  if (failed === undefined) return open;
  await release(open);
  throw (failed as PromiseRejectedResult).reason;
};

export const release = async (sessions: readonly PesitRequester[]): Promise<void> => {
  await Promise.all(sessions.map((session) => session.release()));
};

/** Requests to REST for these paths in turn, by a thread of its own. */
export class Asking {
  readonly #worker: Worker;
  /** Resolves once `least` requests were answered. Both reject when one failed. */
  readonly enough: Promise<void>;
  readonly #latencies: Promise<readonly number[]>;
  isEnough = false;

  constructor(base: string, paths: readonly string[], least: number) {
    const data: AskerData = { base, paths, least };
    this.#worker = new Worker(new URL('asker.js', import.meta.url), { workerData: data });
    const ended = new Promise<never>((_, reject) => {
      this.#worker.once('error', (error) => {
        this.isEnough = true;
        reject(error);
      });
    });
    const said = new Promise<readonly number[]>((resolve) => {
      this.#worker.on('message', (message: AskerMessage) => {
        if (message === 'enough') this.isEnough = true;
        else resolve(message);
      });
    });
    const enough = new Promise<void>((resolve) => this.#worker.once('message', () => resolve()));
    this.enough = Promise.race([enough, ended]);
    this.#latencies = Promise.race([said, ended]);
    for (const promise of [this.enough, this.#latencies]) promise.catch(() => undefined);
  }

  /** Ends the asking. @returns how long each answer took, milliseconds */
  async stop(): Promise<readonly number[]> {
    this.#worker.postMessage('stop');
    return this.#latencies;
  }
}

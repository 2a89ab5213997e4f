/** Runs inputs one after the other in a thread of its own, so that one that never ends can be noticed. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { parentPort, workerData } from 'node:worker_threads';
import { Inputs } from './inputs.js';
import { runInput } from './targets.js';

export interface Assignment {
  readonly seed: number;
  /** The directory of the recorded sessions. */
  readonly recordings: string;
  /** First input, and how many at most. */
  readonly first: number;
  readonly count: number;
  /** Two 32-bit numbers, low part first: the input that runs now. */
  readonly progress: SharedArrayBuffer;
}

export type WorkerMessage = { readonly done: number } | { readonly failed: number; readonly error: string };

/** Inputs between two looks at the memory; the first look comes when all code is compiled and all pools are full. */
const LOOK_AFTER = 200_000;
/** Memory that any number of inputs may leave behind, bytes. */
const MAX_GROWTH = 48 << 20;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const memory = (): number => {
  collectGarbage();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
};

const { seed, recordings, first, count, progress } = workerData as Assignment;
const at = new Uint32Array(progress);
const inputs = new Inputs(seed, recordings);
const tell = (message: WorkerMessage): void => parentPort?.postMessage(message);

let used: number | undefined;
let k = first;
try {
  for (; k < first + count; k++) {
    at[1] = Math.floor(k / 2 ** 32);
    at[0] = k >>> 0;
    runInput(inputs.input(k));
    if ((k - first) % LOOK_AFTER === LOOK_AFTER - 1) {
      const now = memory();
      used ??= now;
      if (now > used + MAX_GROWTH) throw new Error(`memory has grown from ${used} to ${now} bytes`);
    }
  }
  tell({ done: count });
} catch (error) {
  tell({ failed: k, error: error instanceof Error ? (error.stack ?? error.message) : String(error) });
}

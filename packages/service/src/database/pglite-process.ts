import { existsSync } from 'node:fs';
import { Worker } from 'node:worker_threads';

import type { PgliteHandle } from './pglite-stream.js';
import { deferred } from '../deferred.js';

export type WorkerRequest =
  { readonly kind: 'exec'; readonly id: number; readonly message: Uint8Array } | { readonly kind: 'close' };

export type WorkerAnswer =
  | { readonly kind: 'ready' }
  | { readonly kind: 'result'; readonly id: number; readonly message: Uint8Array }
  | { readonly kind: 'fatal'; readonly reason: string }
  | { readonly kind: 'closed' };

/** A PGlite that can be closed, in a thread or in this process. */
export interface PgliteInstance extends PgliteHandle {
  close(): Promise<void>;
  /** Resolves when the instance has ended, with the reason. */
  readonly ended: Promise<Error>;
}

/** The compiled entry: beside this file in `dist`, or in `dist` when this file is a source. */
const workerEntry = (): URL => {
  const beside = new URL('./pglite-worker.js', import.meta.url);
  return existsSync(beside) ? beside : new URL('../../dist/database/pglite-worker.js', import.meta.url);
};

interface Waiting {
  readonly resolve: (message: Uint8Array) => void;
  readonly reject: (error: Error) => void;
}

/** Starts PGlite on `directory` in a worker thread. Resolves when it answers; rejects when it cannot start. */
export const startPgliteWorker = async (directory: string, entry = workerEntry()): Promise<PgliteInstance> => {
  const worker = new Worker(entry, { workerData: { directory }, name: 'pglite', stdout: true, stderr: true });
  const waiting = new Map<number, Waiting>();
  const ready = deferred<undefined>();
  const ended = deferred<Error>();
  let lastId = 0;
  let end: Error | undefined;

  const finish = (reason: Error): void => {
    if (end !== undefined) return;
    end = reason;
    for (const { reject } of waiting.values()) reject(reason);
    waiting.clear();
    ready.reject(reason);
    ended.resolve(reason);
  };
  worker.on('message', (answer: WorkerAnswer) => {
    switch (answer.kind) {
      case 'ready':
        ready.resolve(undefined);
        return;
      case 'result':
        waiting.get(answer.id)?.resolve(answer.message);
        waiting.delete(answer.id);
        return;
      case 'fatal':
        finish(new Error(`The embedded database has aborted: ${answer.reason}`));
        return;
      case 'closed':
        finish(new Error('The embedded database is closed'));
    }
  });
  worker.on('error', (error) => finish(new Error('The embedded database has aborted', { cause: error })));
  worker.on('exit', (code) => finish(new Error(`The embedded database has ended with code ${code}`)));
  // PGlite prints what a PostgreSQL server would log; both streams must be drained, neither is ours.
  worker.stdout.resume();
  worker.stderr.resume();
  await ready.promise;

  return {
    ended: ended.promise,
    exec: (message) =>
      new Promise((resolve, reject) => {
        if (end !== undefined) {
          reject(end);
          return;
        }
        const id = ++lastId;
        waiting.set(id, { resolve, reject });
        // A copy: the driver reuses its buffers, and structured clone would send the whole pool behind a small view.
        const copy = Uint8Array.from(message);
        worker.postMessage({ kind: 'exec', id, message: copy } satisfies WorkerRequest, [copy.buffer]);
      }),
    close: async () => {
      if (end === undefined) worker.postMessage({ kind: 'close' } satisfies WorkerRequest);
      await ended.promise;
      await worker.terminate();
    },
  };
};

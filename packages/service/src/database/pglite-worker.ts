import { parentPort, workerData } from 'node:worker_threads';

import { PGlite } from '@electric-sql/pglite';

import type { WorkerAnswer, WorkerRequest } from './pglite-process.js';
import { reasonOf } from '../thrown.js';

/**
 * The thread that PGlite runs in, so that a long query never stops the transfers of the main thread.
 * Requests are answered in order. Anything that PGlite throws is an abort of its WebAssembly: the thread says so and ends.
 */
const port = parentPort;
if (port === null) throw new Error('pglite-worker runs as a worker thread only');

const { directory } = workerData as { readonly directory: string };
const answer = (message: WorkerAnswer, transfer: readonly ArrayBuffer[] = []): void => {
  port.postMessage(message, transfer);
};

const database = await PGlite.create(directory);

const exec = async (id: number, message: Uint8Array): Promise<void> => {
  const result = await database.execProtocolRaw(message);
  // The result may be a view of WebAssembly memory, which cannot be transferred: copy, then hand over.
  const copy = Uint8Array.from(result);
  answer({ kind: 'result', id, message: copy }, [copy.buffer]);
};

const fail = (error: unknown): void => {
  answer({ kind: 'fatal', reason: reasonOf(error) });
  process.exit(1);
};

let tail = Promise.resolve();
port.on('message', (request: WorkerRequest) => {
  tail = tail
    .then(async () => {
      if (request.kind === 'exec') return exec(request.id, request.message);
      await database.close();
      answer({ kind: 'closed' });
      port.close();
    })
    .catch(fail);
});
answer({ kind: 'ready' });

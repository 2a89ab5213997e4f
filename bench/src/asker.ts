/** The thread of `Asking`: what is asked beside a load waits for the service, and not for the process that makes the load. */
import { setTimeout as delay } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { call } from './rest.js';

export interface AskerData {
  readonly base: string;
  readonly paths: readonly string[];
  /** Requests, at least. */
  readonly least: number;
}

/** `enough`: so many were asked; else how long each answer took, milliseconds, after the word to stop. */
export type AskerMessage = 'enough' | readonly number[];

/** Between two requests, so that asking is no load of its own. */
const PAUSE_MS = 20;

const { base, paths, least } = workerData as AskerData;
const latencies: number[] = [];
const told = { toStop: false };
parentPort?.once('message', () => (told.toStop = true));
while (!told.toStop || latencies.length < least) {
  const began = performance.now();
  await call('GET', `${base}${paths[latencies.length % paths.length] ?? ''}`);
  latencies.push(performance.now() - began);
  if (latencies.length === least) parentPort?.postMessage('enough' satisfies AskerMessage);
  await delay(PAUSE_MS);
}
parentPort?.postMessage(latencies satisfies AskerMessage);

/** Many sessions at once: those that are open and do nothing, which this process holds, and what REST takes beside them. */
import { setTimeout as delay } from 'node:timers/promises';
import { PesitRequester } from '@pesit-node/net';
import { call } from './rest.js';

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
/** Between two requests, so that asking is no load of its own. */
const PAUSE_MS = 20;

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

/** Asks for these paths in turn, until `enough` says so. @returns how long each answer took, milliseconds */
export const askBeside = async (
  base: string,
  paths: readonly string[],
  enough: (asked: number) => boolean,
): Promise<readonly number[]> => {
  const latencies: number[] = [];
  while (!enough(latencies.length)) {
    const began = performance.now();
    await call('GET', `${base}${paths[latencies.length % paths.length] ?? ''}`);
    latencies.push(performance.now() - began);
    await delay(PAUSE_MS);
  }
  return latencies;
};

/**
 * How a pod comes to what is wanted of a listener on all pods. The rows of `listeners` say what is wanted;
 * every pod compares them with what runs in its process, and takes one step at a time:
 *
 * | wanted          | here                               | step    |
 * | --------------- | ---------------------------------- | ------- |
 * | not, or no row  | running, or to be tried again      | stop    |
 * | no row          | stopped                            | forget  |
 * | to run          | stopped, or never started          | start   |
 * | to run          | failed; changed since, or time due | start   |
 * | to run          | running, of another generation     | restart |
 * | to run          | running, on another port           | move    |
 *
 * Everything else is as it should be. The numbers are of the row that a step was taken for, so that it is not taken twice.
 */

import { sameDoors } from './fields.js';

/** A listener as it is wanted on every pod. */
export interface WantedListener {
  readonly port: number | null;
  readonly ssl_enabled?: boolean;
  readonly tls_port?: number | null;
  readonly wanted: boolean;
  /** Another one: each pod restarts it, once. */
  readonly generation: number;
  /** Another one: something of it was changed. */
  readonly revision: number;
}

/** A listener as it is in this process. */
export interface ListenerHere {
  /** `failed`: its port could not be taken. */
  readonly state: 'stopped' | 'running' | 'failed';
  /** Those of the row that it was started or moved for last; of one that failed, that it was tried for. */
  readonly port: number | null;
  readonly ssl_enabled?: boolean;
  readonly tls_port?: number | null;
  readonly generation: number;
  readonly revision: number;
  /** When one that failed is tried again, milliseconds since 1970. */
  readonly nextAttemptAt: number | undefined;
}

export interface Circumstances {
  /** Whether this pod runs listeners: not when it stops, nor when another one leads and `cluster.listeners` is `leader`. */
  readonly serves: boolean;
  /** Milliseconds since 1970. */
  readonly now: number;
}

export type Step = 'start' | 'restart' | 'move' | 'stop' | 'forget';

/** @returns undefined when nothing is to be done. */
export const stepFor = (
  row: WantedListener | undefined,
  here: ListenerHere | undefined,
  { serves, now }: Circumstances,
): Step | undefined => {
  if (row?.wanted !== true || !serves) {
    if (here === undefined) return undefined;
    if (here.state !== 'stopped') return 'stop';
    return row === undefined ? 'forget' : undefined;
  }
  if (here === undefined || here.state === 'stopped') return 'start';
  if (here.state === 'failed') {
    const isDue = here.nextAttemptAt === undefined || here.nextAttemptAt <= now;
    return isDue || here.revision !== row.revision ? 'start' : undefined;
  }
  if (here.generation !== row.generation) return 'restart';
  return sameDoors(here, row) ? undefined : 'move';
};

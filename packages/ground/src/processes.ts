/**
 * Which process this is, on which machine and since which boot, and whether another one still runs.
 *
 * A pid alone names nobody for long: with its start time, in clock ticks since the boot, it does, and machine stands for the boot
 * and the pid namespace within which both mean something. A process on another machine or in another container cannot be looked
 * at from here.
 */
import { createHash, randomBytes } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import { codeOf } from './thrown.js';

export interface ProcessName {
  readonly pid: number;
  /** Field 22 of proc(5) stat; `0` where there is no /proc. */
  readonly started: string;
  /** Twelve hex digits. */
  readonly machine: string;
}

/** States of a process that has ended and was not waited for (Z), or is going (X). */
const ENDED = /^[ZXx]$/;

const quietly = (read: () => string): string | undefined => {
  try {
    return read();
  } catch {
    return undefined;
  }
};

const shortHash = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 12);

/** The second field may hold blanks and brackets, so they are counted from its last bracket. */
const startOf = (pid: number | 'self'): string | undefined => {
  const stat = quietly(() => readFileSync(`/proc/${pid}/stat`, 'latin1'));
  const [state = '', ...fields] = stat?.slice(stat.lastIndexOf(')') + 2).split(' ') ?? [];
  return stat === undefined || ENDED.test(state) ? undefined : fields[18];
};

const bootId = quietly(() => readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim());
const pidNamespace = quietly(() => readlinkSync('/proc/self/ns/pid')) ?? '';

/** Twelve hex digits that name this run of the operating system; of this process alone where there is no /proc. */
export const THIS_BOOT: string = bootId === undefined ? randomBytes(6).toString('hex') : shortHash(bootId);

export const THIS_PROCESS: ProcessName = {
  pid: process.pid,
  started: startOf('self') ?? '0',
  machine: shortHash(`${bootId ?? hostname()} ${pidNamespace}`),
};

/** Whether a process runs that was named on this machine; where there is no /proc, whether any has its pid. */
export const isRunning = ({ pid, started }: Pick<ProcessName, 'pid' | 'started'>): boolean => {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (codeOf(error) === 'ESRCH') return false;
  }
  return THIS_PROCESS.started === '0' || startOf(pid) === started;
};

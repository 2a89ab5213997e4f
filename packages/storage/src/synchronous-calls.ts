/**
 * Which calls of the file system a process makes itself, and which it hands to the thread pool.
 *
 * A call that the page cache answers takes 2 to 30 µs. Handed over it costs two switches of threads, so 25 to 60 µs of
 * processor time (measured), and a small file needs some sixty. But whoever makes a call himself stands still until it is answered,
 * and with him every session, every lease and the probes. So:
 *
 * - Only where the kernel calls the file system a local one (`statfs`, a list of types): NFS, CIFS, FUSE, Ceph, Lustre, 9p and whatever is
 *   not on the list is left to the pool for good.
 * - Only in a directory that the pool has looked at in the last `VERDICT_MS`, and that answered it within `PROMPT_MS`. While it is used it is
 *   looked at again beside; after a time without use the first calls go through the pool.
 * - Not while anything that the pool was given for that volume, a flush included, is unanswered for `STUCK_MS`: a disk that hangs shows
 *   there first.
 * - Calls that take longer than `SLOW_MS` make a debt, which time pays off at one twentieth: so slow calls hold the process up for a
 *   twentieth of the time at most. Above `DEBT_MS` the volume's calls of that kind go through the pool until the debt is paid and the
 *   pool is answered promptly.
 * - In one turn of the event loop no more than `TURN_MS`, and `TURN_BYTES`: a loop of calls that are answered at once would
 *   let nobody else have it.
 *
 * Flushes, directories that are read, and whatever frees many blocks are never synchronous: see `node-files.ts`. A file system that lies
 * in memory alone (tmpfs) has nothing to flush, and answers a flush like a look.
 */

/**
 * A look at a name, a directory or an open file; a change of names; reads; writes; flushes, a write that is one included. A disk whose files are not in memory reads slowly
 * and writes quickly, and a change of names may wait for the flush of somebody else, which a look never does.
 */
export type CallKind = 'look' | 'name' | 'read' | 'write' | 'flush';

/** Which of them a process makes itself, as far as the rules let it. */
export type SynchronousMode = 'auto' | 'looks' | 'never';

/** A directory as the pool has found it. */
export interface Ground {
  readonly device: bigint;
  /** Its file system never leaves this machine to answer. */
  readonly isLocal: boolean;
  /** It has no disk: what is flushed there is no safer than before. */
  readonly isMemory: boolean;
}

export interface SynchronousCallsOptions {
  /** Asks the kernel, through the pool. */
  readonly look: (directory: string) => Promise<Ground>;
  /** Makes a call through the pool, once it is its turn. Default: at once. */
  readonly run?: <T>(call: () => Promise<T>) => Promise<T>;
  /** Milliseconds, never going back. */
  readonly now?: () => number;
  /** Calls back when the event loop has come round. */
  readonly nextTurn?: (begin: () => void) => void;
}

const VERDICT_MS = 5000;
const PROMPT_MS = 100;
const STUCK_MS = 200;
const SLOW_MS = 1;
/** A call of many bytes may take longer, by as much as a slow memory needs. */
const BYTES_PER_MS = 1_000_000;
const DEBT_MS = 20;
const PAID_OFF = 1 / 20;
/** Calls that the pool must have answered promptly in a row before a volume with a debt is tried again. */
const PROMPT_CALLS = 2;
const TURN_MS = 2;
const TURN_BYTES = 4 * 1024 * 1024;
/** Directories that are remembered. */
const MAX_DIRECTORIES = 1000;

/** One kind of calls on one volume, as it was measured. */
interface Measure {
  /** Milliseconds. */
  debt: number;
  /** When it was last paid off in part. */
  paidAt: number;
  /** Above the limit, and not yet tried again. */
  isSuspended: boolean;
  /** Answers of the pool in a row that were prompt, since it was suspended. */
  prompt: number;
}

/** One device, whatever directories of it are used. */
class Volume {
  readonly #isMemory: boolean;
  /** When the calls began that the pool has not answered yet, oldest first. */
  readonly unanswered = new Set<{ readonly began: number }>();
  readonly #measures = new Map<CallKind, Measure>();

  constructor(isMemory: boolean) {
    this.#isMemory = isMemory;
  }

  measure(kind: CallKind): Measure {
    let measure = this.#measures.get(kind);
    if (measure === undefined) {
      measure = { debt: 0, paidAt: 0, isSuspended: false, prompt: 0 };
      this.#measures.set(kind, measure);
    }
    return measure;
  }

  isStuck(now: number): boolean {
    for (const { began } of this.unanswered) return now - began > STUCK_MS;
    return false;
  }

  allows(kind: CallKind, now: number): boolean {
    if (kind === 'flush' && !this.#isMemory) return false;
    const measure = this.measure(kind);
    if (!measure.isSuspended) return true;
    payOff(measure, now);
    if (measure.debt > 0 || measure.prompt < PROMPT_CALLS) return false;
    measure.isSuspended = false;
    return true;
  }

  /** A synchronous call has taken `ms`. */
  took(kind: CallKind, ms: number, bytes: number, now: number): void {
    if (ms < SLOW_MS + bytes / BYTES_PER_MS) return;
    const measure = this.measure(kind);
    payOff(measure, now);
    measure.debt += ms;
    if (measure.debt <= DEBT_MS) return;
    measure.isSuspended = true;
    measure.prompt = 0;
  }

  /** The pool was answered after `ms`. */
  answered(kind: CallKind, ms: number): void {
    const measure = this.measure(kind);
    if (!measure.isSuspended) return;
    if (ms > PROMPT_MS) measure.prompt = 0;
    else measure.prompt += 1;
  }
}

const payOff = (measure: Measure, now: number): void => {
  measure.debt = Math.max(0, measure.debt - (now - measure.paidAt) * PAID_OFF);
  measure.paidAt = now;
};

/** A directory in which files are used. */
export class Directory {
  readonly path: string;
  /** Undefined: calls there go through the pool. */
  volume: Volume | undefined;
  device: bigint | undefined;
  /** Until when that counts, by the clock of `SynchronousCalls`. */
  until = -Infinity;
  isLookedAt = false;

  constructor(path: string) {
    this.path = path;
  }
}

export class SynchronousCalls {
  /** `looks`: all else goes through the pool; `never`: every call does. */
  mode: SynchronousMode = 'auto';
  readonly #look: SynchronousCallsOptions['look'];
  readonly #run: NonNullable<SynchronousCallsOptions['run']>;
  readonly #now: () => number;
  readonly #nextTurn: (begin: () => void) => void;
  /** In the order in which they were first used. */
  readonly #directories = new Map<string, Directory>();
  readonly #volumes = new Map<bigint, Volume>();
  #turnMs = 0;
  #turnBytes = 0;
  #inTurn = false;

  constructor({
    look,
    run = (call) => call(),
    now = () => performance.now(),
    nextTurn = setImmediate,
  }: SynchronousCallsOptions) {
    this.#look = look;
    this.#run = run;
    this.#now = now;
    this.#nextTurn = nextTurn;
  }

  /** The directory of this path; to be kept with what is open in it. */
  directory(path: string): Directory {
    const known = this.#directories.get(path);
    if (known !== undefined) return known;
    const directory = new Directory(path);
    for (const oldest of this.#directories.keys()) {
      if (this.#directories.size < MAX_DIRECTORIES) break;
      this.#directories.delete(oldest);
    }
    this.#directories.set(path, directory);
    return directory;
  }

  /** Whether the next call there may be made at once. */
  allows(directory: Directory, kind: CallKind, bytes = 0): boolean {
    if (this.mode === 'never' || (this.mode === 'looks' && kind !== 'look')) return false;
    if (this.#turnMs >= TURN_MS || this.#turnBytes + bytes > TURN_BYTES) return false;
    const now = this.#now();
    if (now > directory.until - VERDICT_MS / 2) this.#lookAt(directory, now);
    const { volume } = directory;
    return volume !== undefined && now <= directory.until && !volume.isStuck(now) && volume.allows(kind, now);
  }

  isKnown(path: string): boolean {
    return this.#directories.has(path);
  }

  /** `allows` for a path that may be a directory: one that was never used as one counts as a file. */
  allowsAt(path: string, kind: CallKind): boolean {
    const directory = this.#directories.get(path);
    return directory === undefined || this.allows(directory, kind);
  }

  /** Makes a call that is allowed. */
  atOnce<T>(directory: Directory, kind: CallKind, bytes: number, call: () => T): Promise<T> {
    const began = this.#now();
    const made = new Promise<T>((resolve) => {
      resolve(call());
    });
    const ended = this.#now();
    directory.volume?.took(kind, ended - began, bytes, ended);
    this.#spend(ended - began, bytes);
    return made;
  }

  /** Makes a call through the pool, and follows it from its turn on. @param directory undefined: nobody follows it */
  pooled<T>(directory: Directory | undefined, kind: CallKind | undefined, call: () => Promise<T>): Promise<T> {
    return this.#run(() => (directory === undefined ? call() : this.#followed(directory, kind, call)));
  }

  async #followed<T>(directory: Directory, kind: CallKind | undefined, call: () => Promise<T>): Promise<T> {
    const { volume } = directory;
    if (volume === undefined) return call();
    const pending = { began: this.#now() };
    volume.unanswered.add(pending);
    try {
      return await call();
    } finally {
      volume.unanswered.delete(pending);
      if (kind !== undefined) volume.answered(kind, this.#now() - pending.began);
    }
  }

  #spend(ms: number, bytes: number): void {
    this.#turnMs += ms;
    this.#turnBytes += bytes;
    if (this.#inTurn) return;
    this.#inTurn = true;
    this.#nextTurn(() => {
      this.#inTurn = false;
      this.#turnMs = 0;
      this.#turnBytes = 0;
    });
  }

  #lookAt(directory: Directory, began: number): void {
    if (directory.isLookedAt) return;
    directory.isLookedAt = true;
    const found = (ground: Ground | undefined) => {
      const now = this.#now();
      const isPrompt = now - began <= PROMPT_MS;
      directory.device = ground?.device;
      directory.volume = ground?.isLocal === true && isPrompt ? this.#volume(ground) : undefined;
      directory.until = now + VERDICT_MS;
      directory.isLookedAt = false;
    };
    // A directory that is not there is asked for again like one that may not be used.
    this.#followed(directory, undefined, () => this.#look(directory.path)).then(found, () => found(undefined));
  }

  #volume({ device, isMemory }: Ground): Volume {
    let volume = this.#volumes.get(device);
    if (volume === undefined) {
      volume = new Volume(isMemory);
      this.#volumes.set(device, volume);
    }
    return volume;
  }
}

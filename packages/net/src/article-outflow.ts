import { burstBufferSize } from '@pesit-node/protocol';
import type { ArticleSource, SyncPoint } from '@pesit-node/protocol';
import { now } from './connection.js';
import type { Connection } from './connection.js';
import { LimitedBurst } from './data-limits.js';
import { cannotGoBack } from './errors.js';
import type { Pace } from './pace.js';

/** Bytes of one burst: large enough that system calls cost little, small enough that a transfer stays within 2 MB. */
const BURST_SIZE = 512 * 1024;
/** One burst is filled while the other is on its way. */
const BURSTS = 2;
/** Buffers kept for later transfers: small files come by the hundred, and each needs one. */
const MAX_SPARE_BUFFERS = 32;

const spareBuffers: Buffer[] = [];

const borrowBuffer = (size: number): Buffer => {
  const spare = spareBuffers.pop();
  return spare !== undefined && spare.length >= size ? spare : Buffer.allocUnsafeSlow(size);
};

const returnBuffer = (buffer: Buffer): void => {
  if (spareBuffers.length < MAX_SPARE_BUFFERS) spareBuffers.push(buffer);
};

/** Articles of a source to the peer, up to and including DTF.END, with back-pressure from peer to disk (design §3). */
export class ArticleOutflow {
  readonly #connection: Connection;
  readonly #source: ArticleSource;
  readonly #limit: number;
  readonly #pace: Pace | undefined;
  /** Resolves when more may go; undefined: it may. */
  #free: Promise<void> | undefined;
  #stopped = false;
  #wake: (() => void) | undefined;
  /** A resynchronisation: where the source has to go, and what to do then. */
  #back: { readonly point: SyncPoint; readonly arrived: () => void } | undefined;

  /** @param limit most data of one burst, bytes @param pace holds the data back */
  constructor(connection: Connection, source: ArticleSource, limit = BURST_SIZE, pace?: Pace) {
    this.#connection = connection;
    this.#source = source;
    this.#pace = pace;
    this.#limit = Math.min(limit, pace?.quantum ?? limit);
  }

  /** To be called on ACK(SYN), and when the transport has taken a burst. */
  wake(): void {
    this.#wake?.();
    this.#wake = undefined;
  }

  /** The transfer is over: a source that still reads for it no longer counts, whatever the session does next. */
  stop(): void {
    this.#stopped = true;
    this.wake();
  }

  /** Goes back to `point` and on from there; `arrived` is called when the source stands there. */
  goBack(point: SyncPoint, arrived: () => void): void {
    this.#back = { point, arrived };
    this.wake();
  }

  /** Resolves true when, after the end of the data, the transfer goes back and has to be `run` again; false when it is over. */
  async overtaken(): Promise<boolean> {
    while (!this.#stopped && this.#back === undefined) await new Promise<void>((resolve) => (this.#wake = resolve));
    return !this.#stopped;
  }

  /**
   * @returns false when the transfer was interrupted or the session ended before all was sent
   * @throws whatever the source rejects with; nothing is sent of the burst in which it failed
   */
  async run(entitySize: number): Promise<boolean> {
    const size = burstBufferSize(entitySize, BURST_SIZE);
    const slots: BurstSlot[] = [];
    try {
      return await this.#send(slots, () => new BurstSlot(borrowBuffer(size)));
    } catch (error) {
      if (this.#over()) return false;
      throw error;
    } finally {
      for (const slot of slots) slot.giveBack();
    }
  }

  /** @param slots receives those that were made: a file of one burst needs one */
  async #send(slots: BurstSlot[], make: () => BurstSlot): Promise<boolean> {
    const { session } = this.#connection;
    this.#paced(0);
    for (let turn = 0; ; turn = (turn + 1) % BURSTS) {
      const slot = (slots[turn] ??= make());
      while (!this.#over() && (slot.busy || this.#held() || this.#waits())) await this.#woken();
      if (this.#over()) return false;
      if (this.#back !== undefined) {
        await this.#bringBack(this.#back);
        continue;
      }
      const burst = session.beginBurst(slot.buffer);
      const more = await this.#source.fill(this.#limit < BURST_SIZE ? new LimitedBurst(burst, this.#limit) : burst);
      // The file was read while the partner's disk was busy: only the window holds the burst now.
      while (!this.#over() && !this.#goesBack() && (this.#held() || session.windowFull)) await this.#woken();
      if (this.#over()) return false;
      // A resynchronisation has overtaken the burst: its articles are void, and the end of the file is none.
      if (this.#goesBack()) continue;
      if (!more) session.endData();
      const bytes = session.endBurst();
      if (bytes.length > 0) {
        slot.written = this.#connection.writeBurst(bytes, !more);
        this.#paced(bytes.length);
        void slot.written.then(() => {
          this.wake();
        });
      } else if (more) {
        throw new Error('a burst took no article although the window is open');
      }
      if (more) continue;
      this.#connection.attend();
      return true;
    }
  }

  /** These bytes have gone: the next ones wait until their limits let them. */
  #paced(bytes: number): void {
    const free = this.#pace?.take(bytes);
    if (free === undefined) return;
    this.#free = free;
    // The partner owes nothing meanwhile.
    this.#connection.pauseClock(free);
    void free.then(() => {
      this.#free = undefined;
      this.wake();
    });
  }

  #waits(): boolean {
    return this.#free !== undefined && !this.#goesBack();
  }

  async #bringBack({ point, arrived }: { readonly point: SyncPoint; readonly arrived: () => void }): Promise<void> {
    if (this.#source.goBack === undefined) throw cannotGoBack(point);
    this.#back = undefined;
    await this.#source.goBack(point);
    if (!this.#over() && !this.#goesBack()) arrived();
  }

  #goesBack(): boolean {
    return this.#back !== undefined;
  }

  /** Our RESYN has no answer yet: the place to continue from is not known. */
  #held(): boolean {
    return !this.#goesBack() && !this.#connection.session.sending;
  }

  #over(): boolean {
    const { session } = this.#connection;
    return this.#stopped || !(session.sending || session.resynchronising);
  }

  /** Waits for the partner, to read or to acknowledge; its time runs. */
  #woken(): Promise<void> {
    const woken = new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    this.#connection.session.touch(now());
    this.#connection.attend();
    return woken;
  }
}

/** A buffer that is filled, on its way, or free. */
class BurstSlot {
  readonly buffer: Buffer;
  busy = false;
  #written: Promise<void> = Promise.resolve();

  constructor(buffer: Buffer) {
    this.buffer = buffer;
  }

  set written(written: Promise<void>) {
    this.busy = true;
    this.#written = written.then(() => {
      this.busy = false;
    });
  }

  get written(): Promise<void> {
    return this.#written;
  }

  /** The buffer may be used again only when the transport is done with it. */
  giveBack(): void {
    void this.#written.then(() => {
      returnBuffer(this.buffer);
    });
  }
}

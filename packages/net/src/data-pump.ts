/** Articles between a session and a file, both ways, with back-pressure (design §3). */
import { burstBufferSize } from '@pesit-node/protocol';
import type { ArticleBatch, ArticleSink, ArticleSource, PesitError, SyncPoint } from '@pesit-node/protocol';
import type { Connection } from './connection.js';
import { asPesitError } from './errors.js';

/** Bytes of one burst: large enough that system calls cost little, small enough that a transfer stays within 2 MB. */
const BURST_SIZE = 512 * 1024;
/** One burst is filled while the other is on its way. */
const BURSTS = 2;
/** Buffers kept for later transfers: small files come by the hundred. */
const MAX_SPARE_BUFFERS = 16;

const spareBuffers: Buffer[] = [];

function borrowBuffer(size: number): Buffer {
  const spare = spareBuffers.pop();
  return spare !== undefined && spare.length >= size ? spare : Buffer.allocUnsafeSlow(size);
}

function returnBuffer(buffer: Buffer): void {
  if (spareBuffers.length < MAX_SPARE_BUFFERS) spareBuffers.push(buffer);
}

/** Received articles to a sink. The session acknowledges a point when the sink has it on stable storage. */
export class ArticleIntake {
  readonly #connection: Connection;
  readonly #sink: ArticleSink;
  readonly #interrupt: (error: PesitError) => void;
  #stopped = false;
  #held = false;

  /** @param interrupt what to do when the sink fails: the transfer cannot go on */
  constructor(connection: Connection, sink: ArticleSink, interrupt: (error: PesitError) => void) {
    this.#connection = connection;
    this.#sink = sink;
    this.#interrupt = interrupt;
    sink.onFailure = (error) => {
      this.#fail(error);
    };
  }

  take(batch: ArticleBatch): void {
    if (this.#stopped || this.#sink.write(batch) || this.#held) return;
    this.#held = true;
    const drained = this.#sink.drained().finally(() => {
      this.#held = false;
    });
    this.#connection.hold(drained);
    drained.catch((error: unknown) => {
      this.#fail(error);
    });
  }

  checkpoint(point: SyncPoint): void {
    if (this.#stopped) return;
    this.#sink.checkpoint(point).then(
      () => {
        if (this.#stopped) return;
        this.#connection.session.acknowledgeSyn(point.number);
        this.#connection.settle();
      },
      (error: unknown) => {
        this.#fail(error);
      },
    );
  }

  /** The transfer is over, well or not: nothing more is written or acknowledged. */
  stop(): void {
    this.#stopped = true;
    this.#sink.onFailure = undefined;
  }

  #fail(error: unknown): void {
    if (this.#stopped) return;
    this.stop();
    this.#interrupt(asPesitError(error, '2-213'));
  }
}

/** Articles of a source to the peer, up to and including DTF.END. */
export class ArticleOutflow {
  readonly #connection: Connection;
  readonly #source: ArticleSource;
  #wake: (() => void) | undefined;

  constructor(connection: Connection, source: ArticleSource) {
    this.#connection = connection;
    this.#source = source;
  }

  /** To be called on ACK(SYN), and when the session ends or is interrupted. */
  wake(): void {
    this.#wake?.();
    this.#wake = undefined;
  }

  /**
   * @returns false when the transfer was interrupted or the session ended before all was sent
   * @throws whatever the source rejects with; nothing is sent of the burst in which it failed
   */
  async run(entitySize: number): Promise<boolean> {
    const { session } = this.#connection;
    const over = (): boolean => !session.sending;
    const size = burstBufferSize(entitySize, BURST_SIZE);
    const buffers = Array.from({ length: BURSTS }, () => borrowBuffer(size));
    const written: Promise<void>[] = buffers.map(() => Promise.resolve());
    try {
      for (let turn = 0; ; turn = (turn + 1) % BURSTS) {
        await written[turn];
        while (!over() && session.windowFull) await this.#windowOpened();
        if (over()) return false;
        const more = await this.#source.fill(session.beginBurst(buffers[turn] as Buffer));
        const bytes = session.endBurst();
        if (over()) return false;
        if (bytes.length > 0) written[turn] = this.#connection.writeBurst(bytes);
        else if (more && !session.windowFull) throw new Error('a burst took no article although the window is open');
        if (more) continue;
        session.endData();
        this.#connection.settle();
        return true;
      }
    } finally {
      // A buffer may be used again only when the socket is done with it.
      void Promise.all(written).then(() => {
        buffers.forEach(returnBuffer);
      });
    }
  }

  #windowOpened(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}

import type { ArticleSource, Burst, SyncPoint } from '@pesit-node/protocol';
import type { FileSource, StoredPoint } from '@pesit-node/storage';

import { pointToWrite } from './restart-position.js';
import type { SendingSession } from './restartable-source.js';

/**
 * A file that is sent compressed, in one attempt. Its points are written down one by one, each before it leaves: where they stand
 * follows from no rule.
 */
export class CompressedSource implements ArticleSource {
  readonly #source: FileSource;
  readonly #session: Pick<SendingSession, 'totals'>;
  readonly #write: (point: StoredPoint) => Promise<void>;
  #lastPoint: number;

  /**
   * @param write resolves when the point is stored
   * @param from number of the point at which the attempt begins
   */
  constructor(
    source: FileSource,
    session: Pick<SendingSession, 'totals'>,
    write: (point: StoredPoint) => Promise<void>,
    from: number,
  ) {
    this.#source = source;
    this.#session = session;
    this.#write = write;
    this.#lastPoint = from;
  }

  async fill(burst: Burst): Promise<boolean> {
    const before = this.#session.totals;
    const more = await this.#source.fill(burst);
    const { lastPoint: number } = burst;
    const point = number > this.#lastPoint ? pointToWrite(this.#source, number, before) : undefined;
    if (point !== undefined) await this.#write(point);
    this.#lastPoint = number;
    return more;
  }

  async goBack(point: SyncPoint): Promise<void> {
    await this.#source.goBack(point);
    this.#lastPoint = point.number;
  }
}

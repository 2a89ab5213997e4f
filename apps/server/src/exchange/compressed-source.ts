import type { ArticleSource, Burst, SyncPoint } from '@pesit-node/protocol';
import type { FileSource } from '@pesit-node/storage';
import { pointToWrite } from '@pesit-node/transfers';

import type { RecordHandle } from '../transfers/record.js';
import type { Records } from './parts.js';
import type { ProvenPartner } from './proven-partner.js';
import { asking } from './refusal.js';

/**
 * A file that is read compressed. Its points are written down one by one, each before it leaves: where they stand follows from
 * no rule.
 */
export class CompressedSource implements ArticleSource {
  readonly #session: Pick<ProvenPartner['session'], 'totals'>;
  readonly #sentPoints: Pick<Records['sentPoints'], 'add'>;
  readonly #record: RecordHandle;
  readonly #source: FileSource;
  #lastPoint: number;

  /** @param from number of the point at which the attempt begins */
  constructor(
    session: Pick<ProvenPartner['session'], 'totals'>,
    sentPoints: Pick<Records['sentPoints'], 'add'>,
    record: RecordHandle,
    source: FileSource,
    from: number,
  ) {
    this.#session = session;
    this.#sentPoints = sentPoints;
    this.#record = record;
    this.#source = source;
    this.#lastPoint = from;
  }

  async fill(burst: Burst): Promise<boolean> {
    const { dataBytes, articles } = this.#session.totals;
    const more = await this.#source.fill(burst);
    const { lastPoint: number } = burst;
    const point = number > this.#lastPoint ? pointToWrite(this.#source, number, { dataBytes, articles }) : undefined;
    if (point !== undefined) {
      await asking('2-201', () => this.#sentPoints.add(this.#record, point));
    }
    this.#lastPoint = number;
    return more;
  }

  async goBack(point: SyncPoint): Promise<void> {
    await this.#source.goBack(point);
    this.#lastPoint = point.number;
  }
}

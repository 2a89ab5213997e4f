import type { ArticleSource, Burst, ConnectionTerms, FileTerms, SyncPoint } from '@pesit-node/protocol';
import type { FileSource, Pacing } from '@pesit-node/storage';

import { goToPoint, pacingsWith, pointToWrite } from './restart-position.js';
import type { SentPoints } from './sent-points.js';

/** The session that sends, as far as points depend on it. */
export interface SendingSession {
  readonly terms: Pick<ConnectionTerms, 'syncInterval'>;
  readonly fileTerms: Pick<FileTerms, 'compression'> | undefined;
  /** Counted in the running transfer. */
  readonly totals: Pick<SyncPoint, 'dataBytes' | 'articles'>;
}

/** Keeps for the next attempt how this one places its points; resolves when that is stored. */
export interface PacingKeeper {
  keepPacings(pacings: readonly Pacing[]): Promise<void>;
}

/**
 * The source of one transfer over all its attempts. Knows when the first data were asked for: before, the partner holds
 * nothing that a second CREATE would double. How points are placed is committed before the first of them leaves, so that a
 * file without points costs no statement. Points between compressed articles are written down one by one.
 */
export class RestartableSource implements ArticleSource {
  started = false;
  readonly #source: FileSource;
  readonly #keeper: PacingKeeper;
  readonly #sent: SentPoints;
  #pacings: readonly Pacing[];
  #session: SendingSession | undefined;
  #from = 0;
  #lastPoint = 0;
  #kept = false;

  constructor(source: FileSource, pacings: readonly Pacing[], keeper: PacingKeeper, sent: SentPoints) {
    this.#source = source;
    this.#pacings = pacings;
    this.#keeper = keeper;
    this.#sent = sent;
  }

  /** The last one sent. */
  get lastPoint(): number {
    return this.#lastPoint;
  }

  /** To be called before each CREATE: the file is at its start, whatever an earlier session did. */
  async begin(session: SendingSession): Promise<void> {
    this.#session = session;
    this.#from = 0;
    this.#lastPoint = 0;
    this.#kept = false;
    await this.#source.startAt(0, []);
  }

  /** Undefined: no attempt has placed such a point, or its place is no longer known. */
  async goTo(number: number, signal: AbortSignal): Promise<SyncPoint | undefined> {
    const point = await goToPoint(this.#source, number, this.#pacings, (sent) => this.#sent.find(sent), signal);
    if (point === undefined) return undefined;
    this.#from = number;
    this.#lastPoint = number;
    return point;
  }

  /** Forgets the attempts before. */
  async forget(): Promise<void> {
    this.#pacings = [];
    await this.#sent.forgetAfter(0);
  }

  async goBack(point: SyncPoint): Promise<void> {
    await this.#source.goBack(point);
    this.#lastPoint = point.number;
    if (this.#compression !== 0) await this.#sent.forgetAfter(point.number);
  }

  async fill(burst: Burst): Promise<boolean> {
    this.started = true;
    const before = this.#session?.totals;
    const more = await this.#source.fill(burst);
    const { lastPoint, maxUnsegmentedArticle } = burst;
    if (lastPoint > this.#lastPoint) {
      if (!this.#kept) await this.#keepPacing(maxUnsegmentedArticle);
      if (this.#compression !== 0 && before !== undefined) {
        const point = pointToWrite(this.#source, lastPoint, before);
        if (point !== undefined) await this.#sent.add(point);
      }
      this.#lastPoint = lastPoint;
    }
    return more;
  }

  get #compression(): number {
    return this.#session?.fileTerms?.compression ?? 0;
  }

  async #keepPacing(maxUnsegmentedArticle: number): Promise<void> {
    const interval = this.#session?.terms.syncInterval ?? 0;
    const compression = this.#compression;
    const attempt = {
      from: this.#from,
      interval,
      maxUnsegmentedArticle,
      ...(compression === 0 ? {} : { compression }),
    };
    const before = this.#pacings;
    this.#pacings = pacingsWith(before, attempt);
    await this.#sent.forgetAfter(this.#from);
    if (this.#pacings !== before) await this.#keeper.keepPacings(this.#pacings);
    this.#kept = true;
  }
}

import type { ArticleBatch } from '@pesit-node/protocol';
import { ArticleDecoder } from './article-decoder.js';
import { FileWriter } from './file-writer.js';
import type { OpenFile } from './files.js';
import { Growth } from './growth.js';
import type { RunningHash } from './running-hash.js';
import { StablePoints } from './stable-points.js';
import type { OpenedStaging } from './staged-opening.js';
import type { Durability, StagedFileOptions } from './staged-options.js';

export interface StagedIntakeOptions {
  /** The staged file, and the point from where it is written. */
  readonly opened: OpenedStaging;
  readonly file: OpenFile;
  readonly options: StagedFileOptions;
  readonly durability: Durability;
  readonly entryIsStable: boolean;
  /** A write or a flush failed. */
  readonly failed: (error: unknown, action: 'write' | 'flush') => void;
  /** A check beside the writing says that the file may not grow further. */
  readonly outgrown: (reason: unknown) => void;
}

/**
 * Takes articles into a staged file after one point: the start, the point of a restart, or the point to which RESYN cut the file
 * back. It serves that stretch alone: going back makes a new one.
 */
export class StagedIntake {
  readonly writer: FileWriter;
  readonly points: StablePoints;
  readonly #decoder: ArticleDecoder;
  readonly #growth: Growth;
  readonly #hash: RunningHash | undefined;
  #dataBytes: number;

  constructor({ opened, file, options, durability, entryIsStable, failed, outgrown }: StagedIntakeOptions) {
    const { point, hash } = opened;
    this.#decoder = new ArticleDecoder(options.format, point.articles);
    this.#dataBytes = point.dataBytes;
    this.#hash = hash;
    this.writer = new FileWriter(file, point.fileOffset, hash, (error) => failed(error, 'write'), options.writeSize);
    this.#growth = new Growth(options.growth ?? {}, point.fileOffset, outgrown);
    this.points = new StablePoints({
      ...{ opened, durability, entryIsStable, progress: this.writer },
      failed: (error) => failed(error, 'flush'),
      flushed: options.flushed,
    });
  }

  /** Articles received whole (PI 28), those before the point included. */
  get articles(): number {
    return this.#decoder.articles;
  }

  /** No article is begun and not ended. */
  get atArticleEnd(): boolean {
    return this.#decoder.atArticleEnd;
  }

  /** Article bytes received, as they came; those before the point included. */
  get dataBytes(): number {
    return this.#dataBytes;
  }

  /** Checksum of the whole file, once all is written; undefined with `checksum: 'none'`. */
  checksum(): string | undefined {
    return this.#hash?.checksum();
  }

  /**
   * Queues a batch; the caller pumps the writer.
   * @throws PesitError the articles do not fit the record format, or the file would be larger than it may be
   */
  decode(batch: ArticleBatch): void {
    this.#decoder.decode(batch, this.writer.queue);
    this.#growth.reached(this.writer.accepted);
    this.#dataBytes += batch.bytes;
  }

  /** Nothing is written after what is on its way; points that wait are refused with `reason`. */
  stop(reason: Error): void {
    this.writer.stop(reason);
    this.points.stop(reason);
  }

  /** Resolves when everything queued is written, and each point that was asked for is stored or has failed. */
  async idle(): Promise<void> {
    await this.writer.idle();
    await this.points.idle();
  }
}

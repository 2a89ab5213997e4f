import { createHash } from 'node:crypto';
import type { Hash } from 'node:crypto';

import type { ArticleBatch, ArticleSink, CreateAnswer, PesitError } from '@pesit-node/protocol';
import { compressionName } from '@pesit-node/transfers';
import type { Compression } from '@pesit-node/transfers';

import type { ContextRow } from '../transfers/contexts.js';
import type { RecordHandle, TransferFailure, TransferProgress } from '../transfers/record.js';
import type { Beginning, IncomingTransfer } from './file-transfer.js';
import type { Records } from './parts.js';
import type { ProvenPartner } from './proven-partner.js';
import { failureOf, refusal } from './refusal.js';

/**
 * A file that is complete here, and whose last acknowledgement the partner has lost (pesit-e.md §5): it is sent to the last
 * point, what it sends from there is counted and dropped, and the end is acknowledged. The file does not change; of the record only counts
 * that were not known.
 *
 * A partner that gives an old identity to another file would lose that one. So the hash must agree where the whole binary
 * file comes once more, and the counts in any other case; otherwise the end is refused, and the identity is free for the next attempt.
 */
export class ReplayedFile implements IncomingTransfer {
  readonly direction = 'RECEIVE';
  readonly type = 'FILE';
  readonly id: number;
  readonly peer: string;
  readonly record: RecordHandle;
  readonly name: string;
  readonly answer: CreateAnswer;
  readonly #proven: ProvenPartner;
  readonly #contexts: Records['contexts'];
  readonly #done: ContextRow;
  readonly #isText: boolean;
  #hash: Hash | undefined;

  /** @param isText of a text the file's bytes are not those of its articles */
  constructor(
    proven: ProvenPartner,
    contexts: Records['contexts'],
    done: ContextRow,
    answer: CreateAnswer,
    isText: boolean,
  ) {
    this.id = done.id;
    this.peer = proven.partner.partner_id;
    this.record = { id: done.id, fence: done.fence };
    this.name = done.filename;
    this.answer = answer;
    this.#proven = proven;
    this.#contexts = contexts;
    this.#done = done;
    this.#isText = isText;
  }

  readonly progress = (): TransferProgress => ({
    dataBytes: this.#done.bytes_transferred,
    articles: this.#done.articles,
    syncPoint: this.#done.sync_point,
  });

  write(): Promise<Beginning & { readonly sink: ArticleSink }> {
    const { sync_point: number, point_bytes: dataBytes, point_articles: articles, checksum } = this.#done;
    const usesPoints = number > 0 && (this.#proven.session.terms?.syncInterval ?? 0) > 0;
    const from = usesPoints ? { number, dataBytes, articles } : { number: 0, dataBytes: 0, articles: 0 };
    this.#hash = !usesPoints && !this.#isText && checksum !== null ? createHash('sha256') : undefined;
    return Promise.resolve({ from, attempt: 'repeated', facts: {}, sink: new Drain(this.#hash) });
  }

  async end(): Promise<void> {
    const { dataBytes, articles } = this.#proven.session.totals;
    const expected = this.progress();
    const isSame =
      this.#hash === undefined
        ? !this.#isComparable() || (dataBytes === expected.dataBytes && articles === expected.articles)
        : `sha256:${this.#hash.digest('hex')}` === this.#done.checksum;
    if (isSame) {
      if (!this.#isCounted) await this.#contexts.count(this.record, { dataBytes, articles }, this.#compression);
      return;
    }
    await this.#contexts.forget(this.record);
    throw refusal(
      '3-319',
      `the partner restarts transfer ${this.record.id}, which is complete here with ${expected.dataBytes} bytes in ${expected.articles} articles, and sends another file (${dataBytes} bytes in ${articles} articles): nothing of it is kept; its next attempt is taken as a new transfer`,
      'this transfer is complete here with another content: send the file as a new transfer',
    );
  }

  /** Nobody has counted the small files that `Recovery` found delivered: this attempt does, as it sends all of them. */
  get #isCounted(): boolean {
    return this.#done.articles > 0 || this.#done.size === 0;
  }

  get #compression(): Compression {
    return compressionName(this.#proven.session.fileTerms?.compression ?? 0);
  }

  /** With another compression the same articles have other lengths. */
  #isComparable(): boolean {
    return this.#isCounted && this.#compression === (this.#done.compression ?? 'none');
  }

  fail(error: PesitError, endCode: number | undefined): Promise<TransferFailure> {
    return Promise.resolve(failureOf(error, endCode));
  }
}

/** Takes articles and keeps nothing of them. */
class Drain implements ArticleSink {
  readonly #hash: Hash | undefined;

  constructor(hash: Hash | undefined) {
    this.#hash = hash;
  }

  write({ parts }: ArticleBatch, release?: () => void): boolean {
    if (this.#hash !== undefined) for (const part of parts) this.#hash.update(part);
    release?.();
    return true;
  }

  drained(): Promise<void> {
    return Promise.resolve();
  }

  checkpoint(): Promise<void> {
    return Promise.resolve();
  }
}

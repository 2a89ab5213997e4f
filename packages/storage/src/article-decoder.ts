import { codePageTables, translate } from '@pesit-node/protocol';
import type { ArticleBatch } from '@pesit-node/protocol';
import { StorageError } from './errors.js';
import type { OutputQueue } from './output-queue.js';
import { MAX_RECORD_LENGTH } from './record-format.js';
import type { RecordFormat } from './record-format.js';

const BLANK = 0x20;
const BLANKS = Buffer.alloc(MAX_RECORD_LENGTH, BLANK);

/**
 * Turns received articles into the bytes of the file (pesit-e.md §6, column *Receiving*). An article may come in
 * several parts and over several batches; an article longer than PI 32 is refused, never cut.
 */
export class ArticleDecoder {
  readonly #format: RecordFormat;
  readonly #exact: boolean;
  readonly #lines: boolean;
  readonly #trim: boolean;
  readonly #toLatin1: Buffer | undefined;
  #articles: number;
  /** Bytes of the article that is not complete yet. */
  #length = 0;
  /** TF: blanks seen at the end of what came so far; written only if something else follows. */
  #heldBlanks = 0;

  /** @param articles those before a restart point: it lies between two articles, so nothing else is carried over it */
  constructor(format: RecordFormat, articles = 0) {
    this.#format = format;
    this.#articles = articles;
    this.#exact = format.name === 'BF';
    this.#lines = format.text;
    this.#trim = format.name === 'TF';
    this.#toLatin1 = format.codePage === undefined ? undefined : codePageTables(format.codePage).toLatin1;
  }

  /** Articles completed so far. */
  get articles(): number {
    return this.#articles;
  }

  /** False in the middle of an article. */
  get atArticleEnd(): boolean {
    return this.#length === 0;
  }

  /** @throws StorageError 2-220 (remote) for an article that is too long, or in a BF file too short */
  decode(batch: ArticleBatch, out: OutputQueue): void {
    const { parts, ends } = batch;
    let next = 0;
    for (const end of ends) {
      for (; next < end; next++) this.#part(parts[next], out);
      this.#end(out);
    }
    for (; next < parts.length; next++) this.#part(parts[next], out);
  }

  #part(part: Buffer | undefined, out: OutputQueue): void {
    if (part === undefined) return;
    this.#length += part.length;
    if (this.#length > this.#format.recordLength) throw this.#wrongLength('at least ');
    const bytes = this.#toLatin1 === undefined ? part : translated(part, this.#toLatin1);
    if (this.#trim) this.#partWithoutBlanks(bytes, out);
    else out.push(bytes);
  }

  #partWithoutBlanks(part: Buffer, out: OutputQueue): void {
    let end = part.length;
    while (end > 0 && part[end - 1] === BLANK) end -= 1;
    if (end > 0) {
      if (this.#heldBlanks > 0) out.push(BLANKS.subarray(0, this.#heldBlanks));
      this.#heldBlanks = 0;
      out.push(end === part.length ? part : part.subarray(0, end));
    }
    this.#heldBlanks += part.length - end;
  }

  #end(out: OutputQueue): void {
    if (this.#exact && this.#length !== this.#format.recordLength) throw this.#wrongLength('');
    this.#articles += 1;
    this.#length = 0;
    this.#heldBlanks = 0;
    if (this.#lines) out.pushLineEnd();
  }

  #wrongLength(quantity: string): StorageError {
    const { name, recordLength } = this.#format;
    const expected = `${this.#exact ? 'exactly' : 'at most'} ${recordLength}`;
    return new StorageError(
      `article ${this.#articles + 1} is ${quantity}${this.#length} bytes long, a ${name} file with PI 32 = ${recordLength} takes ${expected}: the sender must announce the right record length`,
      { fault: 'remote', diagnostic: '2-220', expected, got: `${quantity}${this.#length}` },
    );
  }
}

/** A copy: the received bytes are views that others may share. */
const translated = (part: Buffer, table: Buffer): Buffer => {
  const copy = Buffer.from(part);
  translate(copy, table);
  return copy;
};

import { appendFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';

import type { SyncPoint } from '@pesit-node/protocol';
import { storageError } from '@pesit-node/storage';

/** A point and where it stands in the file. */
export interface SentPoint extends SyncPoint {
  /** Bytes of the file before it. */
  readonly fileOffset: number;
}

const LINE = /^(\d+) (\d+) (\d+) (\d+)$/;

const lineOf = ({ number, fileOffset, dataBytes, articles }: SentPoint): string =>
  `${number} ${fileOffset} ${dataBytes} ${articles}\n`;

/**
 * The points of a transfer that is sent compressed, a line each, written before the point leaves: their places follow from
 * no rule, as those of other transfers do. It survives the process; a power cut may cost its last lines, and the file then
 * goes from its start.
 *
 * Each claim of the transfer has a table of its own, which begins as that of the attempt before: a process that stood still may
 * write on in its own, and nobody reads it.
 */
export class SentPoints {
  readonly #path: string;
  #exists = false;
  /** As it was last read. */
  #text = '';
  readonly #earlier: () => Promise<readonly string[]>;
  #taken: Promise<void> | undefined;

  /** @param earlier tables of earlier claims, full paths, the newest first. Default: none */
  constructor(path: string, earlier: () => Promise<readonly string[]> = () => Promise.resolve([])) {
    this.#path = path;
    this.#earlier = earlier;
  }

  async find(number: number): Promise<SentPoint | undefined> {
    return (await this.#read()).findLast((point) => point.number === number);
  }

  async add(point: SentPoint): Promise<void> {
    await this.#take();
    await this.#writing(async () => {
      if (!this.#exists) await mkdir(dirname(this.#path), { recursive: true, mode: 0o700 });
      this.#exists = true;
      await appendFile(this.#path, lineOf(point), { mode: 0o600 });
    });
  }

  /** An attempt begins at `number`, or goes back to it: what was placed behind it is gone. */
  async forgetAfter(number: number): Promise<void> {
    const left = (await this.#read()).filter((point) => point.number <= number);
    const text = left.map(lineOf).join('');
    // A line that was cut off goes as well: the next one would be joined to it.
    if (text !== this.#text) await this.#writing(() => writeFile(this.#path, text, { mode: 0o600 }));
  }

  async remove(): Promise<void> {
    if (this.#exists) await rm(this.#path, { force: true });
  }

  /** @throws StorageError */
  async #writing(work: () => Promise<void>): Promise<void> {
    await work().catch((error: unknown) => {
      throw storageError(error, 'write', this.#path, 'the table of sync points');
    });
  }

  #take(): Promise<void> {
    return (this.#taken ??= this.#writing(async () => {
      const [newest, ...older] = await this.#earlier();
      if (newest === undefined) return;
      const text = await readFile(newest, 'latin1');
      await writeFile(this.#path, text, { mode: 0o600 });
      for (const path of [newest, ...older]) await rm(path, { force: true });
    }));
  }

  async #read(): Promise<readonly SentPoint[]> {
    await this.#take();
    const text = await readFile(this.#path, 'latin1').catch(() => '');
    this.#text = text;
    this.#exists = text !== '';
    // A crash while writing cut off the text behind the last line end.
    return text
      .split('\n')
      .slice(0, -1)
      .flatMap((line) => {
        const [number, fileOffset, dataBytes, articles] = (LINE.exec(line)?.slice(1) ?? []).map(Number);
        if (number === undefined || fileOffset === undefined || dataBytes === undefined) return [];
        return articles === undefined ? [] : [{ number, fileOffset, dataBytes, articles }];
      });
  }
}

import { open } from 'node:fs/promises';

import { MAX_LICENSE_TEXT } from './verify.js';

/**
 * `license.file`, read again and again: a mounted secret is swapped by a symbolic link, which no file watcher reports on every
 * system, and a license is small.
 */
export class LicenseFile {
  readonly path: string;
  #last: string | undefined;

  constructor(path: string) {
    this.path = path;
  }

  /**
   * The text when it is new since the last call; `undefined` when it is not.
   * @throws when it cannot be read; once for each reason.
   */
  async changed(): Promise<string | undefined> {
    let text: string;
    try {
      text = await this.#read();
    } catch (error) {
      const reason = `error ${(error as Error).message}`;
      if (reason === this.#last) return undefined;
      this.#last = reason;
      throw error;
    }
    if (`text ${text}` === this.#last) return undefined;
    this.#last = `text ${text}`;
    return text;
  }

  /** The last text could not be stored: give it again. */
  forget(): void {
    this.#last = undefined;
  }

  /** At most one character more than is accepted: the rest of a huge file is not needed to refuse it. */
  async #read(): Promise<string> {
    const file = await open(this.path, 'r');
    try {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(MAX_LICENSE_TEXT + 1), 0, MAX_LICENSE_TEXT + 1, 0);
      return buffer.toString('latin1', 0, bytesRead);
    } finally {
      await file.close();
    }
  }
}

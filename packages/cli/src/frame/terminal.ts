/** The two streams that a user sees, and what may be drawn on them. */
export interface Stream {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

/** Control characters of names and texts from outside would move the cursor, or worse. */
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

export const harmless = (text: string): string => text.replace(CONTROL, '·');

export class Terminal {
  readonly #out: Stream;
  readonly #error: Stream;
  #drawn = false;
  /** Lines of the table that was drawn last. */
  #height = 0;

  /** @param error also takes the progress, so that standard output has nothing but the answer */
  constructor(out: Stream, error: Stream) {
    this.#out = out;
    this.#error = error;
  }

  /** Whether somebody watches. */
  get live(): boolean {
    return this.#error.isTTY === true;
  }

  /** Whether somebody reads the answer on a terminal, too: nothing else takes it. */
  get isWatched(): boolean {
    return this.live && this.#out.isTTY === true;
  }

  get columns(): number {
    return this.#error.columns ?? 80;
  }

  /** A line of the answer. */
  say(line: string): void {
    this.#wipe();
    this.#out.write(`${harmless(line)}\n`);
  }

  json(value: unknown): void {
    this.#wipe();
    this.#out.write(`${JSON.stringify(value, undefined, this.#out.isTTY === true ? 2 : undefined)}\n`);
  }

  /** Bytes of the answer as they are, e.g. a file. */
  raw(text: string): void {
    this.#wipe();
    this.#out.write(text);
  }

  /** A line beside the answer. */
  note(line: string): void {
    this.#wipe();
    this.#error.write(`${harmless(line)}\n`);
  }

  /** One line that is drawn over and over; nothing where nobody watches. */
  draw(line: string): void {
    if (!this.live) return;
    this.#drawn = true;
    this.#error.write(`\r${line.slice(0, this.columns - 1)}\u001b[K`);
  }

  /** Lines that are drawn over and over, no wider than the terminal; nothing where nobody watches. */
  drawAll(lines: readonly string[]): void {
    if (!this.live) return;
    this.#wipe();
    this.#error.write(lines.map((line) => `${harmless(line).slice(0, this.columns - 1)}\n`).join(''));
    this.#height = lines.length;
  }

  #wipe(): void {
    if (this.#height > 0) this.#error.write(`\u001b[${this.#height}A\r\u001b[J`);
    this.#height = 0;
    if (this.#drawn) this.#error.write('\r\u001b[K');
    this.#drawn = false;
  }
}

import type { TransportReader } from '../transport.js';

/** A reader that keeps what it is told, the bytes as they were given. */
export class Recorder implements TransportReader {
  readonly chunks: Buffer[] = [];
  /** Bytes received. */
  count = 0;
  /** Arguments of each call of `ended`. */
  readonly ends: (Error | undefined)[] = [];
  /** How often `closed` was told. */
  closes = 0;
  /** Calls that came behind `ended` or `closed`, where there may be none. */
  readonly late: string[] = [];
  onReceived: ((bytes: Buffer) => void) | undefined;
  #wake: (() => void)[] = [];

  get bytes(): Buffer {
    return Buffer.concat(this.chunks);
  }

  received(bytes: Buffer): void {
    if (this.ends.length > 0 || this.closes > 0) this.late.push('received');
    if (bytes.length === 0) this.late.push('nothing received');
    this.chunks.push(bytes);
    this.count += bytes.length;
    this.onReceived?.(bytes);
    this.#notify();
  }

  ended(cause: Error | undefined): void {
    if (this.closes > 0) this.late.push('ended');
    this.ends.push(cause);
    this.#notify();
  }

  closed(): void {
    this.closes += 1;
    this.#notify();
  }

  /** Resolves when `condition` holds; looked at whenever something is told. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => this.#wake.push(resolve));
  }

  #notify(): void {
    for (const wake of this.#wake.splice(0)) wake();
  }
}

import { rate, size, time } from './figures.js';
import type { Terminal } from './terminal.js';

const WIDTH = 28;
const REDRAW_MS = 100;

/** The bar of one transfer, drawn while somebody watches. */
export class Progress {
  readonly #terminal: Terminal;
  readonly #label: string;
  readonly #now: () => number;
  readonly #began: number;
  #first: number | undefined;
  #drawn = -Infinity;

  /** @param label what is transferred */
  constructor(terminal: Terminal, label: string, now: () => number = () => performance.now()) {
    this.#terminal = terminal;
    this.#label = label;
    this.#now = now;
    this.#began = now();
  }

  /** Milliseconds since the first attempt. */
  get elapsed(): number {
    return this.#now() - this.#began;
  }

  /**
   * Draws until the returned function is called.
   * @param total bytes; undefined: not known
   */
  watch(bytes: () => number, total: () => number | undefined): () => void {
    if (!this.#terminal.live) return () => undefined;
    let timer: NodeJS.Timeout;
    const tick = (): void => {
      this.update(bytes(), total());
      timer = setTimeout(tick, REDRAW_MS).unref();
    };
    tick();
    return () => clearTimeout(timer);
  }

  update(bytes: number, total: number | undefined): void {
    const now = this.#now();
    if (!this.#terminal.live || now - this.#drawn < REDRAW_MS) return;
    this.#drawn = now;
    this.#first ??= bytes;
    const moved = bytes - this.#first;
    const elapsed = now - this.#began;
    const parts = [this.#label, size(bytes), rate(moved, elapsed)];
    if (total !== undefined && total > 0) {
      const part = Math.min(1, bytes / total);
      const left = moved > 0 ? ((total - bytes) * elapsed) / moved : undefined;
      const filled = Math.round(part * WIDTH);
      const bar = `${'█'.repeat(filled)}${'░'.repeat(WIDTH - filled)} ${String(Math.floor(part * 100)).padStart(3)} %`;
      parts.splice(1, 1, bar, `${size(bytes)} of ${size(total)}`);
      if (left !== undefined) parts.push(`${time(left)} left`);
    }
    this.#terminal.draw(parts.join('  '));
  }
}

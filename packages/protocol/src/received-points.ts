/** The sync points that a receiver was sent: which of them are stored, and which acknowledged (§3.6.3 o, pesit-e.md §7). */
import { START } from './articles.js';
import type { SyncPoint } from './articles.js';
import { PesitError } from './errors.js';

/** Points that are kept while none is stored. */
const MAX_POINTS_KEPT = 1024;

export class ReceivedPoints {
  #last = 0;
  #acknowledged = 0;
  /** The last point that is stored here, and those received since. */
  #kept: SyncPoint[] = [START];

  /** A transfer begins at `from`, or goes back to it. */
  start(from: SyncPoint): void {
    this.#last = from.number;
    this.#acknowledged = from.number;
    this.#kept = [from];
  }

  /** The last point that is stored here. */
  get firm(): SyncPoint {
    return this.#kept[0] as SyncPoint;
  }

  /**
   * SYN: the next point.
   * @param window points that the peer may place without an acknowledgement; 0 any number
   * @throws PesitError 3-311 it is not the next one, 2-217 the window is full
   */
  receive(number: number, window: number): void {
    const expected = this.#last + 1;
    if (number !== expected) {
      throw new PesitError(`expected SYN ${expected}, got SYN ${number}`, {
        fault: 'remote',
        diagnostic: '3-311',
        expected: `SYN ${expected}`,
        got: `SYN ${number}`,
      });
    }
    if (window > 0 && number - this.#acknowledged > window) {
      const [wanted, got] = [`at most ${window} unacknowledged points (PI 7)`, `${number - this.#acknowledged}`];
      throw new PesitError(`SYN ${number}: expected ${wanted}, got ${got}`, {
        fault: 'remote',
        diagnostic: '2-217',
        expected: wanted,
        got,
      });
    }
    this.#last = number;
  }

  /** Keeps the totals that the point received last stands for. */
  keep(point: SyncPoint): void {
    this.#kept.push(point);
    if (this.#kept.length > MAX_POINTS_KEPT) this.#kept.splice(1, 1);
  }

  /** Everything up to `number` is stored. @returns false for a point that was not received: one of an earlier transfer */
  store(number: number): boolean {
    if (number > this.#last) return false;
    const stored = this.#kept.findIndex((point) => point.number === number);
    if (stored > 0) this.#kept.splice(0, stored);
    return true;
  }

  /** @returns false when an acknowledgement of `number` says nothing new */
  acknowledge(number: number): boolean {
    if (number <= this.#acknowledged) return false;
    this.#acknowledged = number;
    return true;
  }

  /** A point to which the transfer can go back: the last that is stored, or a later one. */
  find(number: number): SyncPoint | undefined {
    return this.#kept.find((point) => point.number === number);
  }
}

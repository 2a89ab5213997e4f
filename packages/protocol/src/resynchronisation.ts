/**
 * Going back to a sync point within a transfer (RESYN, §3.6.3 p, §4.4.24, §4.8.3): which point it is, and how often it may
 * happen. `receiving.ts` and `sending.ts` decide what both ends forget then.
 */
import { START } from './articles.js';
import type { SyncPoint } from './articles.js';
import { PesitError } from './errors.js';
import type { ReceivedPoints } from './received-points.js';
import type { ArticleSender } from './sending.js';

/** Resynchronisations of one transfer, by either side; one more is 3-320. */
export const MAX_RESYNCHRONISATIONS = 16;

export class Resynchronisation {
  readonly #received: ReceivedPoints;
  /** Sender of our own data, when this side sends. */
  #sender: ArticleSender | undefined;
  /** Our RESYN, until it is answered or overtaken; the peer's, until we have answered. */
  #asked: SyncPoint | undefined;
  #toAnswer: SyncPoint | undefined;
  #count = 0;

  constructor(received: ReceivedPoints) {
    this.#received = received;
  }

  /** A transfer begins; `sender` when its data are ours. */
  start(sender: ArticleSender | undefined): void {
    this.#sender = sender;
    this.#asked = undefined;
    this.#toAnswer = undefined;
    this.#count = 0;
  }

  /** One more, by either side. @returns the error when it is one too many */
  excess(): PesitError | undefined {
    if (++this.#count <= MAX_RESYNCHRONISATIONS) return undefined;
    const text = `more than ${MAX_RESYNCHRONISATIONS} resynchronisations of one transfer: check the line`;
    return new PesitError(text, { fault: 'remote', diagnostic: '3-320' });
  }

  /**
   * The point that our RESYN names.
   * @param from default: the last one that is stored here, or that the peer has acknowledged
   */
  choose(from: number | undefined): SyncPoint {
    if (from === undefined) return this.#sender?.firmPoint ?? this.#received.firm;
    const point = this.#find(from);
    if (point === undefined) throw new Error(`sync point ${from} is not one to which both sides can go back`);
    return point;
  }

  /** Our RESYN leaves. */
  ask(point: SyncPoint): void {
    this.#asked = point;
  }

  /**
   * RESYN came: where we shall go, to be told to the application and answered.
   * @throws PesitError 3-306 the point was never placed
   */
  receive(number: number): SyncPoint {
    // Ours has lost: the requester's goes first (§4.8.3).
    this.#asked = undefined;
    const { firm } = this.#received;
    let point = this.#find(number) ?? START;
    if (this.#sender !== undefined) {
      if (number > this.#sender.sentPoint) throw noPoint(`RESYN ${number}`, `at most ${this.#sender.sentPoint}`);
    } else if (number > 0 && number < firm.number) {
      // An acknowledgement is on its way: the receiver may answer with a later point (§3.6.3 p).
      point = firm;
    }
    this.#toAnswer = point;
    return point;
  }

  /** The point to answer with, once; undefined when there is nothing to answer. */
  answer(fromStart: boolean): SyncPoint | undefined {
    const point = this.#toAnswer;
    this.#toAnswer = undefined;
    return point !== undefined && fromStart ? START : point;
  }

  /**
   * ACK(RESYN) came. The sender of the data answers with what was asked, or the start; the receiver with a later point too.
   * @throws PesitError 3-306
   */
  answered(number: number): SyncPoint {
    const asked = this.#asked ?? START;
    this.#asked = undefined;
    // The point we asked for may be forgotten by now, when a later point was stored meanwhile.
    if (number === asked.number) return asked;
    const legal = number === 0 || (this.#sender !== undefined && number > asked.number);
    const point = legal ? this.#find(number) : undefined;
    if (point === undefined) throw noPoint(`ACK(RESYN) ${number}`, `${asked.number} or 0`);
    return point;
  }

  #find(number: number): SyncPoint | undefined {
    if (number === 0) return START;
    return this.#sender === undefined ? this.#received.find(number) : this.#sender.pointOf(number);
  }
}

const noPoint = (got: string, expected: string): PesitError => {
  const [wanted, text] = [`sync point ${expected}`, `expected sync point ${expected}, got ${got}`];
  return new PesitError(text, { fault: 'remote', diagnostic: '3-306', expected: wanted, got });
};

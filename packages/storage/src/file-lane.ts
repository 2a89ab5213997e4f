/**
 * How many file calls of this process run at a time. Node runs them in a pool of threads (4 unless told otherwise), and looks up
 * host names and checks passwords there, too: on a volume that does not answer each call keeps its thread for as long, and
 * without a bound a few sessions would take them all. One thread is left for all else.
 */
export class FileLane {
  readonly #most: number;
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(most: number) {
    this.#most = most;
  }

  /** Calls that run now, and those that wait for one of them. */
  get load(): { readonly running: number; readonly waiting: number } {
    return { running: this.#running, waiting: this.#waiting.length };
  }

  /** @param urgent before all that wait: a look at the volume, which tells why they do. Default false */
  async run<T>(call: () => Promise<T>, urgent = false): Promise<T> {
    if (this.#running < this.#most) this.#running += 1;
    else await this.#turn(urgent);
    try {
      return await call();
    } finally {
      const next = this.#waiting.shift();
      // Its place goes to the next one.
      if (next === undefined) this.#running -= 1;
      else next();
    }
  }

  #turn(urgent: boolean): Promise<void> {
    return new Promise((go) => {
      if (urgent) this.#waiting.unshift(go);
      else this.#waiting.push(go);
    });
  }
}

/** The one of this process: a thread less than Node has unless told otherwise. */
export const fileLane = new FileLane(3);

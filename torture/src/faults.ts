/** Faults on the way between the two apps, and when they strike. */

/** `request`: from the requester to the server; `answer`: back. */
export type Direction = 'request' | 'answer';

/** Who can be killed. */
export type Victim = 'server' | 'client' | 'database';

export type Moment =
  /** When so many bytes have passed that way since the fault was armed; possibly inside an FPDU. */
  | { readonly at: 'bytes'; readonly direction: Direction; readonly count: number }
  /** Before or after the entity that holds the nth FPDU of that name, counted since the fault was armed. */
  | {
      readonly at: 'fpdu';
      readonly direction: Direction;
      readonly name: string;
      readonly occurrence: number;
      readonly side: 'before' | 'after';
    }
  | { readonly at: 'time'; readonly ms: number };

export type Action =
  /** Both connections are closed. */
  | { readonly do: 'cut' }
  /** Both connections are reset (RST), what is in flight is lost. */
  | { readonly do: 'reset' }
  /** This direction ends (FIN), the other one stays open. */
  | { readonly do: 'half-close' }
  /** This direction stands still. */
  | { readonly do: 'stall'; readonly ms: number }
  /** The entity at the moment never arrives; then the connection is cut, or stays open. */
  | { readonly do: 'drop'; readonly cut: boolean }
  /** One bit of the entity is turned, somewhere behind its length; only a CRC can notice. */
  | { readonly do: 'damage'; readonly at: number }
  /** SIGKILL, so many milliseconds after the moment: between two steps of what the moment has set off. */
  | { readonly do: 'kill'; readonly victim: Victim; readonly afterMs: number };

export interface Fault {
  readonly moment: Moment;
  readonly action: Action;
}

/** Where in the entity that passes now a fault strikes, if it does; the counters are those since it was armed. */
export class Trigger {
  readonly fault: Fault;
  #bytes = 0;
  #occurrences = 0;

  constructor(fault: Fault) {
    this.fault = fault;
  }

  /** @returns how many bytes of the entity still pass before the fault; undefined when it does not strike here */
  strikesAt(direction: Direction, length: number, names: readonly string[]): number | undefined {
    const { moment } = this.fault;
    if (moment.at === 'time' || moment.direction !== direction) return undefined;
    if (moment.at === 'bytes') {
      const before = this.#bytes;
      this.#bytes += length;
      return moment.count <= this.#bytes ? Math.max(0, moment.count - before) : undefined;
    }
    this.#occurrences += names.filter((name) => name === moment.name).length;
    if (this.#occurrences < moment.occurrence) return undefined;
    return moment.side === 'before' ? 0 : length;
  }
}

import type { PesitListener } from '@pesit-node/net';
import type { PesitError } from '@pesit-node/protocol';

import type { BoundPort } from './running.js';

export type DoorKind = 'tcp' | 'tls';

/** A door that a listener is to have. */
export interface WantedDoor {
  readonly kind: DoorKind;
  readonly port: number;
  readonly open: () => Promise<PesitListener>;
}

/** One port of plain TCP, one of TLS, or both. */
export class Doors implements BoundPort {
  readonly #open: Map<DoorKind, PesitListener>;

  private constructor(open: Map<DoorKind, PesitListener>) {
    this.#open = open;
  }

  /** Opens all, or none. @param before a door of it that stays the same goes over. @throws what `open` of a door throws */
  static async open(wanted: readonly WantedDoor[], before?: BoundPort): Promise<Doors> {
    const old: ReadonlyMap<DoorKind, PesitListener> = before instanceof Doors ? before.#open : new Map();
    const kept = new Map<DoorKind, PesitListener>();
    const made = new Map<DoorKind, PesitListener>();
    for (const { kind, port, open } of wanted) {
      const same = old.get(kind);
      if (same?.port === port) {
        kept.set(kind, same);
        continue;
      }
      try {
        made.set(kind, await open());
      } catch (error) {
        // Partners that came meanwhile keep their sessions.
        for (const door of made.values()) void door.abandon();
        throw error;
      }
    }
    if (before instanceof Doors) for (const kind of kept.keys()) before.#open.delete(kind);
    return new Doors(new Map([...kept, ...made]));
  }

  get activeConnections(): number {
    return [...this.#open.values()].reduce((sum, door) => sum + door.activeConnections, 0);
  }

  async abandon(): Promise<void> {
    await Promise.all([...this.#open.values()].map((door) => door.abandon()));
  }

  async close(reason: PesitError, graceMs: number, answerMs?: number): Promise<void> {
    await Promise.all([...this.#open.values()].map((door) => door.close(reason, graceMs, answerMs)));
  }
}

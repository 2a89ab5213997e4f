import { randomUUID } from 'node:crypto';

import type { Parameters, PesitError } from '@pesit-node/protocol';

/** A session that this node opens with itself, as one of its partners. */
export interface Trial {
  readonly partnerId: string;
  /** PI 99 of its CONNECT. */
  readonly freeMessage: Buffer;
  /** Why it was refused, in the words for an operator: the partner hears less. */
  refused: PesitError | undefined;
}

/**
 * The sessions in which this node tries the logins of its partners. Each is known by the text in PI 99 of its CONNECT, which
 * nobody else can know: it takes no place of the partner, and nothing about it counts for the partner or against it.
 */
export class Trials {
  readonly #open = new Map<string, Trial>();

  begin(partnerId: string): Trial {
    const text = `trial ${randomUUID()}`;
    const trial = { partnerId, freeMessage: Buffer.from(text, 'latin1'), refused: undefined };
    this.#open.set(text, trial);
    return trial;
  }

  end({ freeMessage }: Trial): void {
    this.#open.delete(freeMessage.toString('latin1'));
  }

  /** The trial that a CONNECT belongs to; undefined: it is a partner's. */
  of({ requester, freeMessage }: Pick<Parameters, 'requester' | 'freeMessage'>): Trial | undefined {
    if (this.#open.size === 0 || freeMessage === undefined) return undefined;
    const trial = this.#open.get(freeMessage.toString('latin1'));
    return trial?.partnerId === requester ? trial : undefined;
  }
}

import { networkOf } from '@pesit-node/net';
import { LogBudget } from '@pesit-node/service';
import type { Logger } from '@pesit-node/service';

export interface Stranger {
  readonly remoteAddress: string;
  /** The configured partner that it says to be. */
  readonly partnerId: string | undefined;
}

/** Lines a minute about those who say to be a partner, beside the bound of each partner. */
const PARTNER_LINES = 1000;

/**
 * The log of those who have proved nothing, and of what a partner asks in vain. Anyone who connects can cause a line, so lines are bounded: by network, and by partner
 * where one is named, so that strangers cannot hide what an operator has to see of a partner. The next line says how many were
 * left out; the metrics count all.
 */
export class StrangerLog {
  readonly #unknown = new LogBudget();
  readonly #named = new LogBudget({ total: PARTNER_LINES });
  readonly #proven = new LogBudget({ total: PARTNER_LINES });

  warn(logger: Logger, { remoteAddress, partnerId }: Stranger, facts: object, text: string): void {
    const leftOut =
      partnerId === undefined ? this.#unknown.take(networkOf(remoteAddress)) : this.#named.take(partnerId);
    warn(logger, leftOut, facts, text);
  }

  /** Warns of a proven partner, whose lines no stranger can use up. */
  warnOfPartner(logger: Logger, partnerId: string, facts: object, text: string): void {
    warn(logger, this.#proven.take(partnerId), facts, text);
  }
}

const warn = (logger: Logger, leftOut: number | undefined, facts: object, text: string): void => {
  if (leftOut === undefined) return;
  logger.warn({ ...facts, ...(leftOut === 0 ? {} : { notLogged: leftOut }) }, text);
};
